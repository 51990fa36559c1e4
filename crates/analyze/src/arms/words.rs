//! A comparison as a sentence, and how sure it is.
//!
//! In: a comparison, the names of its arms, what they were compared by. Out: text whose bounds hold
//! for all arms that it speaks of: arms that are beaten are told apart from those that are not, and
//! fewer values than an interval needs give no bound.

use super::{Arm, By, Comparison, Verdict, Versus};
use crate::ratio::{IntervalKind, PAIRS_MIN, Ratio};

impl By {
    /// For people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::ResponseP99 => "p99 of the response time",
        }
    }
}

impl Comparison {
    /// The verdict in a sentence without a full stop, for example "best by throughput is per-numa:
    /// 1.270 times single (1.240 to 1.300, 95 %); certainty above 99.9 %".
    #[must_use]
    pub fn sentence(&self, arms: &[Arm<'_>], by: By) -> String {
        let (best, named) = (arms[self.best].name, by.name());
        let words = Words { arms, best, by };
        let all = || words.gaps(&self.nearest_first(|_| true));
        match self.verdict {
            Verdict::Winner { certainty } => {
                format!("best by {named} is {best}: {}; certainty {}", all(), sure(certainty))
            }
            Verdict::Leads { certainty } => {
                format!(
                    "ahead by {named} is {best}: {}; not proven, certainty {}",
                    all(),
                    sure(certainty)
                )
            }
            Verdict::CannotTell { difference_share_max, bound } => {
                let rivals = self.nearest_first(|versus| !versus.is_beaten());
                let names: Vec<_> = rivals.iter().map(|rival| arms[rival.arm].name).collect();
                let names = names.join(" or ");
                let told = match (difference_share_max, bound) {
                    (Some(share), _) => apart(share, best, rivals.len()),
                    (None, IntervalKind::Alone) => {
                        format!("one repetition says nothing ({})", words.gaps(&rivals))
                    }
                    (None, _) => format!(
                        "fewer than {PAIRS_MIN} repetitions give no bound ({})",
                        words.gaps(&rivals)
                    ),
                };
                let beaten = self.nearest_first(Versus::is_beaten);
                let behind = words.behind(&beaten);
                format!("cannot tell {best} from {names} by {named}: {told}{behind}")
            }
        }
    }

    /// What the certainty, or its absence, means: a sentence.
    #[must_use]
    pub fn surely(&self) -> String {
        let by_chance = |certainty: f64| match ((1.0 - certainty) * 1000.0).ceil() {
            of if of <= 1.0 => "in fewer than 1 of 1000 such experiments".to_owned(),
            of => format!("in {of:.0} of 1000 such experiments"),
        };
        let fewest = self.versus.iter().map(|v| v.ratio.pairs).min().unwrap_or(0);
        match self.verdict {
            Verdict::Winner { certainty } => format!(
                "were all arms equal, one would be so far ahead by chance {}",
                by_chance(certainty)
            ),
            Verdict::Leads { certainty } if fewest < PAIRS_MIN => format!(
                "were all arms equal, chance would put one ahead like this {}, and {fewest} \
                 repetitions cannot say more: repeat at least {PAIRS_MIN} times",
                by_chance(certainty)
            ),
            Verdict::Leads { certainty } => format!(
                "were all arms equal, chance would put one ahead like this {}, and a winner needs \
                 10 of 1000: repeat it more often",
                by_chance(certainty)
            ),
            Verdict::CannotTell { bound: IntervalKind::Sure, .. } => {
                "bounds hold for all of these arms at once in 95 of 100 such experiments; more \
                 repetitions narrow them"
                    .to_owned()
            }
            Verdict::CannotTell { bound: IntervalKind::Range, .. } => format!(
                "min-max is the least and the greatest that was seen, and no bound: {PAIRS_MIN} \
                 repetitions and more give 95 % intervals"
            ),
            Verdict::CannotTell { bound: IntervalKind::Alone, .. } => format!(
                "how far the next try would be off is not known: repeat at least {PAIRS_MIN} times"
            ),
        }
    }

    /// The least gap is the one that decides.
    fn nearest_first(&self, which: impl Fn(&Versus) -> bool) -> Vec<&Versus> {
        let mut chosen: Vec<&Versus> = self.versus.iter().filter(|versus| which(versus)).collect();
        chosen.sort_by(|a, b| a.ratio.value.total_cmp(&b.ratio.value));
        chosen
    }
}

struct Words<'a> {
    arms: &'a [Arm<'a>],
    best: &'a str,
    by: By,
}

impl Words<'_> {
    fn gaps(&self, versus: &[&Versus]) -> String {
        let gap = |versus: &&Versus| {
            let (name, ratio) = (self.arms[versus.arm].name, versus.ratio);
            let within = in_brackets(&ratio);
            match self.by {
                By::Throughput => format!("{:.3} times {name} ({within})", ratio.value),
                By::ResponseP99 => {
                    format!("that of {name} is {:.3} times as long ({within})", ratio.value)
                }
            }
        };
        versus.iter().map(gap).collect::<Vec<_>>().join(", ")
    }

    /// Arms that are beaten where others are not.
    fn behind(&self, beaten: &[&Versus]) -> String {
        let one = |versus: &&Versus| {
            let (name, ratio) = (self.arms[versus.arm].name, versus.ratio);
            let kind = ratio.interval_kind.name();
            let (low, high) = ratio.interval.unwrap_or((ratio.value, ratio.value));
            let times = format!("{low:.2} to {high:.2} times");
            let is_small = low >= 1.0 && high < 2.0;
            let (least, most) = ((low - 1.0) * 100.0, (high - 1.0) * 100.0);
            match (self.by, is_small) {
                (By::ResponseP99, _) => {
                    format!("{name} (its p99 is {times} that of {}, {kind})", self.best)
                }
                (By::Throughput, true) => {
                    format!("{name} ({} has {least:.1} to {most:.1} % more, {kind})", self.best)
                }
                (By::Throughput, false) => {
                    format!("{name} ({} has {times} as much, {kind})", self.best)
                }
            }
        };
        match beaten {
            [] => String::new(),
            _ => {
                let all = beaten.iter().map(one).collect::<Vec<_>>().join(", ");
                format!("; surely behind: {all}")
            }
        }
    }
}

/// From, to, and what that says.
fn in_brackets(ratio: &Ratio) -> String {
    let kind = ratio.interval_kind.name();
    match ratio.interval {
        Some((low, high)) => format!("{low:.3} to {high:.3}, {kind}"),
        None => kind.to_owned(),
    }
}

/// How far so many arms are from the one named, at most.
fn apart(share: f64, best: &str, rivals: usize) -> String {
    let far = match share < 1.0 {
        true => crate::percent_raised(share),
        false => format!("a factor of {:.2}", share + 1.0),
    };
    match rivals {
        1 => format!("at most {far} apart (95 %)"),
        _ => format!("each at most {far} from {best} (95 %)"),
    }
}

/// 99.95 % and more are not written as certain.
fn sure(certainty: f64) -> String {
    if certainty > 0.999 {
        "above 99.9 %".to_owned()
    } else {
        format!("{} %", (certainty * 1000.0).floor() / 10.0)
    }
}
