//! What lies around frames: segments, and compressed bodies and payloads.
//!
//! Input: a byte that says which protocol, and whether the rest stands on the wire as it is or is
//! cut into segments with good checksums, so that mutations reach what lies inside. Must hold:
//! nothing panics, frames are whole and within their bound, nothing is had for a size that is only
//! claimed, and frames that were understood are understood the same after they were packed again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::cql::framing::{FramingError, Incoming, Outgoing};
use wire::cql::segment::put_segment;
use wire::cql::{Compression, HEADER_SIZE, Header, Protocol};

const BODY_SIZE_MAX: usize = 1 << 16;

fuzz_target!(|input: &[u8]| {
    let Some((&choice, rest)) = input.split_first() else { return };
    let (version, compression) = [
        (4, Compression::Lz4),
        (4, Compression::Snappy),
        (5, Compression::None),
        (5, Compression::Lz4),
    ][usize::from(choice % 4)];
    let protocol = Protocol::new(version, compression).unwrap();
    let wired = match choice & 4 == 0 || version == 4 {
        true => rest.to_vec(),
        false => segments(compression, rest),
    };
    let Ok(frames) = unpack(protocol, &wired) else { return };
    let mut again = Vec::new();
    Outgoing::new(protocol).encode(&frames, &mut again);
    assert!(again.len() <= Outgoing::size_max(frames.len()));
    assert!(unpack(protocol, &again).unwrap() == frames);
});

/// Each with two bytes in front: the flag and the payload's size, and what it should unpack to.
fn segments(compression: Compression, mut rest: &[u8]) -> Vec<u8> {
    let mut wired = Vec::new();
    while let [head, plain, behind @ ..] = rest {
        let (payload, next) = behind.split_at(behind.len().min(usize::from(head >> 1)));
        let plain_size = Some(usize::from(*plain)).filter(|&size| size > 0);
        put_segment(compression, payload, plain_size, head & 1 != 0, &mut wired);
        rest = next;
    }
    wired
}

fn unpack(protocol: Protocol, wired: &[u8]) -> Result<Vec<u8>, FramingError> {
    let mut incoming = Incoming::new(protocol, BODY_SIZE_MAX);
    let (mut consumed, mut plain) = (0, Vec::new());
    loop {
        consumed += incoming.advance(&wired[consumed..])?;
        let frames = incoming.frames(&wired[consumed..]);
        let Some(header) = Header::decode(frames)? else {
            assert!(frames.is_empty());
            return Ok(plain);
        };
        assert!(header.body_size <= BODY_SIZE_MAX);
        let size = HEADER_SIZE + header.body_size;
        plain.extend_from_slice(&frames[..size]);
        consumed += incoming.take(size);
    }
}
