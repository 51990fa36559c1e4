//! Where the password comes from: a file, or the environment. Never the command line, which `ps`
//! shows.

use crate::output;
use anyhow::{Context as _, bail};
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use units::{Bytes, Credentials, Secret, read_plain_text};

const VARIABLE: &str = "WIDELOAD_PASSWORD";
/// Longest password file.
const SIZE_MAX: Bytes = Bytes(4096);

/// Who to log in as, if anybody. Warns on stderr of a file that others may read.
pub(crate) fn credentials(
    user: Option<&String>,
    password_file: Option<&Path>,
) -> anyhow::Result<Option<Credentials>> {
    let Some(user) = user.cloned() else { return Ok(None) };
    let password = match (password_file, std::env::var_os(VARIABLE)) {
        (Some(file), _) => {
            let (password, warning) = read(file)?;
            if let Some(warning) = warning {
                output::tell(&warning);
            }
            password
        }
        (None, Some(word)) => of_environment(word)?,
        (None, None) => bail!(
            "--user {user} needs a password: give --password-file FILE, or the environment \
             variable {VARIABLE}"
        ),
    };
    Ok(Some(Credentials { user, password }))
}

fn of_environment(word: OsString) -> anyhow::Result<Secret> {
    match word.into_string() {
        Ok(word) => Ok(Secret::new(word)),
        Err(_) => bail!("the password in {VARIABLE} is not UTF-8: give --password-file FILE"),
    }
}

/// The first line of a file, and a warning where others than its owner may read it.
fn read(path: &Path) -> anyhow::Result<(Secret, Option<String>)> {
    let shown = path.display();
    let unread = || {
        format!(
            "cannot read --password-file {shown}; give a regular file that is yours to read, with \
             the password in its first line, or set {VARIABLE}"
        )
    };
    let text = read_plain_text(path, SIZE_MAX).with_context(unread)?;
    let metadata = path.metadata().with_context(unread)?;
    let password = text.lines().next().unwrap_or_default();
    if password.is_empty() {
        bail!("--password-file {shown} has an empty first line: write the password there");
    }
    let mode = metadata.permissions().mode() & 0o777;
    let warning = (mode & 0o077 != 0).then(|| {
        format!(
            "warning: --password-file {shown} can be read by others (mode {mode:o}): chmod 600 it"
        )
    });
    Ok((Secret::new(password), warning))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;

    #[test]
    fn the_first_line_is_the_password_and_wide_permissions_are_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("password");
        std::fs::write(&path, "hunter2 \r\nmore\n").unwrap();
        for (mode, told) in [(0o600, false), (0o400, false), (0o640, true), (0o604, true)] {
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let (password, warning) = read(&path).unwrap();
            assert_eq!(password.expose(), "hunter2 ", "spaces may belong to it");
            assert_eq!(warning.is_some(), told, "{mode:o}");
            assert!(warning.is_none_or(|w| w.contains("chmod 600") && !w.contains("hunter2")));
        }
    }

    #[test]
    fn files_without_a_password_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("password");
        let refused = || format!("{:#}", read(&path).unwrap_err());
        assert!(refused().contains("yours to read"));
        for (text, named) in [("", "empty"), ("\nword\n", "empty"), (&"x".repeat(4097), "larger")] {
            std::fs::write(&path, text).unwrap();
            assert!(refused().contains(named) && refused().contains("--password-file"));
        }
        std::fs::write(&path, b"\xff\n").unwrap();
        assert!(refused().contains("--password-file"));
        let endless = format!("{:#}", read(Path::new("/dev/zero")).unwrap_err());
        assert!(endless.contains("regular file"), "{endless}");
    }
}
