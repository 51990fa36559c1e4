//! The tree for the terminal.
//!
//! Input: a machine. Output: lines. A part a line as long as that is readable; on larger machines
//! equal neighbours become one line, the innermost first: `4 x L3 8 MiB`.

use super::{brief, counts, extras, list, name, size, size_of};
use crate::Machine;
use crate::outline::{Kind, Part, nearest, outline};
use std::fmt::Write as _;
use units::{CpuId, CpuSet, NumaId};

/// What is seen at once. With more lines, equal parts are drawn together.
const LINES_MAX: usize = 28;
/// The same where each core has a line: they say little.
const CORE_LINES_MAX: usize = 16;
/// Longer lists of cpus are left out of a line that stands for several parts.
const LIST_CHARS_MAX: usize = 72;

/// Kinds of parts of which equal neighbours become one line, in this order.
const FOLDED: [Kind; 5] = [Kind::Core, Kind::Llc, Kind::Numa, Kind::Die, Kind::Package];

/// The machine, its parts and devices, for people.
#[must_use]
pub fn tree(machine: &Machine) -> String {
    let whole = outline(machine);
    let lines = |folded: usize| {
        let mut painter = Painter { machine, fold: &FOLDED[..folded], lines: Vec::new() };
        painter.children(&whole, "", true);
        painter.lines
    };
    let fits = |folded: &usize| {
        lines(*folded).len() <= if *folded == 0 { CORE_LINES_MAX } else { LINES_MAX }
    };
    let folded = (0..FOLDED.len()).find(fits).unwrap_or(FOLDED.len());
    let mut text = String::new();
    for line in [brief(machine), counts(machine)].iter().filter(|line| !line.is_empty()) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{line}");
    }
    text.push('\n');
    for line in lines(folded) {
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text.push_str(&extras::text(machine));
    text
}

struct Painter<'a> {
    machine: &'a Machine,
    fold: &'a [Kind],
    lines: Vec<String>,
}

impl Painter<'_> {
    /// The parts of `part`; `concrete` when it is one part and not an example of several.
    fn children(&mut self, part: &Part, indent: &str, concrete: bool) {
        let groups = self.groups(&part.parts);
        let last = groups.len().saturating_sub(1);
        for (index, group) in groups.iter().enumerate() {
            let Some(first) = group.first() else { continue };
            let (branch, below) = match (part.kind, index == last) {
                (Kind::Machine, _) => ("", ""),
                (_, true) => ("└─ ", "   "),
                (_, false) => ("├─ ", "│  "),
            };
            let one = concrete && group.len() == 1;
            let (mut line, innermost) = match group.len() {
                1 => self.single(first, concrete.then_some(&part.cpus)),
                _ => self.several(group, concrete),
            };
            if one && first.cpus.is_empty() {
                line.push_str(&self.near(first));
            }
            self.lines.push(format!("{indent}{branch}{line}"));
            self.children(innermost, &format!("{indent}{below}"), one);
        }
    }

    /// Runs of equal neighbours where they are drawn together, else each alone.
    fn groups<'p>(&self, parts: &'p [Part]) -> Vec<Vec<&'p Part>> {
        let mut groups: Vec<Vec<&Part>> = Vec::new();
        for part in parts {
            match groups.last_mut() {
                Some(group)
                    if self.fold.contains(&part.kind)
                        && group.first().is_some_and(|first| first.is_like(part)) =>
                {
                    group.push(part);
                }
                _ => groups.push(vec![part]),
            }
        }
        groups
    }

    /// A part and all that is the same cpus again: `die 3 · numa 3 64 GiB`, and the innermost one.
    fn chain<'p>(&self, part: &'p Part, numbered: bool) -> (String, &'p Part) {
        let mut names = Vec::new();
        let mut at = part;
        loop {
            let id = at.id.filter(|_| numbered);
            let tier = at.rank.filter(|_| at.kind == Kind::Numa);
            let words = [
                Some(name(at, id, &self.machine.kinds)),
                size_of(at),
                tier.map(|tier| format!("tier {tier}")),
            ];
            names.push(words.into_iter().flatten().collect::<Vec<_>>().join(" "));
            match at.parts.as_slice() {
                [inner] if inner.cpus == at.cpus && inner.kind != Kind::Core => at = inner,
                _ => return (names.join(" · "), at),
            }
        }
    }

    /// `numa 3 64 GiB  cpus 0-7,16-23`; no cpus where the part around has the same, no numbers
    /// where there is none around because it stands for several.
    fn single<'p>(&self, part: &'p Part, around: Option<&CpuSet>) -> (String, &'p Part) {
        let (mut line, innermost) = self.chain(part, around.is_some());
        let cpus = match around {
            _ if part.cpus.is_empty() => Some("no cpus".to_owned()),
            Some(around) if *around != part.cpus || part.kind == Kind::Core => {
                let word = if part.cpus.len() == 1 { "cpu" } else { "cpus" };
                Some(format!("{word} {}", list(&part.cpus)))
            }
            None if part.kind == Kind::Core && part.cpus.len() > 1 => {
                Some(format!("{} cpus", part.cpus.len()))
            }
            _ => None,
        };
        if let Some(cpus) = cpus {
            let _ = write!(line, "  {cpus}");
        }
        (line, innermost)
    }

    /// From where memory without cpus is reached best, unless it is all the same.
    fn near(&self, part: &Part) -> String {
        let Some(id) = part.id else { return String::new() };
        let near = nearest(self.machine, NumaId(id));
        let with_cpus = self.machine.numa.iter().filter(|numa| !numa.cpus.is_empty()).count();
        if near.is_empty() || near.len() == with_cpus {
            return String::new();
        }
        format!(", near numa {}", list(&near.into_iter().map(|id| CpuId(id.0)).collect()))
    }

    /// `4 x numa 0-3 64 GiB  cpus 0-7 | 8-15 | ...`.
    fn several<'p>(&self, group: &[&'p Part], concrete: bool) -> (String, &'p Part) {
        let first = group[0];
        let (chain, innermost) = self.chain(first, false);
        let mut line = format!("{} x {chain}", group.len());
        let ids: Option<CpuSet> = group.iter().map(|part| part.id.map(CpuId)).collect();
        if let Some(ids) = ids.filter(|_| concrete) {
            let kind = name(first, None, &[]);
            line = line.replacen(&kind, &format!("{kind} {}", list(&ids)), 1);
        }
        let sizes = || group.iter().filter_map(|part| part.bytes);
        if let (Some(least), Some(most)) = (sizes().min().map(size), sizes().max().map(size))
            && least != most
        {
            let shown = first.bytes.map(size).unwrap_or_default();
            line = line.replacen(&shown, &format!("{least} to {most}"), 1);
        }
        if first.kind == Kind::Core && first.cpus.len() > 1 {
            let _ = write!(line, "  {} cpus each", first.cpus.len());
        }
        let lists: Vec<_> = group.iter().map(|part| list(&part.cpus)).collect();
        let lists = lists.join(" | ");
        let shown = concrete && first.kind != Kind::Core && lists.len() <= LIST_CHARS_MAX;
        if shown && !first.cpus.is_empty() {
            let _ = write!(line, "  cpus {lists}");
        }
        (line, innermost)
    }
}
