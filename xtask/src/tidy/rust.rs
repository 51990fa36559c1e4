//! A Rust source with its code, its comments and its literals told apart.
//!
//! Input: the text of a file. Output: [`RustFile`]: per line the code with literals and comments
//! blanked out, the text of its comments, and whether it is test code. Columns are kept.

/// A source file, line by line; all vectors are of the same length.
pub(crate) struct RustFile {
    /// Path from the top of the workspace.
    pub(crate) path: String,
    /// As written.
    pub(crate) raw: Vec<String>,
    /// Without comments; strings and characters are empty.
    pub(crate) code: Vec<String>,
    /// The text of comments.
    pub(crate) comments: Vec<String>,
    /// In a test, bench or example, or below `#[cfg(test)]`.
    pub(crate) test: Vec<bool>,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Code,
    Line,
    Block(u32),
    Text,
    RawText(usize),
}

impl RustFile {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let (code, comments) = split(text);
        let lines = |text: &str| text.split('\n').map(str::to_owned).collect::<Vec<_>>();
        let raw = lines(text);
        let test = test_lines(path, &code, raw.len());
        Self { path: path.to_owned(), raw, code: lines(&code), comments: lines(&comments), test }
    }

    /// All code as one text, with the line breaks.
    pub(crate) fn whole_code(&self) -> String {
        self.code.join("\n")
    }
}

/// The code and the comments of `text`, each with blanks for the other.
fn split(text: &str) -> (String, String) {
    let chars: Vec<char> = text.chars().collect();
    let (mut code, mut comments) = (String::new(), String::new());
    let mut state = State::Code;
    let mut i = 0;
    while i < chars.len() {
        let (next, used, shown) = step(&chars, i, state);
        for &c in &chars[i..i + used] {
            let in_comment = matches!(state, State::Line | State::Block(_));
            let blank = if c == '\n' { '\n' } else { ' ' };
            code.push(if shown { c } else { blank });
            comments.push(if in_comment { c } else { blank });
        }
        (state, i) = (next, i + used);
    }
    (code, comments)
}

/// From `chars[i]` in `state`: the next state, how many characters belong to this step, and
/// whether they are code.
fn step(chars: &[char], i: usize, state: State) -> (State, usize, bool) {
    let c = chars[i];
    let after = chars.get(i + 1).copied().unwrap_or('\n');
    match state {
        State::Code => match c {
            '/' if after == '/' => (State::Line, 2, false),
            '/' if after == '*' => (State::Block(1), 2, false),
            '"' => (State::Text, 1, true),
            '\'' => (State::Code, char_literal(chars, i), false),
            'r' if !follows_word(chars, i) || is_prefix(chars, i) => {
                let hashes = chars[i + 1..].iter().take_while(|c| **c == '#').count();
                if chars.get(i + 1 + hashes) == Some(&'"') {
                    (State::RawText(hashes), hashes + 2, true)
                } else {
                    (State::Code, 1, true)
                }
            }
            _ => (State::Code, 1, true),
        },
        State::Line => (if c == '\n' { State::Code } else { state }, 1, false),
        State::Block(depth) => match (c, after) {
            ('*', '/') if depth == 1 => (State::Code, 2, false),
            ('*', '/') => (State::Block(depth - 1), 2, false),
            ('/', '*') => (State::Block(depth + 1), 2, false),
            _ => (state, 1, false),
        },
        State::Text => match c {
            '\\' => (state, 2.min(chars.len() - i), false),
            '"' => (State::Code, 1, true),
            _ => (state, 1, false),
        },
        State::RawText(hashes) => {
            let closes = c == '"'
                && chars[i + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes;
            if closes { (State::Code, hashes + 1, true) } else { (state, 1, false) }
        }
    }
}

/// The length of the character literal at `i`; 1 for the tick of a lifetime.
fn char_literal(chars: &[char], i: usize) -> usize {
    match chars.get(i + 1) {
        Some('\\') => {
            let end = chars[i + 3..].iter().take(12).position(|c| *c == '\'');
            end.map_or(1, |end| end + 4)
        }
        Some(_) if chars.get(i + 2) == Some(&'\'') => 3,
        _ => 1,
    }
}

fn follows_word(chars: &[char], i: usize) -> bool {
    i > 0 && (chars[i - 1].is_alphanumeric() || chars[i - 1] == '_')
}

/// Whether the `r` at `i` is that of `br"` or `cr"`.
fn is_prefix(chars: &[char], i: usize) -> bool {
    i > 0 && matches!(chars[i - 1], 'b' | 'c') && !follows_word(chars, i - 1)
}

fn test_lines(path: &str, code: &str, lines: usize) -> Vec<bool> {
    let directories = ["/tests/", "/benches/", "/examples/"];
    if directories.iter().any(|d| path.contains(d))
        || ["/tests.rs", "_tests.rs"].iter().any(|end| path.ends_with(end))
    {
        return vec![true; lines];
    }
    let mut test = vec![false; lines];
    let mut from = 0;
    while let Some(start) = code[from..].find("#[cfg(").map(|at| at + from) {
        let end = code[start..].find(']').map_or(code.len(), |at| at + start);
        let attribute = &code[start..end];
        from = end;
        if !has_word(attribute, "test") || attribute.contains("not(test") {
            continue;
        }
        let end = end_of_item(code, end).unwrap_or(code.len());
        for line in line_of(code, start)..=line_of(code, end) {
            test[line - 1] = true;
        }
        from = end;
    }
    test
}

/// The offset of the end of the item at `from`: its semicolon or its closing brace.
pub(crate) fn end_of_item(code: &str, from: usize) -> Option<usize> {
    let mut braces = 0u32;
    let mut brackets = 0u32;
    for (at, c) in code[from..].char_indices() {
        match c {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets = brackets.saturating_sub(1),
            '{' => braces += 1,
            '}' if braces <= 1 => return Some(from + at),
            '}' => braces -= 1,
            ';' if braces == 0 && brackets == 0 => return Some(from + at),
            _ => {}
        }
    }
    None
}

/// The line, counted from 1, of an offset.
pub(crate) fn line_of(code: &str, offset: usize) -> usize {
    code[..offset].matches('\n').count() + 1
}

/// The words of a line: identifiers, keywords, numbers.
pub(crate) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

pub(crate) fn has_word(line: &str, wanted: &str) -> bool {
    words(line).any(|word| word == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        RustFile::new("crates/a/src/a.rs", text).whole_code()
    }

    #[test]
    fn comments_and_literals_are_no_code() {
        for (text, rest) in [
            ("a // b", "a     "),
            ("a /* b /* c */ d */ e", "a                   e"),
            ("f(\"a\\\"b\") g", "f(\"    \") g"),
            ("r#\"a\"b\"# c", "r#\"   \"# c"),
            ("br\"a\\\" c", "br\"  \" c"),
            ("'\"' a '\\'' b", "    a      b"),
            ("'\\u{1F600}' c", "            c"),
            ("&'a str", "& a str"),
            ("r#type r", "r#type r"),
            ("\"a\nb\" c", "\" \n \" c"),
            ("\"open \\", "\"      "),
        ] {
            assert_eq!(code(text), rest, "{text}");
        }
    }

    #[test]
    fn comments_are_kept_by_line() {
        let file = RustFile::new("a.rs", "a // SAFETY: b\n\"// c\"\n/* d\ne */");
        let comments: Vec<_> = file.comments.iter().map(|c| c.trim()).collect();
        assert_eq!(comments, ["SAFETY: b", "", "d", "e */"]);
    }

    #[test]
    fn test_code_is_told_apart() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() { {} }\n}\nfn c() {}\n\
                    #[cfg(all(test, x))]\nuse d;\n#[cfg(not(test))]\nfn e() {}";
        let file = RustFile::new("crates/a/src/a.rs", text);
        let tests: Vec<usize> = (1..).zip(&file.test).filter(|(_, t)| **t).map(|x| x.0).collect();
        assert_eq!(tests, [2, 3, 4, 5, 7, 8]);
        assert!(RustFile::new("crates/a/tests/b.rs", "x").test[0]);
        assert!(!RustFile::new("crates/a/src/tested.rs", "x").test[0]);
    }
}
