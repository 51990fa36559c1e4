//! Statements of profiles name their table alone; here they get its keyspace, so that they mean the
//! same on every connection: CQL -> the same with `keyspace.` before the tables.
//!
//! A table is what stands behind FROM, INTO, or UPDATE at the start of a statement. Texts, quoted
//! names and comments are passed over. What is not CQL stays what it is, for the database
//! to refuse.

/// The names behind FROM, INTO and UPDATE with their keyspace.
#[must_use]
pub(super) fn queried(cql: &str, keyspace: &str) -> String {
    let before = |words: &[&str]| {
        matches!(words.last(), Some(&("from" | "into")))
            || words == ["update"]
            || matches!(words, [.., "batch" | ";", "update"])
    };
    qualified(cql, keyspace, before)
}

/// Puts the keyspace before each name that `wanted` by the words before it, in small letters, and
/// that has none.
fn qualified(cql: &str, keyspace: &str, wanted: impl Fn(&[&str]) -> bool) -> String {
    let lower = cql.to_ascii_lowercase();
    let mut text = String::with_capacity(cql.len() + keyspace.len() + 3);
    let mut words: Vec<&str> = Vec::new();
    let mut at = 0;
    while let Some(size) = token(&cql[at..]) {
        let (token, word) = (&cql[at..at + size], &lower[at..at + size]);
        at += size;
        if is_passed_over(token) {
            text.push_str(token);
            continue;
        }
        let is_name = token.starts_with(|c: char| c == '"' || c == '_' || c.is_alphanumeric());
        let has_keyspace = || following(&cql[at..]).starts_with('.');
        if is_name && wanted(&words) && !has_keyspace() {
            text.push_str(keyspace);
            text.push('.');
        }
        text.push_str(token);
        words.push(if token.starts_with('"') { "\"" } else { word });
    }
    text
}

/// The tokens of a statement, without blanks and comments.
#[must_use]
pub(super) fn words(mut cql: &str) -> Vec<&str> {
    let mut words = Vec::new();
    while let Some(size) = token(cql) {
        let (word, rest) = cql.split_at(size);
        if !is_passed_over(word) {
            words.push(word);
        }
        cql = rest;
    }
    words
}

/// What stands behind blanks and comments.
fn following(mut text: &str) -> &str {
    while let Some(size) = token(text).filter(|size| is_passed_over(&text[..*size])) {
        text = &text[size..];
    }
    text
}

/// Whether a token is a blank or a comment.
fn is_passed_over(token: &str) -> bool {
    token.starts_with(char::is_whitespace)
        || ["--", "//", "/*"].iter().any(|c| token.starts_with(c))
}

/// Size of the token at the start of a text; None at its end.
fn token(text: &str) -> Option<usize> {
    let first = text.chars().next()?;
    let up_to = |end: &str, from: usize| text[from..].find(end).map(|at| from + at + end.len());
    let while_ = |is: fn(char) -> bool| text.find(|c| !is(c)).unwrap_or(text.len());
    Some(match first {
        '\'' | '"' => up_to(&text[..1], 1).unwrap_or(text.len()),
        '$' if text.starts_with("$$") => up_to("$$", 2).unwrap_or(text.len()),
        '-' | '/' if text.starts_with("--") || text.starts_with("//") => {
            text.find('\n').unwrap_or(text.len())
        }
        '/' if text.starts_with("/*") => up_to("*/", 2).unwrap_or(text.len()),
        c if c.is_whitespace() => while_(char::is_whitespace),
        c if c.is_alphanumeric() || c == '_' => while_(|c| c.is_alphanumeric() || c == '_'),
        c => c.len_utf8(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_get_their_keyspace_and_nothing_else_does() {
        for (cql, wanted) in [
            ("select * from t where a = ?", "select * from k.t where a = ?"),
            ("SELECT \"from\" FROM \"T\"", "SELECT \"from\" FROM k.\"T\""),
            ("select a from other . t", "select a from other . t"),
            (
                "select 'from x' /* from y */ from -- from\n t",
                "select 'from x' /* from y */ from -- \
                from\n k.t",
            ),
            (
                "UPDATE t SET update = 1, x = 'it''s from u' IF a = 2",
                "UPDATE k.t SET update = 1, x \
                = 'it''s from u' IF a = 2",
            ),
            ("insert into t (a) values (?)", "insert into k.t (a) values (?)"),
            ("delete from t where a = ?", "delete from k.t where a = ?"),
            (
                "begin batch update t set a = ?; update u set b = ?; apply batch",
                "begin batch update \
                k.t set a = ?; update k.u set b = ?; apply batch",
            ),
            ("select * from", "select * from"),
            ("é from 'x", "é from 'x"),
        ] {
            assert_eq!(queried(cql, "k"), wanted);
        }
    }
}
