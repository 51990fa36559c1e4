//! Arrows point down: who may depend on whom.
//!
//! Input: the JSON of `cargo metadata --no-deps`. Output: findings in the crates' manifests.
//! A crate uses crates of lower layers; of its own layer only as listed. What a crate needs for
//! its tests alone may also come from its own layer, still not from above.

use super::Finding;
use serde_json::Value;

const LAYERS: [&[&str]; 5] = [
    &["units"],
    &["wire", "ring", "workload", "machine", "record"],
    &["drive", "admin", "stage", "target", "analyze"],
    &["lab", "report"],
    &["wideload"],
];

/// Arrows inside a layer: from, to.
const INSIDE: [(&str, &str); 1] = [("lab", "report")];

/// Stands beside the layers: depends on none of ours, and none of ours on it.
const APART: &str = "xtask";

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|crates| crates.contains(&name))
}

pub(crate) fn check(metadata: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in list(metadata, "packages") {
        let name = text(package, "name");
        if name != APART && layer(name).is_none() {
            let what = "is in no layer: add it to LAYERS in xtask/src/tidy/layers.rs";
            findings.push(finding(name, format!("{name} {what}")));
            continue;
        }
        // Only crates of this workspace are given by path.
        for used in list(package, "dependencies").filter(|d| d["path"].is_string()) {
            let target = text(used, "name");
            let for_tests = text(used, "kind") == "dev";
            if !allowed(name, target, for_tests) {
                findings.push(finding(
                    name,
                    format!(
                        "{name} (L{}) depends on {target} (L{}): move the code down, or pass \
                         the value in from above",
                        shown(name),
                        shown(target)
                    ),
                ));
            }
        }
    }
    findings
}

fn allowed(from: &str, to: &str, for_tests: bool) -> bool {
    match (layer(from), layer(to)) {
        (Some(from), Some(to)) if to < from => true,
        (Some(a), Some(b)) if a == b => for_tests || INSIDE.contains(&(from, to)),
        _ => false,
    }
}

fn shown(name: &str) -> String {
    layer(name).map_or_else(|| "-".to_owned(), |layer| layer.to_string())
}

fn finding(name: &str, text: String) -> Finding {
    let file =
        if name == APART { "xtask/Cargo.toml".into() } else { format!("crates/{name}/Cargo.toml") };
    Finding { file, line: 0, rule: "layers", text }
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn findings(from: &str, to: &str, kind: Option<&str>) -> Vec<Finding> {
        let used = json!({ "name": to, "kind": kind, "path": "x" });
        check(&json!({ "packages": [{ "name": from, "dependencies": [used] }] }))
    }

    #[test]
    fn arrows_point_down() {
        for (from, to) in [("wire", "units"), ("lab", "report"), ("wideload", "lab")] {
            assert_eq!(findings(from, to, None), [], "{from} -> {to}");
        }
        for (from, to) in [
            ("units", "wire"),
            ("wire", "ring"),
            ("report", "lab"),
            ("stage", "drive"),
            ("xtask", "units"),
            ("wideload", "xtask"),
        ] {
            let found = findings(from, to, None);
            assert_eq!(found.len(), 1, "{from} -> {to}");
            assert!(found[0].to_string().contains(to), "{}", found[0]);
        }
    }

    #[test]
    fn tests_may_use_neighbours_and_not_what_is_above() {
        assert_eq!(findings("drive", "target", Some("dev")), []);
        assert_eq!(findings("wire", "drive", Some("dev")).len(), 1);
        assert_eq!(findings("drive", "target", Some("build")).len(), 1);
    }

    #[test]
    fn a_crate_without_a_layer_is_found_and_foreign_crates_are_not_judged() {
        let foreign = json!({ "name": "serde", "kind": null });
        let package = |name| json!({ "packages": [{ "name": name, "dependencies": [foreign] }] });
        assert_eq!(check(&package("newcomer")).len(), 1);
        assert_eq!(check(&package("units")), []);
    }
}
