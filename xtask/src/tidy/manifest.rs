//! A dependency has its reason.
//!
//! Input: a `Cargo.toml`. Output: dependencies of the workspace (or of one on its own, as
//! `fuzz`) without a comment above them, and those of a crate that bypass the workspace's list.
//! A comment speaks for all lines up to the next blank one or the next comment.

use super::Finding;

pub(crate) fn check(path: &str, text: &str) -> Vec<Finding> {
    // The manifest that says why: the root's, and that of the separate fuzzing workspace.
    let gives_reasons = text.lines().any(|line| line.trim() == "[workspace]");
    let (mut in_dependencies, mut reason) = (false, false);
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if let Some(table) = line.strip_prefix('[').filter(|_| !line.contains('=')) {
            in_dependencies = table.trim_end_matches(']').ends_with("dependencies");
            reason = false;
        } else if line.starts_with('#') {
            reason = true;
        } else if line.is_empty() {
            reason = false;
        } else if in_dependencies && line.contains('=') {
            let name = line.split(['=', '.']).next().unwrap_or(line).trim();
            let mut found = |text| {
                let rule = "dependency";
                findings.push(Finding { file: path.to_owned(), line: number, rule, text });
            };
            if gives_reasons && !reason {
                found(format!("{name} has no reason: say in a comment above it what it is for"));
            }
            if !gives_reasons && !line.replace(' ', "").contains("workspace=true") {
                found(format!(
                    "{name} is not from the workspace: list it in the root Cargo.toml with its \
                     reason, and write {name}.workspace = true here"
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_of_the_workspace_have_reasons() {
        let text = "[workspace]\n[workspace.dependencies]\n# Ours.\na = 1\nb = 2\n\nc = 3\n\
                    # Because.\nd = { e = 4 }\n\n[profile.ci]\nlto = false\n";
        let found = check("Cargo.toml", text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].to_string().starts_with("Cargo.toml:7: dependency: c "), "{}", found[0]);
    }

    #[test]
    fn crates_take_theirs_from_the_workspace() {
        let text = "[dependencies]\na.workspace = true\nb = { workspace = true, x = [] }\n\
                    c = \"1\"\n[dev-dependencies]\nd = { path = \"../d\" }\n[lints]\ne = 1\n";
        let found = check("crates/a/Cargo.toml", text);
        assert_eq!(found.iter().map(|f| f.line).collect::<Vec<_>>(), [4, 6], "{found:?}");
    }
}
