//! Where the pages of a process lie.
//!
//! Input: the text of `/proc/PID/numa_maps`. Output: [`PagesPerNuma`], bytes of anonymous memory by
//! NUMA node. Source: proc(5), fs/proc/task_mmu.c: a line per mapping, `anon=` where it has
//! anonymous pages, `N<number>=<pages>` of `kernelpagesize_kB`. Limits: of a private mapping of a
//! file the line does not tell which of its pages are anonymous, so such lines are left out.

use std::collections::BTreeMap;
use std::fmt;
use units::{Bytes, NumaId, NumaSet};

/// Bytes of anonymous memory by NUMA node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PagesPerNuma(BTreeMap<NumaId, u64>);

impl PagesPerNuma {
    pub(crate) fn parse(numa_maps: &str) -> Self {
        let mut bytes = BTreeMap::new();
        for line in numa_maps.lines() {
            let words = || line.split_whitespace().skip(2).filter_map(|word| word.split_once('='));
            let value = |key| words().find(|(name, _)| *name == key).map(|(_, value)| value);
            if value("anon").is_none() || value("file").is_some() {
                continue;
            }
            let page = value("kernelpagesize_kB").and_then(|kb| kb.parse::<u64>().ok());
            let page_bytes = page.unwrap_or(4).saturating_mul(1024);
            for (name, count) in words() {
                let numa = name.strip_prefix('N').and_then(|number| number.parse().ok());
                let (Some(numa), Ok(count)) = (numa, count.parse::<u64>()) else { continue };
                let sum: &mut u64 = bytes.entry(NumaId(numa)).or_default();
                *sum = sum.saturating_add(count.saturating_mul(page_bytes));
            }
        }
        Self(bytes)
    }

    /// By NUMA node, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (NumaId, Bytes)> + '_ {
        self.0.iter().map(|(numa, bytes)| (*numa, Bytes(*bytes)))
    }

    /// Of all of them, the share on `numas`; None of a process that has none.
    #[must_use]
    pub fn share_on(&self, numas: &NumaSet) -> Option<f64> {
        let there = self.0.iter().filter(|(numa, _)| numas.contains(**numa));
        // From zero on, because the sum of no shares is -0 and would be shown as such.
        let sum = |sum: f64, bytes: &u64| sum + *bytes as f64;
        let all = self.0.values().fold(0.0, sum);
        (all > 0.0).then(|| there.map(|(_, bytes)| bytes).fold(0.0, sum) / all)
    }
}

impl fmt::Display for PagesPerNuma {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (numa, bytes) in self.iter() {
            write!(f, "{separator}{}: {bytes}", numa.0)?;
            separator = ", ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
5582fba81000 bind:3 file=/usr/bin/head mapped=2 N0=2 kernelpagesize_kB=4
5582fba89000 bind:3 file=/usr/bin/head anon=3 dirty=3 N0=3 kernelpagesize_kB=4
5582fc000000 bind:3 heap anon=33 dirty=33 N1=3 N3=30 kernelpagesize_kB=4
7f0000000000 bind:3 huge anon=2 dirty=2 N3=2 kernelpagesize_kB=2048
7f0040000000 bind:3
7ffd00000000 bind:3 stack anon=3 dirty=3 N3=3 kernelpagesize_kB=4
";

    #[test]
    fn anonymous_pages_are_counted_in_bytes() {
        let pages = PagesPerNuma::parse(TEXT);
        let kib = |n: u64| Bytes(n << 10);
        assert_eq!(
            pages.iter().collect::<Vec<_>>(),
            [(NumaId(1), kib(12)), (NumaId(3), kib(33 * 4 + 4096))]
        );
        let share = |numas: &str| pages.share_on(&numas.parse().unwrap());
        assert_eq!(share("1,3"), Some(1.0));
        assert_eq!(share("0").map(|share| share.to_string()).as_deref(), Some("0"));
        assert!((share("3").unwrap() - 4228.0 / 4240.0).abs() < 1e-9);
        assert_eq!(PagesPerNuma::default().share_on(&NumaSet::default()), None);
        for cut in 0..TEXT.len() {
            let _ = PagesPerNuma::parse(&TEXT[..cut]);
        }
        assert_eq!(
            PagesPerNuma::parse("x y anon=1 N7=99999999999999999999 Nx=1").iter().count(),
            0
        );
    }
}
