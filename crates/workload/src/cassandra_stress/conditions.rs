//! Which columns the conditions of an UPDATE compare with a bound value: CQL -> their names.
//!
//! The generation of Apache Cassandra 5 reads these columns first and binds what it has found.
//! Source: cassandra-stress, `StressProfile.java`, `operations/userdefined/CASQuery.java`.

use super::qualify::words;
use crate::tables::stored_name;

/// Names of columns as stored, in their order; none of other statements, and of conditions on
/// values that stand in the text.
#[must_use]
pub(super) fn bound_conditions(cql: &str) -> Vec<String> {
    let words = words(cql);
    let is = |word: &str, wanted: &str| word.eq_ignore_ascii_case(wanted);
    if !words.first().is_some_and(|first| is(first, "update")) {
        return Vec::new();
    }
    let Some(at) = words.iter().rposition(|word| is(word, "if")) else { return Vec::new() };
    let mut depth = 0usize;
    let conditions = words[at + 1..].split(|word| {
        match *word {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && is(word, "and")
    });
    let column = |condition: &[&str]| match condition {
        [name, rest @ ..] if rest.iter().any(|word| matches!(*word, "?" | ":")) => {
            Some(stored_name(name))
        }
        _ => None,
    };
    conditions.filter_map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_conditions_on_bound_values_are_found() {
        for (cql, wanted) in [
            ("update t set v = ? where k = ? if v = ?", &["v"][..]),
            ("UPDATE k.t SET v=? WHERE k=? IF \"A\" = ? AND b IN (?, ?) and c=5", &["A", "b"]),
            ("update t set v = ? where k = ? if exists", &[]),
            ("update t set v = ? where k = ? if v = null", &[]),
            ("update t set v = 'if ?' where k = ? -- if v = ?", &[]),
            ("update t set v = ? where k = ?", &[]),
            ("delete from t where k = ? if v = ?", &[]),
            ("insert into t (k) values (?) if not exists", &[]),
            ("update", &[]),
            ("", &[]),
        ] {
            assert_eq!(bound_conditions(cql), wanted, "{cql}");
        }
    }
}
