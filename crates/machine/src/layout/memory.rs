//! How much memory an instance may take, and from which NUMA nodes.
//!
//! Input: parts of the machine, and what is asked. Output: bytes, the same for all instances: what
//! the one with the least can have, so that no arm of a comparison has more. Of every NUMA node a
//! margin is left to the kernel and the page cache:
//!
//! ```text
//! usable(node) = memory(node) - max(memory(node) / M, least)   M = 16, least = 512 MiB
//! share(i)     = sum over its nodes of usable(node) x cores(i, node) / cores(all, node)
//! each         = min over i of share(i), in whole MiB
//! ```
//!
//! (M = 10 and 1.5 GiB for Scylla, see [`Database`](super::Database).) A node with cpus and no
//! memory uses the nearest that has some, by the distances of the firmware. Limits: what other
//! programs take is not known.

use super::parts::cores_by_numa;
use super::places::{Bank, Core, Places};
use super::{LayoutError, Reason, Request};
use units::{Bytes, NumaId, NumaSet};

/// What is asked of an instance's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MemoryAsked {
    /// As much as fits.
    #[default]
    Fitting,
    /// So much for each.
    Each(Bytes),
    /// So much for all together.
    Total(Bytes),
}

/// Of all instances.
#[derive(Debug)]
pub(super) struct Shared {
    /// For each instance, ascending.
    pub(super) numas: Vec<NumaSet>,
    pub(super) each_bytes: Option<u64>,
    pub(super) heap_bytes: Option<u64>,
}

pub(super) fn share(
    request: &Request,
    places: &Places,
    parts: &[Vec<Core>],
    why: &mut Vec<Reason>,
) -> Result<Shared, LayoutError> {
    let users: Vec<Vec<(usize, u64)>> = parts.iter().map(|part| banks_of(places, part)).collect();
    let id = |&(bank, _): &(usize, u64)| places.banks[bank].id;
    let numas: Vec<NumaSet> = users.iter().map(|of| of.iter().map(id).collect()).collect();
    remote(parts, &numas, why);
    let shares: Option<Vec<u64>> =
        users.iter().map(|of| share_of(request, places, of, &users)).collect();
    let fitting = shares.as_ref().and_then(|shares| shares.iter().min().copied());
    let each = asked(request, parts.len(), shares.as_deref(), &numas)?.or(fitting);
    // Whole MiB, as configurations say it.
    let each_bytes = each.map(|bytes| bytes >> 20 << 20);
    explain(request, fitting, each_bytes, why);
    let cpus = parts.iter().map(|part| super::parts::cpus(part, request).len()).max();
    let heap = super::advice::check(request, each_bytes, cpus.unwrap_or(0), why)?;
    Ok(Shared { numas, each_bytes, heap_bytes: heap })
}

/// What is asked, if it fits.
fn asked(
    request: &Request,
    instances: usize,
    shares: Option<&[u64]>,
    numas: &[NumaSet],
) -> Result<Option<u64>, LayoutError> {
    let asked = match request.memory {
        MemoryAsked::Fitting => return Ok(None),
        MemoryAsked::Each(bytes) => bytes.0,
        MemoryAsked::Total(bytes) => bytes.0 / instances.max(1) as u64,
    };
    let least = shares.and_then(|shares| shares.iter().zip(numas).min_by_key(|(share, _)| **share));
    match least {
        Some((fits, numas)) if asked > *fits => Err(LayoutError::Memory {
            asked: Bytes(asked),
            fits: Bytes(*fits),
            numas: numas.clone(),
        }),
        _ => Ok(Some(asked)),
    }
}

fn explain(request: &Request, fitting: Option<u64>, each: Option<u64>, why: &mut Vec<Reason>) {
    let (fraction, least) = request.database.margin();
    let margin = format!("1/{fraction} of each NUMA node, at least {least}, is left to the kernel");
    let Some(each) = each else {
        let text = "the machine's memory is not known: nothing is said of it; give --memory SIZE";
        why.push(Reason::caution("memory", text));
        return;
    };
    let text = match (request.memory, fitting) {
        (MemoryAsked::Fitting, _) => {
            format!("{} for each instance: its share by cores; {margin}", Bytes(each))
        }
        (_, Some(fits)) => {
            format!(
                "{} for each instance, as asked; {} would fit; {margin}",
                Bytes(each),
                Bytes(fits)
            )
        }
        (_, None) => {
            let each = Bytes(each);
            format!("{each} for each instance, as asked; whether it fits is not known")
        }
    };
    why.push(Reason::new("memory", text));
}

/// Which instances have no memory of their own.
fn remote(parts: &[Vec<Core>], numas: &[NumaSet], why: &mut Vec<Reason>) {
    for (index, (part, memory)) in parts.iter().zip(numas).enumerate() {
        let own: NumaSet = cores_by_numa(part).into_iter().map(|(numa, _)| numa).collect();
        let bare = own.difference(memory);
        if !bare.is_empty() {
            let text = format!(
                "no memory that may be used is on NUMA {}: instance {} takes the nearest, of {}",
                bare,
                index + 1,
                memory
            );
            why.push(Reason::caution("memory", text));
        }
    }
}

/// Banks that a part takes memory from, ascending, each with the cores that use it.
fn banks_of(places: &Places, part: &[Core]) -> Vec<(usize, u64)> {
    let mut of: Vec<(usize, u64)> = Vec::new();
    for (numa, cores) in cores_by_numa(part) {
        let Some(bank) = nearest(&places.banks, numa) else { continue };
        match of.iter_mut().find(|(known, _)| *known == bank) {
            Some((_, users)) => *users += cores,
            None => of.push((bank, cores)),
        }
    }
    of.sort_unstable();
    of
}

/// The bank of `numa`, or the nearest that has memory; of equals the lowest.
fn nearest(banks: &[Bank], numa: NumaId) -> Option<usize> {
    let own = banks.iter().position(|bank| bank.id == numa)?;
    if banks[own].memory_bytes != Some(0) {
        return Some(own);
    }
    let distance = |bank: usize| banks[own].distances.get(bank).copied().unwrap_or(u32::MAX);
    let full = (0..banks.len()).filter(|&bank| banks[bank].memory_bytes > Some(0));
    full.min_by_key(|&bank| distance(bank)).or(Some(own))
}

fn share_of(
    request: &Request,
    places: &Places,
    of: &[(usize, u64)],
    users: &[Vec<(usize, u64)>],
) -> Option<u64> {
    of.iter()
        .map(|&(bank, cores)| {
            let usable = request.database.usable_bytes(places.banks[bank].memory_bytes?);
            let all: u64 = users.iter().flatten().filter(|(b, _)| *b == bank).map(|(_, c)| c).sum();
            // Below the usable bytes, because cores are at most all.
            Some((u128::from(usable) * u128::from(cores) / u128::from(all.max(1))) as u64)
        })
        .sum()
}
