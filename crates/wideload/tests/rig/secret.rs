//! Whether a secret is where it must not be.

use std::fs;
use std::path::Path;

/// Whether `bytes` hold it.
pub(crate) fn has(bytes: &[u8], secret: &str) -> bool {
    bytes.windows(secret.len()).any(|part| part == secret.as_bytes())
}

/// Fails when a file below has it; how many there are.
pub(crate) fn assert_in_no_file(directory: &Path, secret: &str) -> usize {
    let mut files = 0;
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            files += assert_in_no_file(&path, secret);
        } else if path.is_file() {
            files += 1;
            // What a database removes meanwhile is not there any more.
            let bytes = fs::read(&path).unwrap_or_default();
            assert!(!has(&bytes, secret), "the secret is in {}", path.display());
        }
    }
    files
}
