//! Which cpus the calling thread runs on.

use crate::{CpuId, CpuSet};
use rustix::thread::{CpuSet as Mask, sched_getaffinity, sched_setaffinity};
use std::io;

/// Keeps the calling thread, and threads that it starts from now on, on these cpus.
///
/// # Errors
/// What the kernel says: none of them is online and allowed, or a number is beyond its mask.
pub fn pin_current_thread(cpus: &CpuSet) -> io::Result<()> {
    let mut mask = Mask::new();
    for cpu in cpus.iter() {
        if cpu.0 as usize >= Mask::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        mask.set(cpu.0 as usize);
    }
    Ok(sched_setaffinity(None, &mask)?)
}

/// The cpus that the calling thread may run on.
///
/// # Errors
/// What the kernel says: more cpus than its mask can name.
pub fn cpus_of_current_thread() -> io::Result<CpuSet> {
    let mask = sched_getaffinity(None)?;
    let set = (0..Mask::MAX_CPU).filter(|&cpu| mask.is_set(cpu));
    Ok(set.map(|cpu| CpuId(cpu as u32)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_is_where_it_was_pinned() {
        std::thread::spawn(|| {
            let all = cpus_of_current_thread().unwrap();
            let last: CpuSet = all.iter().last().into_iter().collect();
            pin_current_thread(&last).unwrap();
            assert_eq!(cpus_of_current_thread().unwrap(), last);
        })
        .join()
        .unwrap();
    }
}
