//! Lengths of files, functions and lines, and the header of a module.
//!
//! Input: a Rust source. Output: a [`Shape`] for each thing that is too long or missing, with
//! its size, so that old ones can be let pass while they shrink.

use super::rust::{RustFile, end_of_item, line_of, words};

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;
const COLUMNS_MAX: usize = 100;

/// Something that is too large.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) rule: &'static str,
    /// The function for `function-length`, else empty.
    pub(crate) name: String,
    pub(crate) size: usize,
    pub(crate) text: String,
}

pub(crate) fn check(file: &RustFile) -> Vec<Shape> {
    let mut shapes = Vec::new();
    let mut found = |rule, line, name: &str, size, text: String| {
        let (file, name) = (file.path.clone(), name.to_owned());
        shapes.push(Shape { file, line, rule, name, size, text });
    };
    // The text after the last line break is no line.
    let lines = file.raw.len() - 1;
    if lines > FILE_LINES_MAX {
        let text = format!("{lines} lines, at most {FILE_LINES_MAX}: split the module");
        found("file-length", 0, "", lines, text);
    }
    for (name, line, lines) in functions(&file.whole_code()) {
        if lines > FUNCTION_LINES_MAX {
            let text =
                format!("fn {name} has {lines} lines, at most {FUNCTION_LINES_MAX}: divide it");
            found("function-length", line, name.as_str(), lines, text);
        }
    }
    for (line, text) in (1..).zip(&file.raw) {
        let columns = text.chars().count();
        if columns > COLUMNS_MAX {
            let text = format!("{columns} columns, at most {COLUMNS_MAX}: break the line");
            found("line-length", line, "", 1, text);
        }
    }
    if !has_header(&file.raw) {
        let text = "no `//!` at its head: say what it does, input -> output, source, limits";
        found("module-header", 1, "", 1, text.to_owned());
    }
    shapes
}

/// Inner attributes may stand before the header.
fn has_header(lines: &[String]) -> bool {
    let mut lines = lines.iter().map(|line| line.trim());
    lines.find(|line| !line.is_empty() && !line.starts_with("#!")).is_some_and(|line| {
        line.strip_prefix("//!").is_some_and(|header| !header.trim().is_empty())
    })
}

/// Name, first line and number of lines of each function with a body.
fn functions(code: &str) -> Vec<(String, usize, usize)> {
    let mut functions = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let follows_word =
            code[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_');
        let name = words(&code[at + 3..]).next();
        let (false, Some(name), Some(end)) = (follows_word, name, end_of_item(code, at)) else {
            continue;
        };
        let (first, last) = (line_of(code, at), line_of(code, end));
        functions.push((name.to_owned(), first, last - first + 1));
    }
    functions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes(text: &str) -> Vec<(&'static str, usize)> {
        let file = RustFile::new("crates/a/src/a.rs", text);
        check(&file).into_iter().map(|shape| (shape.rule, shape.line)).collect()
    }

    #[test]
    fn lengths_up_to_the_limit_pass_and_one_more_does_not() {
        let file = |lines: usize| "//! A.\n".to_owned() + &"\n".repeat(lines - 1);
        assert_eq!(shapes(&file(FILE_LINES_MAX)), []);
        assert_eq!(shapes(&file(FILE_LINES_MAX + 1)), [("file-length", 0)]);
        let function = |lines: usize| {
            let body = "    {};\n".repeat(lines - 2);
            format!("//! A.\nfn a(b: [u8; 4]) -> impl Fn() {{\n{body}}}\nfn c();\n")
        };
        assert_eq!(shapes(&function(FUNCTION_LINES_MAX)), []);
        assert_eq!(shapes(&function(FUNCTION_LINES_MAX + 1)), [("function-length", 2)]);
        let line = |columns: usize| "//! ".to_owned() + &"ä".repeat(columns - 4) + "\n";
        assert_eq!(shapes(&line(COLUMNS_MAX)), []);
        assert_eq!(shapes(&line(COLUMNS_MAX + 1)), [("line-length", 1)]);
    }

    #[test]
    fn braces_in_literals_do_not_end_a_function() {
        let text = format!("//! A.\nfn a() {{\n    b(\"}}\", '}}');\n{}}}\n", "\n".repeat(70));
        assert_eq!(shapes(&text), [("function-length", 2)]);
    }

    #[test]
    fn a_module_says_what_it_is() {
        assert_eq!(shapes("#![no_main]\n\n//! A.\n"), []);
        assert_eq!(shapes("//!\nfn a() {}\n"), [("module-header", 1)]);
        assert_eq!(shapes("// A.\n//! A.\n"), [("module-header", 1)]);
        assert_eq!(shapes(""), [("module-header", 1)]);
    }
}
