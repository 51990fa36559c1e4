//! Tests of the parser: forms, refusals, places of errors, arbitrary text.

use super::super::ast::*;
use super::*;
use proptest::prelude::*;

fn ok(text: &str) -> Statement {
    parse(text).unwrap_or_else(|e| panic!("{text}: {e}")).statement
}

#[test]
fn select_in_all_its_parts() {
    let Parsed { statement: Statement::Select(select), markers } = parse(
        "SELECT a, \"B\" AS b, COUNT(*), writetime(c), TTL(c), token(p, q) FROM ks.\"T\" \
         WHERE p = ? AND q IN (1, :two) AND c >= -3 AND (d, e) < (4, ?) AND token(p, q) > ? \
         AND s CONTAINS KEY 'x' AND r IN ? \
         ORDER BY c DESC, d PER PARTITION LIMIT 2 LIMIT :lim ALLOW FILTERING;",
    )
    .unwrap() else {
        panic!("not a select")
    };
    assert_eq!(select.table.keyspace.as_deref(), Some("ks"));
    assert_eq!(select.table.name, "T");
    assert_eq!(select.selectors.unwrap().len(), 6);
    assert_eq!(select.relations.len(), 7);
    assert_eq!(
        select.relations[2],
        Relation::Column {
            column: "c".into(),
            operator: Operator::GreaterOrEqual,
            term: Term::Integer("-3".into())
        }
    );
    assert_eq!(select.relations[6], Relation::In { column: "r".into(), terms: InTerms::Marker(4) });
    assert_eq!(select.order, [("c".to_owned(), true), ("d".to_owned(), false)]);
    assert_eq!(select.limit, Some(Term::Marker(5)));
    assert!(select.allow_filtering);
    let named: Vec<_> = markers.iter().map(Option::as_deref).collect();
    assert_eq!(named, [None, Some("two"), None, None, None, Some("lim")]);
}

#[test]
fn modifications() {
    let Statement::Insert(insert) = ok("INSERT INTO t (a, b) VALUES (1, {'k': [1.5, -2]}) \
         USING TTL 5 AND TIMESTAMP ?")
    else {
        panic!("not an insert")
    };
    assert_eq!(insert.columns, ["a", "b"]);
    assert_eq!(insert.using.ttl, Some(Term::Integer("5".into())));
    let Statement::Update(update) = ok(
        "UPDATE t SET a = a + 1, b = b - ?, c = [1] + c, d['x'] = 0xff, e += {1}, f=null WHERE k=1",
    ) else {
        panic!("not an update")
    };
    let kinds: Vec<_> = update.assignments.iter().map(|(_, a)| std::mem::discriminant(a)).collect();
    let null = Assignment::Set(Term::Null);
    for (at, like) in [
        (0, Assignment::Add(Term::Null)),
        (1, Assignment::Subtract(Term::Null)),
        (2, Assignment::Prepend(Term::Null)),
        (3, Assignment::Element(Term::Null, Term::Null)),
        (4, Assignment::Add(Term::Null)),
        (5, null),
    ] {
        assert_eq!(kinds[at], std::mem::discriminant(&like), "assignment {at}");
    }
    let Statement::Delete(delete) = ok("DELETE a, b[?] FROM t USING TIMESTAMP 3 WHERE k = 1")
    else {
        panic!("not a delete")
    };
    assert_eq!(delete.columns, [("a".into(), None), ("b".into(), Some(Term::Marker(0)))]);
    let Statement::Batch(batch) = ok("BEGIN UNLOGGED BATCH USING TIMESTAMP 1 \
         INSERT INTO t (a) VALUES (1); DELETE FROM t WHERE a=2 UPDATE t SET b=1 WHERE a=1; \
         APPLY BATCH;")
    else {
        panic!("not a batch")
    };
    assert_eq!((batch.kind, batch.statements.len()), (BatchKind::Unlogged, 3));
}

#[test]
fn conditions() {
    let Statement::Insert(insert) = ok("INSERT INTO t (a) VALUES (1) IF NOT EXISTS USING TTL 5")
    else {
        panic!("not an insert")
    };
    assert_eq!(insert.condition, Some(Condition::NotExists));
    assert!(insert.using.ttl.is_some());
    let Statement::Update(update) =
        ok("UPDATE t SET a = 1 WHERE k = 1 IF a = NULL AND b >= ? AND c != 'x' AND d IN (1, 2)")
    else {
        panic!("not an update")
    };
    let Some(Condition::Columns(columns)) = update.condition else { panic!("no columns") };
    assert_eq!(columns[0], ("a".into(), Comparison::Is(Operator::Equal, Term::Null)));
    let bound = Comparison::Is(Operator::GreaterOrEqual, Term::Marker(0));
    assert_eq!(columns[1], ("b".into(), bound));
    assert_eq!(columns[2], ("c".into(), Comparison::IsNot(Term::Text("x".into()))));
    assert!(matches!(&columns[3].1, Comparison::In(InTerms::List(terms)) if terms.len() == 2));
    let Statement::Delete(delete) = ok("DELETE FROM t WHERE k = 1 IF EXISTS") else {
        panic!("not a delete")
    };
    assert_eq!(delete.condition, Some(Condition::Exists));
    for wrong in
        ["INSERT INTO t (a) VALUES (1) IF EXISTS", "DELETE FROM t WHERE k = 1 IF NOT EXISTS"]
    {
        assert!(matches!(parse(wrong), Err(ParseError::Syntax { .. })), "{wrong}");
    }
}

#[test]
fn schema_statements() {
    let Statement::CreateTable(create) = ok("CREATE TABLE IF NOT EXISTS ks.t ( \
         a int, b text, c timeuuid, s set<text> static, m map<int, frozen<list<text>>>, \
         u tuple<int, text, double>, PRIMARY KEY ((a, b), c)) \
         WITH CLUSTERING ORDER BY (c DESC) AND comment = 'x' \
         AND compaction = {'class': 'SizeTieredCompactionStrategy', 'max_threshold': 32}")
    else {
        panic!("not a create")
    };
    assert_eq!((create.partition_key.len(), create.clustering.len()), (2, 1));
    assert_eq!(create.order, [("c".to_owned(), true)]);
    assert!(create.columns[3].is_static);
    assert!(matches!(&create.columns[5].type_name, TypeName::Tuple(t) if t.len() == 3));
    assert_eq!(create.options.len(), 2);
    let Statement::CreateTable(create) =
        ok("CREATE TABLE t (k blob PRIMARY KEY,\n, a int, , b int,)")
    else {
        panic!("not a create")
    };
    assert_eq!(create.columns.len(), 3, "nothing between two commas is no column");
    ok("CREATE KEYSPACE k WITH replication = {'class':'SimpleStrategy','replication_factor':1} \
        AND durable_writes = true");
    ok("ALTER TABLE t ADD (x int, y text)");
    ok("DROP TABLE IF EXISTS k.t");
    ok("TRUNCATE TABLE k.t");
    ok("USE \"K\"");
}

#[test]
fn what_is_left_out_is_named() {
    for (text, names) in [
        ("CREATE INDEX ON t (a)", "secondary indexes"),
        ("CREATE TYPE t (a int)", "user-defined types"),
        ("CREATE MATERIALIZED VIEW v AS SELECT", "materialized views"),
        ("CREATE OR REPLACE FUNCTION f", "user-defined functions"),
        ("UPDATE t SET a = 1 WHERE b = 2 IF c['x'] = 1", "conditions on an element"),
        ("INSERT INTO t JSON '{}'", "JSON"),
        ("SELECT JSON a FROM t", "JSON"),
        ("SELECT max(a) FROM t", "functions in a SELECT"),
        ("ALTER TABLE t DROP a", "ALTER TABLE .. DROP"),
        ("SELECT a FROM t GROUP BY a", "GROUP BY"),
        ("GRANT ALL TO x", "roles"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(matches!(error, ParseError::Unsupported { .. }), "{text}: {error}");
        assert!(error.to_string().contains(names), "{text}: {error}");
    }
}

#[test]
fn syntax_errors_name_line_and_column() {
    for (text, message) in [
        ("SELEC * FROM t", "line 1:0 expected a statement, found 'selec'"),
        ("SELECT *\nFROM t WHERE", "line 2:12 expected a name, found the end"),
        ("USE a b", "line 1:6 expected the end of the statement, found 'b'"),
        ("INSERT INTO t (a) VALUES (1", "line 1:27 expected ')', found the end"),
    ] {
        assert_eq!(parse(text).unwrap_err().to_string(), message);
    }
}

#[test]
fn nesting_is_bounded() {
    let deep = "[".repeat(100_000);
    assert!(parse(&format!("INSERT INTO t (a) VALUES ({deep}")).is_err());
    let deep = "list<".repeat(100_000);
    assert!(parse(&format!("CREATE TABLE t (a {deep}")).is_err());
}

const WORDS: &[&str] = &[
    "SELECT", "FROM", "WHERE", "INSERT", "INTO", "VALUES", "UPDATE", "SET", "DELETE", "BEGIN",
    "BATCH", "APPLY", "CREATE", "TABLE", "PRIMARY", "KEY", "WITH", "AND", "LIMIT", "a", "b", "(",
    ")", "[", "]", "{", "}", "?", ":x", "=", "<", ">=", ",", ";", "1", "-", "'t'", "*", "token",
    "count", "IN", "map", "USING", "TTL", "ORDER", "BY", "int", "+", ".", "1.5", "0xab", "\"Q\"",
    "3d",
];

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn shuffled_words_never_panic(
        words in proptest::collection::vec(proptest::sample::select(WORDS), 0..40)
    ) {
        let _ = parse(&words.join(" "));
    }

    #[test]
    fn names_come_back(name in "[a-zA-Z \"']{1,20}") {
        let text = format!("USE {}", super::super::identifier(&name));
        prop_assert_eq!(parse(&text).unwrap().statement, Statement::Use(name));
    }

    #[test]
    fn texts_come_back(text in "\\PC{0,40}") {
        let statement = format!("INSERT INTO t (a) VALUES ('{}')", text.replace('\'', "''"));
        let Statement::Insert(insert) = parse(&statement).unwrap().statement else {
            panic!("not an insert")
        };
        prop_assert_eq!(&insert.values, &[Term::Text(text)]);
    }
}
