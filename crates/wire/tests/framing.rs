//! Frames as they lie on the wire: what is packed comes back, however it arrives; what came to harm
//! is refused.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::collection::vec;
use proptest::prelude::*;
use wire::cql::framing::{FramingError, Incoming, Outgoing};
use wire::cql::segment::{PAYLOAD_SIZE_MAX, SegmentHeader, header_size};
use wire::cql::{Compression, HEADER_SIZE, Header, Opcode, Protocol, RESPONSE};

const BODY_SIZE_MAX: usize = 1 << 20;

fn protocols() -> [Protocol; 4] {
    [
        Protocol::new(4, Compression::Lz4).unwrap(),
        Protocol::new(4, Compression::Snappy).unwrap(),
        Protocol::new(5, Compression::None).unwrap(),
        Protocol::new(5, Compression::Lz4).unwrap(),
    ]
}

/// A frame whose body compresses (by `step` 0) or does not.
fn frame(protocol: Protocol, stream: i16, size: usize, step: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let header = Header::response(stream, Opcode::Result).at(protocol.version());
    header.frame(&mut out, |out| {
        let byte = |n: u64| (n.wrapping_mul(step).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8;
        out.extend((0..size as u64).map(byte));
    });
    out
}

fn pack(protocol: Protocol, frames: &[u8]) -> Vec<u8> {
    let mut wired = Vec::new();
    Outgoing::new(protocol).encode(frames, &mut wired);
    assert!(wired.len() <= Outgoing::size_max(frames.len()));
    wired
}

/// Takes everything from what arrives in pieces that end at `cuts`; one frame at a time.
fn unpack(protocol: Protocol, wired: &[u8], cuts: &[usize]) -> Result<Vec<u8>, FramingError> {
    let mut incoming = Incoming::new(protocol, BODY_SIZE_MAX);
    let (mut received, mut plain) = (Vec::new(), Vec::new());
    let mut start = 0;
    for &cut in cuts.iter().chain([&wired.len()]) {
        let cut = cut.clamp(start, wired.len());
        received.extend_from_slice(&wired[start..cut]);
        start = cut;
        loop {
            let consumed = incoming.advance(&received)?;
            received.drain(..consumed);
            let frames = incoming.frames(&received);
            let Some(header) = Header::decode(frames)? else {
                assert!(frames.is_empty(), "frames are whole");
                break;
            };
            assert!(incoming.has_frames());
            let size = HEADER_SIZE + header.body_size;
            plain.extend_from_slice(&frames[..size]);
            let consumed = incoming.take(size);
            received.drain(..consumed);
        }
    }
    assert!(received.is_empty() || plain.len() < wired.len(), "all of it is consumed");
    Ok(plain)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn frames_survive_the_wire_however_they_arrive(
        sizes in vec((prop_oneof![6 => 0usize..600, 1 => 100_000usize..300_000], 0u64..2), 1..12),
        cuts in vec(0usize..400_000, 0..9),
        which in 0usize..4,
    ) {
        let protocol = protocols()[which];
        let mut frames = Vec::new();
        for (stream, (size, step)) in sizes.iter().enumerate() {
            frames.extend(frame(protocol, stream as i16, *size, *step));
        }
        let wired = pack(protocol, &frames);
        let mut cuts = cuts;
        cuts.sort_unstable();
        prop_assert!(unpack(protocol, &wired, &cuts) == Ok(frames));
    }

    #[test]
    fn byte_by_byte_is_as_good(sizes in vec(0usize..90, 1..5), which in 0usize..4) {
        let protocol = protocols()[which];
        let frames: Vec<u8> =
            sizes.iter().flat_map(|&size| frame(protocol, 1, size, size as u64 % 2)).collect();
        let wired = pack(protocol, &frames);
        let cuts: Vec<_> = (0..wired.len()).collect();
        prop_assert_eq!(unpack(protocol, &wired, &cuts), Ok(frames));
    }

    #[test]
    fn hostile_bytes_are_refused_not_fatal(
        bytes in vec(any::<u8>(), 0..400),
        which in 0usize..4,
        version in 0u8..=0x85,
    ) {
        let protocol = protocols()[which];
        let _ = unpack(protocol, &bytes, &[]);
        // With a header in front that says what follows, so that the blocks are reached.
        let header = Header { version, flags: 1, stream: 0, opcode: 8, body_size: bytes.len() };
        let compressed = [&header.encode()[..], &bytes].concat();
        let _ = unpack(protocol, &compressed, &[]);
    }

    #[test]
    fn no_changed_bit_of_a_segment_goes_unseen(
        size in 0usize..300,
        at in any::<prop::sample::Index>(),
        bit in 0u8..8,
        lz4 in any::<bool>(),
    ) {
        let protocol = protocols()[2 + usize::from(lz4)];
        let mut wired = pack(protocol, &frame(protocol, 1, size, 0));
        let at = at.index(wired.len());
        wired[at] ^= 1 << bit;
        let refused = unpack(protocol, &wired, &[]).unwrap_err();
        let checksum = matches!(
            refused,
            FramingError::HeaderChecksum { .. } | FramingError::PayloadChecksum { .. }
        );
        prop_assert!(checksum, "{refused}");
    }
}

/// One segment with a good checksum, whatever it holds.
fn segment(compression: Compression, payload: &[u8], plain: Option<usize>, own: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let header =
        SegmentHeader { payload_size: payload.len(), plain_size: plain, self_contained: own };
    header.encode(compression, &mut out);
    out.extend_from_slice(payload);
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[0xFA, 0x2D, 0x55, 0xCA]);
    hasher.update(payload);
    out.extend_from_slice(&hasher.finalize().to_le_bytes());
    out
}

#[test]
fn many_frames_go_into_one_segment_and_a_long_one_over_several() {
    let protocol = protocols()[2];
    let frames: Vec<u8> = (0..40).flat_map(|n| frame(protocol, n, 100, 1)).collect();
    let wired = pack(protocol, &frames);
    assert_eq!(wired.len(), frames.len() + 6 + 4);
    let header = SegmentHeader::decode(&wired, Compression::None).unwrap().unwrap();
    assert!(header.self_contained);

    let long = frame(protocol, 1, 2 * PAYLOAD_SIZE_MAX, 1);
    let around = [&frames[..], &long, &frames].concat();
    let wired = pack(protocol, &around);
    let (mut rest, mut flags) = (&wired[..], Vec::new());
    while let Some(header) = SegmentHeader::decode(rest, Compression::None).unwrap() {
        flags.push((header.self_contained, header.payload_size));
        rest = &rest[6 + header.payload_size + 4..];
    }
    let (whole, full) = (frames.len(), PAYLOAD_SIZE_MAX);
    let expected = [(true, whole), (false, full), (false, full), (false, 9), (true, whole)];
    assert_eq!(flags, expected);
    assert_eq!(unpack(protocol, &wired, &[]), Ok(around));
}

#[test]
fn what_does_not_shrink_is_not_compressed() {
    for protocol in [protocols()[0], protocols()[1]] {
        let hard = frame(protocol, 1, 200, 3);
        assert_eq!(pack(protocol, &hard), hard, "{protocol}");
        let easy = frame(protocol, 1, 200, 0);
        let wired = pack(protocol, &easy);
        assert!(wired.len() < 60 && wired[1] == 1, "{protocol}: {}", wired.len());
    }
    let lz4 = protocols()[3];
    let hard = pack(lz4, &frame(lz4, 1, 200, 3));
    let header = SegmentHeader::decode(&hard, Compression::Lz4).unwrap().unwrap();
    assert_eq!((header.plain_size, header.payload_size), (None, 209));
    let easy = pack(lz4, &frame(lz4, 1, 200, 0));
    let header = SegmentHeader::decode(&easy, Compression::Lz4).unwrap().unwrap();
    assert_eq!(header.plain_size, Some(209));
}

#[test]
fn segments_that_belie_their_frames_are_refused() {
    let (none, plain) = (Compression::None, protocols()[2]);
    let whole = frame(plain, 1, 50, 1);
    let cases = [
        (segment(none, &whole[..20], None, true), FramingError::Torn),
        (segment(none, &whole[..5], None, true), FramingError::Torn),
        (
            [segment(none, &whole[..20], None, false), segment(none, &whole, None, true)].concat(),
            FramingError::Interleaved,
        ),
        (
            segment(none, &[&whole[..], b"x"].concat(), None, false),
            FramingError::Overfull { size: 59 },
        ),
        (
            segment(none, &[0x85, 0, 0, 3, 8, 0, 0x10, 0, 1], None, false),
            FramingError::TooLong { stream: 3, size: 0x10_0001, size_max: BODY_SIZE_MAX },
        ),
    ];
    for (wired, expected) in cases {
        assert_eq!(unpack(plain, &wired, &[]), Err(expected));
    }
    assert!(unpack(plain, &segment(none, &[0xFF; 9], None, true), &[]).is_err());
    // Segments without content are no error and no frame.
    let empty = [segment(none, b"", None, true), segment(none, b"", None, false)].concat();
    assert_eq!(unpack(plain, &[&empty[..], &pack(plain, &whole)].concat(), &[]), Ok(whole));
}

#[test]
fn no_memory_is_had_for_a_size_that_is_only_claimed() {
    let lz4 = Compression::Lz4;
    let claims = segment(lz4, &[0x10, 1], Some(PAYLOAD_SIZE_MAX), true);
    let refused = unpack(protocols()[3], &claims, &[]);
    assert!(matches!(refused, Err(FramingError::Block { plain: PAYLOAD_SIZE_MAX, .. })));
    // v4: a million bytes out of six.
    for (protocol, size) in [(protocols()[0], &[0, 0x0F, 0, 0][..]), (protocols()[1], &[0x80; 2])] {
        let body = [size, &[0x3F, 0x3F]].concat();
        let header = Header { version: RESPONSE | 4, flags: 1, stream: 0, opcode: 8, body_size: 0 };
        let mut wired = Vec::new();
        header.frame(&mut wired, |out| out.extend_from_slice(&body));
        let refused = unpack(protocol, &wired, &[]);
        assert!(matches!(refused, Err(FramingError::Block { .. })), "{refused:?}");
    }
    // And more than the reader takes.
    let body = [&(BODY_SIZE_MAX as u32 + 1).to_be_bytes()[..], &[0; 9000]].concat();
    let header = Header { version: RESPONSE | 4, flags: 1, stream: 0, opcode: 8, body_size: 0 };
    let mut wired = Vec::new();
    header.frame(&mut wired, |out| out.extend_from_slice(&body));
    assert!(matches!(unpack(protocols()[0], &wired, &[]), Err(FramingError::TooLong { .. })));
}

#[test]
fn an_empty_body_may_be_compressed_too() {
    // As Java's LZ4 and Snappy have it: one token of nothing, one length of nothing.
    for (protocol, body) in [(protocols()[0], &[0, 0, 0, 0, 0][..]), (protocols()[1], &[0])] {
        let header = Header { version: RESPONSE | 4, flags: 1, stream: 5, opcode: 2, body_size: 0 };
        let mut wired = Vec::new();
        header.frame(&mut wired, |out| out.extend_from_slice(body));
        let expected = Header { flags: 0, body_size: 0, ..header }.encode().to_vec();
        assert_eq!(unpack(protocol, &wired, &[]), Ok(expected), "{protocol}");
    }
}

#[test]
fn a_header_takes_the_bytes_of_its_kind() {
    assert_eq!(header_size(Compression::None), 6);
    assert_eq!(header_size(Compression::Lz4), 8);
    assert!(Protocol::new(5, Compression::Snappy).unwrap_err().to_string().contains("lz4"));
    assert!(Protocol::new(3, Compression::None).is_err());
    assert!("zstd".parse::<Compression>().unwrap_err().contains("snappy"));
}

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// Made by `cassandra-protocol` 4.0.1, an implementation of its own: frames, their segment without
/// compression, and their segment with LZ4, which need not be the same bytes to be the same frames.
#[test]
fn segments_are_those_of_another_implementation() {
    let noise = "9e3cda7817b553f18f2ecc6a08a745e3811fbe5cfa9836d57311af4eec8a28c66503a13fde7c1ab8\
                 56f59331cf6d0caa48e68523c15ffd9c3ad876";
    let zeros = "00".repeat(60);
    let cases = [
        (
            "850000000800000000".to_owned(),
            ("090002a4c8c1", "ee42edd3"),
            "0a0012000412265390850000000800000000b00b05a4".to_owned(),
        ),
        (
            format!("85000000080000003c{zeros}"),
            ("450002bff1d8", "9b35d5f1"),
            "15008a0004c61f93af85000000080000003c0001002260000000000000ce1941f6".to_owned(),
        ),
        (
            format!("85000000080000003c00{noise}"),
            ("450002bff1d8", "50aef81e"),
            format!("47008a00041f4d23f03685000000080000003c00{noise}a197387e"),
        ),
    ];
    let (plain, lz4) = (protocols()[2], protocols()[3]);
    for (frames, (header, trailer), compressed) in cases {
        let frames = bytes(&frames);
        let expected = [bytes(header), frames.clone(), bytes(trailer)].concat();
        assert_eq!(pack(plain, &frames), expected);
        assert_eq!(unpack(plain, &expected, &[]).as_ref(), Ok(&frames));
        assert_eq!(unpack(lz4, &bytes(&compressed), &[]), Ok(frames));
    }
    // Two frames over four segments each; a CRC-32 of the whole.
    let frames = [frame(plain, 0, 400_000, 1), frame(plain, 1, 400_000, 0)].concat();
    let wired = pack(plain, &frames);
    assert_eq!((wired.len(), crc32fast::hash(&wired)), (800_098, 0xC307_1B46));
}
