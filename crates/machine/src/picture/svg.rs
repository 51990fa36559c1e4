//! Boxes within boxes, as SVG.
//!
//! Input: a machine. Output: one self-contained SVG, light or dark as the reader's screen, sizes
//! in CSS pixels. Every core is drawn, its cpus by number; devices stand in the box of their NUMA
//! node. Limits: widths of text are estimated, because fonts differ.

use super::{brief, counts, extras, list, name, size, size_of};
use crate::Machine;
use crate::outline::{Kind, Part, outline};
use std::fmt::Write as _;
use units::{CpuSet, NumaId};

/// Pixels of an average character of the text, which is 11 pixels high.
const CHAR: f64 = 6.4;
const LINE: f64 = 14.0;
const PAD: f64 = 7.0;
const GAP: f64 = 5.0;
/// Width to height that a group of boxes should have.
const SHAPE: f64 = 1.7;
/// Boxes of a row; more are hard to count.
const COLUMNS_MAX: usize = 16;

const STYLE: &str = "\
text{font:11px system-ui,'Segoe UI','DejaVu Sans',sans-serif;fill:#1c2430}\
.h{font-size:15px;font-weight:600}.s{fill:#55606e}.l{font-weight:600}\
.b{text-anchor:middle}\
rect{stroke:#8b97a6;stroke-width:1}\
.bg{fill:#fff;stroke:none}.package{fill:#eef1f5}.die{fill:#e4e9f0}.numa{fill:#dcecdf}\
.llc{fill:#f6edd5}.core{fill:#fff}.other{fill:#d9e4f7}.dim{fill:#cdd2d8;stroke-dasharray:3 2}\
.device{fill:#e9def3}\
@media (prefers-color-scheme:dark){text{fill:#e4e9ef}.s{fill:#a9b4c0}\
rect{stroke:#66727f}.bg{fill:#14181d}.package{fill:#1f252c}.die{fill:#262e37}.numa{fill:#1f3527}\
.llc{fill:#3a3320}.core{fill:#14181d}.other{fill:#21304a}.dim{fill:#3b424a}.device{fill:#33274a}}";

/// A box: its look, its text, what is in it.
struct Block {
    class: &'static str,
    /// Lines of text; in a box with others the first one is its title.
    lines: Vec<String>,
    /// Shown when the pointer rests on it.
    tip: String,
    /// Rows of boxes of one kind below each other.
    groups: Vec<Vec<Block>>,
    width: f64,
    height: f64,
    /// Columns of each group.
    columns: Vec<usize>,
}

/// A picture of the machine.
#[must_use]
pub fn svg(machine: &Machine) -> String {
    let whole = outline(machine);
    let mut top = Painter::of(machine).block(&whole);
    top.groups.push(devices(machine, None));
    top.groups.push(elsewhere(machine));
    top.groups.retain(|group| !group.is_empty());
    measure(&mut top);
    let heads = [brief(machine), counts(machine)];
    let widest = heads.iter().map(|head| text_width(head) * 1.4).fold(top.width, f64::max);
    let (width, height) = (widest + 2.0 * PAD, top.height + 44.0 + 2.0 * PAD);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">\n<title>{}</title>\n\
         <style>{STYLE}</style>\n\
         <rect class=\"bg\" width=\"100%\" height=\"100%\"/>\n",
        escaped(&heads.join("; "))
    );
    for (head, (y, class)) in heads.iter().zip([(22.0, "h"), (40.0, "s")]) {
        // Writing to a String cannot fail.
        let _ =
            writeln!(out, "<text class=\"{class}\" x=\"{PAD}\" y=\"{y}\">{}</text>", escaped(head));
    }
    draw_groups(&top, PAD, 44.0 + PAD, &mut out);
    out.push_str("</svg>\n");
    out
}

/// What all boxes need of a machine, found once.
struct Painter<'a> {
    machine: &'a Machine,
    /// Cpus that this process may use, and the scheduler with it.
    usable: CpuSet,
    /// Of the number of any cpu.
    number_width: f64,
}

impl<'a> Painter<'a> {
    fn of(machine: &'a Machine) -> Self {
        let largest = machine.online.iter().last().map(|cpu| cpu.0.to_string());
        Self {
            machine,
            usable: machine.allowed.difference(&machine.isolated),
            number_width: largest.map_or(0.0, |number| text_width(&number) + 10.0),
        }
    }

    fn block(&self, part: &Part) -> Block {
        let mut block = self.head(part);
        // Boxes of one kind are of one size and make a grid.
        let mut kind = None;
        for inner in &part.parts {
            let key = (inner.kind, inner.cpus.is_empty());
            if kind != Some(key) {
                block.groups.push(Vec::new());
                kind = Some(key);
            }
            if let Some(group) = block.groups.last_mut() {
                group.push(self.block(inner));
            }
        }
        if let (Kind::Numa, Some(id)) = (part.kind, part.id) {
            block.groups.push(devices(self.machine, Some(NumaId(id))));
            block.groups.retain(|group| !group.is_empty());
        }
        block
    }

    /// A box with nothing in it yet.
    fn head(&self, part: &Part) -> Block {
        let title = [Some(name(part, part.id, &self.machine.kinds)), size_of(part)];
        let title = title.into_iter().flatten().collect::<Vec<_>>().join("  ");
        let tip = match part.cpus.is_empty() {
            true => title.clone(),
            false => format!("{title}, cpus {}", list(&part.cpus)),
        };
        let mut block = Block::new(self.class(part), vec![title], tip);
        match part.kind {
            Kind::Machine => block.lines = Vec::new(),
            Kind::Core => {
                block.lines = part.cpus.iter().map(|cpu| cpu.0.to_string()).collect();
                // All cores alike, so that all groups of them are.
                block.width = self.number_width;
            }
            Kind::Package | Kind::Die | Kind::Numa | Kind::Llc => {}
        }
        block
    }

    fn class(&self, part: &Part) -> &'static str {
        match part.kind {
            Kind::Machine => "machine",
            Kind::Package => "package",
            Kind::Die => "die",
            Kind::Numa => "numa",
            Kind::Llc => "llc",
            Kind::Core if part.cpus.intersection(&self.usable).is_empty() => "dim",
            Kind::Core if part.rank.is_some_and(|kind| kind > 0) => "other",
            Kind::Core => "core",
        }
    }
}

/// Network interfaces, disks and persistent memory of a NUMA node, or of none.
fn devices(machine: &Machine, numa: Option<NumaId>) -> Vec<Block> {
    let known = |of: Option<NumaId>| of.filter(|id| machine.numa(*id).is_some());
    let device = |name: &str, more: Option<String>, tip: String| {
        let title = [Some(name.to_owned()), more].into_iter().flatten().collect::<Vec<_>>();
        Block::new("device", vec![title.join("  ")], tip)
    };
    let nics = machine.nics.iter().filter(|nic| known(nic.numa) == numa).map(|nic| {
        let speed = nic.speed_mbit_s.map(|mbit_s| match mbit_s % 1000 {
            0 => format!("{} Gbit/s", mbit_s / 1000),
            _ => format!("{mbit_s} Mbit/s"),
        });
        device(&nic.name, speed, extras::of_nic(nic))
    });
    let disks = machine.disks.iter().filter(|disk| known(disk.numa) == numa);
    let disks = disks.map(|d| device(&d.name, d.size_bytes.map(size), extras::of_disk(d)));
    let pmem = machine.pmem.iter().filter(|pmem| known(pmem.numa) == numa);
    let pmem = pmem.map(|p| device(&p.name, p.size_bytes.map(size), "persistent memory".into()));
    nics.chain(disks).chain(pmem).collect()
}

/// Cpus that are in no box.
fn elsewhere(machine: &Machine) -> Vec<Block> {
    if machine.offline.is_empty() {
        return Vec::new();
    }
    let text = format!("offline: cpus {}", list(&machine.offline));
    vec![Block::new("dim", vec![text.clone()], text)]
}

impl Block {
    fn new(class: &'static str, lines: Vec<String>, tip: String) -> Self {
        let columns = Vec::new();
        Self { class, lines, tip, groups: Vec::new(), width: 0.0, height: 0.0, columns }
    }

    /// Height of the title above the boxes in it.
    fn head(&self) -> f64 {
        if self.lines.is_empty() { 0.0 } else { LINE + 2.0 }
    }
}

fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * CHAR
}

/// Sizes from the inside out.
fn measure(block: &mut Block) {
    let widest = block.lines.iter().map(|line| text_width(line)).fold(0.0, f64::max);
    if block.groups.is_empty() {
        block.width = (widest + 10.0).max(block.width).max(24.0);
        block.height = block.lines.len() as f64 * LINE + 5.0;
        return;
    }
    block.width = widest;
    block.height = block.head();
    for (index, group) in block.groups.iter_mut().enumerate() {
        group.iter_mut().for_each(measure);
        let (width, height) = cell(group);
        // What is below the cores takes the room that is there.
        let fit = ((block.width + GAP) / (width + GAP)) as usize;
        let columns = match index {
            0 => columns(group.len(), width, height),
            _ => fit.clamp(1, group.len()),
        };
        let rows = group.len().div_ceil(columns);
        block.width = block.width.max(span(columns, width));
        block.height += span(rows, height) + GAP;
        block.columns.push(columns);
    }
    block.width += 2.0 * PAD;
    block.height += 2.0 * PAD - GAP;
}

/// The size that all boxes of a group get.
fn cell(group: &[Block]) -> (f64, f64) {
    group.iter().fold((0.0, 0.0), |(width, height), b| (b.width.max(width), b.height.max(height)))
}

fn span(count: usize, size: f64) -> f64 {
    count as f64 * (size + GAP) - GAP
}

/// As many columns as make the group most pleasant: near the shape, without gaps in the last row.
fn columns(count: usize, width: f64, height: f64) -> usize {
    let cost = |columns: usize| {
        let rows = count.div_ceil(columns);
        let shape = span(columns, width) / span(rows, height) / SHAPE;
        let ragged = if count.is_multiple_of(columns) { 0.0 } else { 1.0 };
        shape.ln().abs() + ragged
    };
    let best = (1..=count.min(COLUMNS_MAX)).min_by(|a, b| cost(*a).total_cmp(&cost(*b)));
    best.unwrap_or(1)
}

fn draw_groups(block: &Block, x: f64, y: f64, out: &mut String) {
    let mut top = y;
    for (group, columns) in block.groups.iter().zip(&block.columns) {
        let (width, height) = cell(group);
        for (index, inner) in group.iter().enumerate() {
            let (column, row) = (index % columns, index / columns);
            let left = x + column as f64 * (width + GAP);
            draw(inner, left, top + row as f64 * (height + GAP), (width, height), out);
        }
        top += span(group.len().div_ceil(*columns), height) + GAP;
    }
}

fn draw(block: &Block, x: f64, y: f64, (width, height): (f64, f64), out: &mut String) {
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "<g><title>{}</title><rect class=\"{}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
         height=\"{height:.1}\" rx=\"3\"/>",
        escaped(&block.tip),
        block.class
    );
    let is_leaf = block.groups.is_empty();
    for (index, line) in block.lines.iter().enumerate() {
        let base = y + index as f64 * LINE;
        let (class, left, base) = match is_leaf {
            true => ("b", x + width / 2.0, base + 13.0),
            false => ("l", x + PAD, base + 15.0),
        };
        let line = escaped(line);
        let _ =
            writeln!(out, "<text class=\"{class}\" x=\"{left:.1}\" y=\"{base:.1}\">{line}</text>");
    }
    draw_groups(block, x + PAD, y + PAD + block.head(), out);
    out.push_str("</g>\n");
}

/// Names come from firmware and drivers: they may hold anything.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
