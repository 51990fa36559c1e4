//! Where the password comes from: a file, or the environment. Never the command line, which `ps`
//! shows.

use anyhow::{Context as _, bail};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use units::{Credentials, Secret};

const VARIABLE: &str = "WIDELOAD_PASSWORD";
/// Longest password file in bytes.
const SIZE_MAX: u64 = 4096;

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
                // A closed stderr is no reason to stop.
                let _ = writeln!(std::io::stderr(), "{warning}");
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
    let unread = || format!("cannot read --password-file {shown}; is it there, and yours to read?");
    let file = File::open(path).with_context(unread)?;
    let metadata = file.metadata().with_context(unread)?;
    let mut text = String::new();
    file.take(SIZE_MAX + 1).read_to_string(&mut text).with_context(unread)?;
    if text.len() as u64 > SIZE_MAX {
        bail!("--password-file {shown} is longer than {SIZE_MAX} bytes: give a file with one line");
    }
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
        assert!(refused().contains("is it there"));
        for (text, named) in [("", "empty"), ("\nword\n", "empty"), (&"x".repeat(4097), "longer")] {
            std::fs::write(&path, text).unwrap();
            assert!(refused().contains(named) && refused().contains("--password-file"));
        }
        std::fs::write(&path, b"\xff\n").unwrap();
        assert!(refused().contains("--password-file"));
    }
}
