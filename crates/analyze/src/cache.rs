//! Whether the data can be in memory while it is read.
//!
//! Input: bytes of data and of memory on the hosts that hold them. Output: a class. Pure.
//!
//! Source: Intel's Cassandra tuning guide measures with data beyond the memory and knows customers
//! with at least twice as much. Limits: before compression, overhead and replicas; a skewed
//! workload reads a smaller part, and a database may be given less memory than its host has.

/// Up to this share of the memory all data can stay in it, beside heap and kernel.
const IN_CACHE_SHARE_MAX: f64 = 0.5;
/// From so many times the memory on most reads go to a disk.
const ON_DISK_SHARE_MIN: f64 = 2.0;

/// Where reads are answered from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheClass {
    /// From memory.
    InCache,
    /// From memory and from disk, in unknown parts.
    Mixed,
    /// Mostly from disk.
    OnDisk,
}

impl CacheClass {
    /// Of so much data on hosts with so much memory.
    #[must_use]
    pub fn of(data_bytes: u64, memory_bytes: u64) -> Self {
        let share = data_bytes as f64 / (memory_bytes as f64).max(1.0);
        if share <= IN_CACHE_SHARE_MAX {
            Self::InCache
        } else if share < ON_DISK_SHARE_MIN {
            Self::Mixed
        } else {
            Self::OnDisk
        }
    }

    /// In JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::InCache => "in-cache",
            Self::Mixed => "mixed",
            Self::OnDisk => "on-disk",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_the_memory_is_in_cache_and_twice_the_memory_on_disk() {
        for (data, name) in
            [(0, "in-cache"), (50, "in-cache"), (51, "mixed"), (199, "mixed"), (200, "on-disk")]
        {
            assert_eq!(CacheClass::of(data, 100).name(), name, "{data}");
        }
        assert_eq!(CacheClass::of(u64::MAX, 0), CacheClass::OnDisk);
    }
}
