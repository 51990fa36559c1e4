//! Frames as they come from a socket: bytes -> header -> request or response, to the last cell.
//!
//! Must hold: nothing panics, nothing is allocated by a length that the bytes only claim, and a
//! request that was understood is understood the same after it was encoded again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::cql::request::Request;
use wire::cql::response::{Reply, Response, classify};
use wire::cql::{Cursor, HEADER_SIZE, Header};

fuzz_target!(|bytes: &[u8]| {
    let Ok(Some(header)) = Header::decode(bytes) else { return };
    let body = &bytes[HEADER_SIZE..];
    let body = &body[..body.len().min(header.body_size)];
    request(&header, body);
    response(&header, body);
});

fn request(header: &Header, body: &[u8]) {
    let Ok(request) = Request::decode(header, body) else { return };
    let mut again = Vec::new();
    let version = if header.is_v5() { 5 } else { 4 };
    request.encode_at(version, header.stream, &mut again);
    let header = Header::decode(&again).unwrap().unwrap();
    assert_eq!(header.body_size, again.len() - HEADER_SIZE);
    assert_eq!(Request::decode(&header, &again[HEADER_SIZE..]).unwrap(), request);
}

fn response(header: &Header, body: &[u8]) {
    let reply = classify(header, body);
    match Response::decode(header, body) {
        Ok(Response::Rows(rows)) => {
            let Ok(Reply::Rows { count, cells_offset, column_count }) = reply else {
                panic!("rows that are decoded and not classified: {reply:?}")
            };
            let seen = (rows.count, rows.cells.offset(), rows.metadata.column_count);
            assert_eq!((count, cells_offset, column_count), seen);
            let _ = rows.collect();
        }
        Ok(Response::Error { code, details, .. }) => {
            assert_eq!(reply, Ok(Reply::Error(code)));
            exhaust(details);
        }
        Ok(Response::Event(_, details)) => exhaust(details),
        _ => {}
    }
}

/// Reads on in all the ways in which details are read.
fn exhaust(details: Cursor<'_>) {
    let readers: [fn(&mut Cursor<'_>) -> bool; 5] = [
        |c| c.string("text").is_ok(),
        |c| c.short_bytes("id").is_ok(),
        |c| c.inet("address").is_ok(),
        |c| c.consistency().is_ok(),
        |c| c.string_list("names").is_ok(),
    ];
    for read in readers {
        let mut cursor = details.clone();
        while read(&mut cursor) {}
    }
}
