//! Words that must not be in the code, or only in some places.
//!
//! Input: a Rust source with literals and comments told apart. Output: findings.

use super::Finding;
use super::rust::{RustFile, has_word, words};

/// Where `unsafe` may be: a prefix of the path.
const UNSAFE: [&str; 7] = [
    "crates/ring/src/",
    "crates/units/src/clock.rs",
    "crates/stage/src/exec.rs",
    // set_mempolicy.
    "crates/stage/src/exec/memory.rs",
    "crates/stage/src/perf.rs",
    // The counting allocator.
    "crates/drive/tests/allocations.rs",
    "crates/wideload/tests/allocations.rs",
];

/// Identifiers of other projects' interfaces that say *node*.
const FOREIGN_IDENTIFIERS: [&str; 3] = ["get_nodes_info", "NodeAddr", "known_node_addr"];

/// The crate that speaks with a driver in the driver's words.
const FOREIGN_VOCABULARY: &str = "crates/admin/src/";

/// Names for modules that say nothing.
const EMPTY_NAMES: [&str; 5] = ["common", "util", "utils", "helper", "helpers"];

/// How far above an `unsafe` its SAFETY comment may begin.
const SAFETY_LINES: usize = 12;

pub(crate) fn check(file: &RustFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut found = |line: usize, rule, text: String| {
        findings.push(Finding { file: file.path.clone(), line, rule, text });
    };
    let is_library = file.path.starts_with("crates/")
        && file.path.contains("/src/")
        && !file.path.starts_with("crates/wideload/");
    if let Some(name) = empty_name(&file.path) {
        let text = format!("{name} names no subject: call it after what it is about");
        found(0, "module-name", text);
    }
    for (index, code) in file.code.iter().enumerate() {
        let line = index + 1;
        let test = file.test[index];
        if has_word(code, "unsafe") {
            if !UNSAFE.iter().any(|place| file.path.starts_with(place)) {
                let text = "only in the places listed in xtask/src/tidy/words.rs: use rustix";
                found(line, "unsafe", text.to_owned());
            }
            if needs_safety(code) && !has_safety(file, index) {
                let text = "no SAFETY comment above it: say why it is sound";
                found(line, "safety", text.to_owned());
            }
        }
        if is_library && !test {
            for (pattern, cure) in [
                (".unwrap()", "return the error"),
                (".expect(", "return the error"),
                ("panic!", "return an error"),
                ("process::exit", "return to main"),
            ] {
                if code.contains(pattern) {
                    found(line, "panic", format!("{pattern} in a library: {cure}"));
                }
            }
        }
        if let Some(word) = unfinished(code, &file.comments[index]) {
            found(line, "unfinished", format!("{word}: finish it or leave it out"));
        }
        let foreign = file.path.starts_with(FOREIGN_VOCABULARY);
        for word in words(code).filter(|word| !foreign && is_banned(word)) {
            let text = format!("'{word}' says node: host, instance or numa is meant");
            found(line, "vocabulary", text);
        }
    }
    findings
}

fn empty_name(path: &str) -> Option<&str> {
    path.trim_end_matches(".rs").split('/').find(|part| EMPTY_NAMES.contains(part))
}

/// Blocks and implementations; a function says so in its documentation.
fn needs_safety(code: &str) -> bool {
    let after = code.split_once("unsafe").map_or("", |(_, after)| after).trim_start();
    after.is_empty() || after.starts_with('{') || after.starts_with("impl")
}

/// Whether the comment of the statement at `index` says SAFETY.
fn has_safety(file: &RustFile, index: usize) -> bool {
    let first = index.saturating_sub(SAFETY_LINES);
    for above in (first..=index).rev() {
        if file.comments[above].contains("SAFETY:") {
            return true;
        }
        // Another statement ends there.
        let code = file.code[above].trim_end();
        if above < index && (code.ends_with([';', '}']) || file.raw[above].trim().is_empty()) {
            return false;
        }
    }
    false
}

fn unfinished(code: &str, comment: &str) -> Option<&'static str> {
    let in_code = ["todo!", "unimplemented!", "#[ignore"];
    // In two halves, because this file is read too.
    let in_comments = [concat!("FIX", "ME"), concat!("X", "XX")];
    in_code
        .into_iter()
        .find(|pattern| code.contains(pattern))
        .or_else(|| in_comments.into_iter().find(|word| has_word(comment, word)))
}

/// `node` as a part of `snake_case` or `CamelCase`.
fn is_banned(word: &str) -> bool {
    if FOREIGN_IDENTIFIERS.contains(&word) {
        return false;
    }
    let mut spaced = String::new();
    for c in word.chars() {
        if c.is_uppercase() {
            spaced.push('_');
        }
        spaced.extend(c.to_lowercase());
    }
    let upper = word.chars().all(|c| !c.is_lowercase());
    let parts = if upper { word.to_lowercase() } else { spaced };
    parts.split('_').any(|part| matches!(part, "node" | "nodes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<&'static str> {
        check(&RustFile::new(path, text)).into_iter().map(|finding| finding.rule).collect()
    }

    const LIB: &str = "crates/lab/src/a.rs";

    #[test]
    fn unsafe_has_its_places_and_its_reasons() {
        let sound = "// SAFETY: b.\nlet a = f(\n    unsafe { g() });";
        assert_eq!(rules("crates/ring/src/a.rs", sound), [""; 0]);
        assert_eq!(rules(LIB, sound), ["unsafe"]);
        for text in [
            "unsafe { g() };",
            "// SAFETY: b.\nlet a = 1;\nunsafe { g() };",
            "// SAFETY: b.\n\nunsafe { g() };",
            "unsafe impl Send for A {}",
            "// Safe.\nlet a = unsafe\n{ g() };",
        ] {
            assert_eq!(rules("crates/ring/src/a.rs", text), ["safety"], "{text}");
        }
        assert_eq!(rules(LIB, "#![deny(unsafe_code)] // unsafe { }\nf(\"unsafe {\")"), [""; 0]);
        assert_eq!(rules("crates/ring/src/a.rs", "unsafe fn a();"), [""; 0]);
    }

    #[test]
    fn libraries_return_errors() {
        for text in ["a.unwrap();", "a\n.expect(b);", "panic!(a)", "std::process::exit(1)"] {
            assert_eq!(rules(LIB, text), ["panic"], "{text}");
            assert_eq!(rules("crates/lab/tests/a.rs", text), [""; 0], "{text}");
            assert_eq!(rules("crates/wideload/src/main.rs", text), [""; 0], "{text}");
            assert_eq!(rules(LIB, &format!("#[cfg(test)]\nmod a {{ {text} }}")), [""; 0]);
        }
        assert_eq!(rules(LIB, "a.unwrap_or(b).expect_err(c) // .unwrap()"), [""; 0]);
    }

    #[test]
    fn nothing_is_left_unfinished() {
        let comment = |word: &str| format!("// {word}: later");
        for text in [
            "todo!()",
            "unimplemented!()",
            "#[ignore = \"slow\"]",
            &comment(concat!("FIX", "ME")),
            &comment(concat!("X", "XX")),
        ] {
            assert_eq!(rules("xtask/src/a.rs", text), ["unfinished"], "{text}");
        }
        assert_eq!(rules(LIB, &format!("f(\"todo!\", \"{}\")", concat!("X", "XX"))), [""; 0]);
    }

    #[test]
    fn modules_are_named_after_their_subject() {
        assert_eq!(rules("crates/lab/src/util.rs", ""), ["module-name"]);
        assert_eq!(rules("crates/lab/tests/common/mod.rs", ""), ["module-name"]);
        assert_eq!(rules("crates/lab/src/utility.rs", ""), [""; 0]);
    }

    #[test]
    fn hosts_instances_and_numa_are_told_apart() {
        for text in ["node", "numa_nodes", "NodeId", "clusterNode", "NODE_MAX"] {
            assert_eq!(rules(LIB, text), ["vocabulary"], "{text}");
        }
        let fine = "anode nodelist Nodule get_nodes_info // node\nf(\"/sys/devices/system/node\")";
        assert_eq!(rules(LIB, fine), [""; 0]);
    }
}
