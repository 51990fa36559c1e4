//! Properties of the CQL codec: decoding undoes encoding, and no input makes a decoder panic.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::collection::vec;
use proptest::prelude::*;
use wire::cql::request::{Batch, BatchKind, BatchStatement, PreparedRef, QueryParameters, Request};
use wire::cql::response::{Column, Metadata, Prepared, Reply, Response, classify, put_prepared};
use wire::cql::{ColumnType, Consistency, Cursor, HEADER_SIZE, Header, Opcode, Value, put};

fn consistency() -> impl Strategy<Value = Consistency> {
    (0u16..11).prop_map(|v| Consistency::from_u16(v).expect("all values below 11 are levels"))
}

fn column_type() -> impl Strategy<Value = ColumnType> {
    let leaf = prop_oneof![
        Just(ColumnType::Varchar),
        Just(ColumnType::Bigint),
        Just(ColumnType::Duration),
        Just(ColumnType::Tinyint),
        "[a-z.]{0,20}".prop_map(ColumnType::Custom),
    ];
    leaf.prop_recursive(4, 16, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|t| ColumnType::List(Box::new(t))),
            inner.clone().prop_map(|t| ColumnType::Set(Box::new(t))),
            (inner.clone(), inner.clone())
                .prop_map(|(k, v)| ColumnType::Map(Box::new(k), Box::new(v))),
            vec(inner.clone(), 0..3).prop_map(ColumnType::Tuple),
            ("[a-z]{1,4}", "[a-z]{1,4}", vec(("[a-z]{1,4}", inner), 0..3))
                .prop_map(|(keyspace, name, fields)| ColumnType::Udt { keyspace, name, fields }),
        ]
    })
}

fn body_of(frame: &[u8]) -> (Header, &[u8]) {
    let header = Header::decode(frame).expect("a frame").expect("a whole header");
    assert_eq!(header.body_size, frame.len() - HEADER_SIZE);
    (header, &frame[HEADER_SIZE..])
}

proptest! {
    #[test]
    fn execute_survives_the_wire(
        stream in 0i16..,
        id in vec(any::<u8>(), 0..40),
        level in consistency(),
        values in vec((any::<Option<u8>>(), vec(any::<u8>(), 0..40)), 0..6),
        named in any::<bool>(),
        page_size in any::<Option<i32>>(),
        timestamp_us in any::<Option<i64>>(),
        skip_metadata in any::<bool>(),
        version in 4u8..=5,
        now_s in any::<Option<i32>>(),
    ) {
        let v5 = version == 5;
        let values = values
            .iter()
            .map(|(kind, bytes)| {
                let value = match kind {
                    Some(k) if k % 3 == 0 => Value::Null,
                    Some(k) if k % 3 == 1 => Value::Unset,
                    _ => Value::Bytes(bytes),
                };
                (named.then_some("name"), value)
            })
            .collect();
        let parameters = QueryParameters {
            values,
            page_size,
            timestamp_us,
            skip_metadata,
            paging_state: page_size.map(|_| &b"state"[..]),
            serial_consistency: timestamp_us.map(|_| Consistency::Serial),
            keyspace: (v5 && named).then_some("ks"),
            now_s: now_s.filter(|_| v5),
            ..QueryParameters::plain(level)
        };
        let metadata_id = if v5 { &id[id.len() / 2..] } else { &[] };
        let request = Request::Execute(PreparedRef { id: &id, metadata_id }, parameters);
        let mut frame = Vec::new();
        request.encode_at(version, stream, &mut frame);
        let (header, body) = body_of(&frame);
        prop_assert_eq!(header.stream, stream);
        prop_assert_eq!(Request::decode(&header, body).expect("decodes"), request);
    }

    #[test]
    fn batch_survives_the_wire(
        text in "[ -~]{0,60}",
        id in vec(any::<u8>(), 0..20),
        level in consistency(),
        kind in 0u8..3,
        version in 4u8..=5,
    ) {
        let v5 = version == 5;
        let kind = [BatchKind::Logged, BatchKind::Unlogged, BatchKind::Counter][usize::from(kind)];
        let request = Request::Batch(Batch {
            kind,
            statements: vec![
                (BatchStatement::Text(&text), vec![Value::Null]),
                (BatchStatement::Id(&id), vec![Value::Bytes(b"x"), Value::Unset]),
            ],
            consistency: level,
            serial_consistency: None,
            timestamp_us: Some(-1),
            keyspace: v5.then_some("ks"),
            now_s: v5.then_some(i32::MAX),
        });
        let mut frame = Vec::new();
        request.encode_at(version, 1, &mut frame);
        let (header, body) = body_of(&frame);
        prop_assert_eq!(Request::decode(&header, body).expect("decodes"), request);
    }

    #[test]
    fn types_survive_the_wire(kind in column_type()) {
        let mut bytes = Vec::new();
        kind.encode(&mut bytes);
        prop_assert_eq!(Cursor::new(&bytes).column_type().expect("decodes"), kind);
    }

    #[test]
    fn prepared_survives_the_wire(
        kinds in vec(column_type(), 0..5),
        one_table in any::<bool>(),
        id in vec(any::<u8>(), 1..20),
        version in 4u8..=5,
    ) {
        let columns: Vec<_> = kinds.iter().enumerate().map(|(i, kind)| Column {
            keyspace: "ks".into(),
            table: if one_table { "t".into() } else { format!("t{i}") },
            name: format!("c{i}"),
            kind: kind.clone(),
        }).collect();
        let column_count = columns.len();
        let values = Metadata { column_count, columns: columns.clone(), paging_state: None };
        let rows = Metadata { column_count, columns, paging_state: Some(vec![1, 2]) };
        let metadata_id = if version == 5 { vec![7; 16] } else { Vec::new() };
        let prepared = Prepared { id, metadata_id, partition_key: vec![1, 0], values, rows };
        let mut body = Vec::new();
        put_prepared(&mut body, version, &prepared);
        match Response::decode(&Header::response(0, Opcode::Result).at(version), &body) {
            Ok(Response::Prepared(decoded)) => prop_assert_eq!(decoded, prepared),
            other => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn rows_are_counted_with_and_without_metadata(
        rows in vec(vec(any::<u8>(), 0..9), 0..9),
        skip in any::<bool>(),
        more in any::<bool>(),
    ) {
        let name = |name: &str| name.to_owned();
        let kind = ColumnType::Blob;
        let column = Column { keyspace: name("k"), table: name("t"), name: name("c"), kind };
        let metadata = Metadata {
            column_count: 1,
            columns: vec![column],
            paging_state: more.then(|| vec![9; 7]),
        };
        let mut body = Vec::new();
        put::i32(&mut body, wire::cql::response::result_kind::ROWS);
        metadata.encode(skip, &mut body);
        put::i32(&mut body, rows.len() as i32);
        let cells_offset = body.len();
        rows.iter().for_each(|cell| put::bytes(&mut body, Some(cell)));
        let header = Header::response(3, Opcode::Result);
        let expected = Reply::Rows { count: rows.len(), cells_offset, column_count: 1 };
        prop_assert_eq!(classify(&header, &body).expect("rows"), expected);
        let Ok(Response::Rows(decoded)) = Response::decode(&header, &body) else { panic!("rows") };
        let cells = decoded.collect().expect("cells").into_iter().flatten();
        let decoded: Vec<_> = cells.flatten().collect();
        prop_assert_eq!(decoded, rows);
    }

    #[test]
    fn rows_are_counted_behind_a_new_metadata_id(flags in 0i32..16, id in vec(any::<u8>(), 0..20)) {
        let mut body = Vec::new();
        put::i32(&mut body, wire::cql::response::result_kind::ROWS);
        // Without the metadata themselves; a server that changes them sends them too.
        put::i32(&mut body, flags | 4);
        put::i32(&mut body, 1);
        if flags & 2 != 0 {
            put::bytes(&mut body, Some(b"page"));
        }
        if flags & 8 != 0 {
            put::short_bytes(&mut body, &id);
        }
        put::i32(&mut body, 1);
        let cells_offset = body.len();
        put::bytes(&mut body, Some(b"cell"));
        let header = Header::response(3, Opcode::Result).at(5);
        let expected = Reply::Rows { count: 1, cells_offset, column_count: 1 };
        prop_assert_eq!(classify(&header, &body), Ok(expected));
    }

    #[test]
    fn hostile_bytes_are_refused_not_fatal(
        opcode in any::<u8>(),
        flags in any::<u8>(),
        body in vec(any::<u8>(), 0..300),
        version in 4u8..=5,
    ) {
        let header = Header { version, flags, stream: 0, opcode, body_size: body.len() };
        let _ = Request::decode(&header, &body);
        let _ = classify(&header, &body);
        if let Ok(Response::Rows(rows)) = Response::decode(&header, &body) {
            let _ = rows.collect();
        }
        let _ = Header::decode(&body);
    }

    #[test]
    fn a_torn_frame_never_decodes_to_the_whole(cut in 0usize..40) {
        let request = Request::Query("SELECT x FROM t", QueryParameters {
            values: vec![(None, Value::Bytes(b"v"))],
            ..QueryParameters::plain(Consistency::One)
        });
        let mut frame = Vec::new();
        request.encode(0, &mut frame);
        let (header, body) = body_of(&frame);
        let cut = cut.min(body.len() - 1);
        prop_assert!(Request::decode(&header, &body[..cut]).is_err());
    }
}
