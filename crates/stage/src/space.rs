//! Room in a file system.
//!
//! Input: a path that exists. Output: bytes. Source: statvfs(3).

use std::io;
use std::path::Path;
use units::Bytes;

/// How much room there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// For this user.
    pub free: Bytes,
    /// In all.
    pub total: Bytes,
}

/// The room in the file system of `path`.
///
/// # Errors
/// What the kernel says: no such path, or one that may not be reached.
pub fn of(path: &Path) -> io::Result<Space> {
    let found = rustix::fs::statvfs(path)?;
    let bytes = |blocks: u64| Bytes(blocks.saturating_mul(found.f_frsize));
    Ok(Space { free: bytes(found.f_bavail), total: bytes(found.f_blocks) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_somewhere_and_none_where_nothing_is() {
        let space = of(Path::new("/")).unwrap();
        assert!(space.total > Bytes(0) && space.free <= space.total, "{space:?}");
        assert!(of(Path::new("/no/such/place")).is_err());
    }
}
