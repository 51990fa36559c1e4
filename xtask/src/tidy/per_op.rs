//! The way of an operation is bare: no dynamic dispatch, box, map, formatting or logging per op.
//!
//! Input: the sources of `drive`. Output: findings. Every file of `drive` is taken to be on the
//! way of an operation; what runs before, after or once per interval is excepted by name, and an
//! exception that nothing needs is a finding too.

use super::Finding;
use super::rust::RustFile;

/// A file, the patterns let pass in it (none: all of them), and when they run.
type Exception = (&'static str, &'static [&'static str], &'static str);

const EXCEPTIONS: &[Exception] = &[
    ("crates/drive/src/control.rs", &[], "the control connection, before and after a run"),
    ("crates/drive/src/cql.rs", &["format!"], "CQL texts, made when statements are prepared"),
    ("crates/drive/src/cql_link.rs", &["Box<"], "how it frames, made when it begins"),
    ("crates/drive/src/exchange.rs", &["Box<", "Box::new"], "records, moved once per interval"),
    ("crates/drive/src/framed.rs", &["Box<", "Box::new"], "made when a connection begins"),
    ("crates/drive/src/handshake.rs", &["format!"], "before a connection takes operations"),
    ("crates/drive/src/offering.rs", &["format!"], "what hosts are asked before a run"),
    ("crates/drive/src/pacer.rs", &["Box<", "Box::new"], "the random stream, made with a worker"),
    ("crates/drive/src/run.rs", &[], "starts and ends the workers"),
    ("crates/drive/src/stream.rs", &["Box<", "Box::new"], "the control connection's socket"),
    ("crates/drive/src/tally.rs", &["Box<"], "records, moved once per interval"),
];

const PATTERNS: [(&str, &str); 12] = [
    ("dyn ", "make it generic"),
    ("Box<", "keep the value itself"),
    ("Box::new", "keep the value itself"),
    ("HashMap", "index an array"),
    ("Arc::clone", "share by reference"),
    ("format!", "write into a buffer that exists"),
    ("print!", "count it and show it later"),
    ("println!", "count it and show it later"),
    ("eprint!", "count it and show it later"),
    ("eprintln!", "count it and show it later"),
    ("tracing::", "count it and show it later"),
    ("log::", "count it and show it later"),
];

/// One use of a pattern.
#[derive(Debug)]
pub(crate) struct Use {
    file: String,
    line: usize,
    pattern: &'static str,
    cure: &'static str,
}

pub(crate) fn uses(file: &RustFile) -> Vec<Use> {
    if !file.path.starts_with("crates/drive/src/") {
        return Vec::new();
    }
    let mut uses = Vec::new();
    for (index, code) in file.code.iter().enumerate().filter(|(index, _)| !file.test[*index]) {
        let found = PATTERNS.iter().filter(|(pattern, _)| has_at_word_start(code, pattern));
        uses.extend(found.map(|&(pattern, cure)| Use {
            file: file.path.clone(),
            line: index + 1,
            pattern,
            cure,
        }));
    }
    uses
}

/// What is used and not excepted, and what is excepted and not used.
pub(crate) fn check(uses: &[Use]) -> Vec<Finding> {
    judge(uses, EXCEPTIONS)
}

fn judge(uses: &[Use], exceptions: &[Exception]) -> Vec<Finding> {
    let covers = |&(file, patterns, _): &Exception, one: &Use| {
        one.file == file && (patterns.is_empty() || patterns.contains(&one.pattern))
    };
    let mut findings: Vec<Finding> = uses
        .iter()
        .filter(|one| !exceptions.iter().any(|exception| covers(exception, one)))
        .map(|Use { file, line, pattern, cure }| Finding {
            file: file.clone(),
            line: *line,
            rule: "per-op",
            text: format!(
                "'{}' on the way of an operation: {cure}; or, where it runs before or after, \
                 add it to xtask/src/tidy/per_op.rs",
                pattern.trim()
            ),
        })
        .collect();
    let idle = |exception: &&Exception| !uses.iter().any(|one| covers(exception, one));
    findings.extend(exceptions.iter().filter(idle).map(|(file, patterns, _)| Finding {
        file: (*file).to_owned(),
        line: 0,
        rule: "per-op",
        text: format!("needs no exception for {patterns:?}: strike it off"),
    }));
    findings
}

fn has_at_word_start(code: &str, pattern: &str) -> bool {
    code.match_indices(pattern).any(|(at, _)| {
        !code[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str, exceptions: &[Exception]) -> Vec<Finding> {
        judge(&uses(&RustFile::new(path, text)), exceptions)
    }

    #[test]
    fn every_pattern_is_found_in_every_file_of_drive() {
        for (pattern, _) in PATTERNS {
            let text = format!("\nlet a = {pattern}(b);");
            let finding = &found("crates/drive/src/new.rs", &text, &[])[0];
            assert_eq!((finding.line, finding.rule), (2, "per-op"), "{text}");
            assert_eq!(found("crates/lab/src/a.rs", &text, &[]), [], "{text}");
            assert_eq!(found("crates/drive/tests/a.rs", &text, &[]), [], "{text}");
        }
        let fine = "MyBox<T> catalog::a // format!\n#[cfg(test)]\nmod a { format!() }";
        assert_eq!(found("crates/drive/src/new.rs", fine, &[]), []);
    }

    #[test]
    fn exceptions_are_for_what_is_there() {
        const FILE: &str = "crates/drive/src/a.rs";
        let all: &[Exception] = &[(FILE, &[], "before")];
        let boxes: &[Exception] = &[(FILE, &["Box<"], "before")];
        assert_eq!(found(FILE, "Box<A> format!()", all), []);
        assert_eq!(found(FILE, "Box<A>", boxes), []);
        assert_eq!(found(FILE, "Box<A> format!()", boxes).len(), 1);
        assert_eq!(found("crates/drive/src/b.rs", "Box<A>", boxes).len(), 2);
        assert!(found(FILE, "", all)[0].to_string().contains("strike it off"));
    }
}
