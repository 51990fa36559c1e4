//! A file of CQL -> its statements.
//!
//! Statements end with `;` outside quotes and comments (`--`, `//`, `/* */`); what stands in
//! between is taken as it is. Source: the CQL grammar of Apache Cassandra.

/// The statements of a text, without their semicolons.
#[must_use]
pub fn statements(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut statement = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let size = match c {
            // A doubled quote inside is two texts side by side, which comes to the same.
            '\'' | '"' => rest[1..].find(c).map_or(rest.len(), |end| end + 2),
            '$' if rest.starts_with("$$") => rest[2..].find("$$").map_or(rest.len(), |end| end + 4),
            _ if rest.starts_with("--") || rest.starts_with("//") => {
                statement.push(' ');
                rest = rest.find('\n').map_or("", |end| &rest[end..]);
                continue;
            }
            _ if rest.starts_with("/*") => {
                statement.push(' ');
                rest = rest.find("*/").map_or("", |end| &rest[end + 2..]);
                continue;
            }
            ';' => {
                all.push(std::mem::take(&mut statement));
                rest = &rest[1..];
                continue;
            }
            c => c.len_utf8(),
        };
        statement.push_str(&rest[..size]);
        rest = &rest[size..];
    }
    all.push(statement);
    let whole = all.iter().map(|statement| statement.trim());
    whole.filter(|statement| !statement.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_with_semicolons_outside_quotes_and_comments() {
        let text = "-- a; comment\nCREATE KEYSPACE k WITH x = 'a;''b';\n/* no; */ CREATE TABLE \
                    k.\"t;\" (a int); // end;\nUSE k";
        assert_eq!(
            statements(text),
            ["CREATE KEYSPACE k WITH x = 'a;''b'", "CREATE TABLE k.\"t;\" (a int)", "USE k"]
        );
        assert!(statements(" ;; \n").is_empty());
        for odd in ["'", "\"é", "$$", "/*", "--", "é;'"] {
            let _ = statements(odd);
        }
    }
}
