//! What no tracked text may hold: paths of somebody's machine, hosts of package registries.
//!
//! Input: any text file. Output: findings. A clone must work elsewhere, and a build must not
//! depend on where packages came from.

use super::Finding;

/// In two halves each, because this file is read too.
const PATHS: [&str; 3] = [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/")];

const REGISTRIES: [&str; 10] = [
    concat!("index.crates", ".io"),
    concat!("static.crates", ".io"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("repo.maven", ".apache"),
    concat!("repo1.maven", ".org"),
    concat!("proxy.golang", ".org"),
    concat!("registry.npmjs", ".org"),
    concat!("arti", "factory"),
    concat!("index", "-url"),
];

/// The one source of packages that a lock file may name.
const LOCK_SOURCE: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(crate) fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut found = |line, rule, text| {
        findings.push(Finding { file: path.to_owned(), line, rule, text });
    };
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(machine) = PATHS.into_iter().find(|path| has_path(line, path)) {
            let text = format!("{machine} is a path of one machine: make it relative, or a flag");
            found(number, "machine-path", text);
        }
        if let Some(host) = REGISTRIES.into_iter().find(|host| line.contains(host)) {
            let text = format!("{host} names a registry: leave that to the user's configuration");
            found(number, "registry", text);
        }
        let source = line.strip_prefix("source = ").filter(|_| path.ends_with("Cargo.lock"));
        if let Some(source) = source.filter(|source| source.trim_matches('"') != LOCK_SOURCE) {
            let text = format!("{source} is not the public index: take a published release");
            found(number, "registry", text);
        }
    }
    findings
}

/// Whether `path` begins a path in `line`, and is not the middle of one.
fn has_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '}'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_a_machine_are_found() {
        for path in PATHS {
            assert_eq!(check("a.md", &format!("see {path}me/x")).len(), 1, "{path}");
            assert_eq!(check("a.md", &format!("https://a.b{path}x and $PWD/a{path}x")), []);
        }
    }

    #[test]
    fn registries_are_not_named() {
        for host in REGISTRIES {
            let found = check("a.toml", &format!("a\nb = \"https://{host}/x\""));
            assert_eq!(found.iter().map(|f| f.line).collect::<Vec<_>>(), [2], "{host}");
        }
        assert_eq!(check("fuzz/Cargo.lock", &format!("source = \"{LOCK_SOURCE}\"")), []);
        assert_eq!(check("Cargo.lock", "source = \"git+https://example.org/a\"").len(), 1);
    }
}
