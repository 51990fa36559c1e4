//! Aerospike's messages: decode of encode is the identity, and hostile bytes are errors.
// Helpers of a test may fail as the test itself may.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use wire::aerospike::info::{self, Replicas};
use wire::aerospike::{
    Answer, Command, Key, Message, OpKind, PARTITIONS, PROTO_SIZE, Particle, ProtoHeader,
    ProtoKind, ReadLevel, ResultCode, UserKey, Wanted, WritePolicy, batch, compress, decompress,
    msgpack, put_op,
};

/// A value, as it is owned.
#[derive(Debug, Clone)]
enum Value {
    Integer(i64),
    Double(f64),
    Bool(bool),
    Bytes(u8, Vec<u8>),
}

impl Value {
    fn particle(&self) -> Particle<'_> {
        match self {
            Self::Integer(value) => Particle::Integer(*value),
            Self::Double(value) => Particle::Double(*value),
            Self::Bool(value) => Particle::Bool(*value),
            Self::Bytes(0, bytes) => Particle::String(bytes),
            Self::Bytes(1, bytes) => Particle::Blob(bytes),
            Self::Bytes(2, bytes) => Particle::GeoJson(bytes),
            Self::Bytes(3, bytes) => Particle::Hll(bytes),
            Self::Bytes(kind, bytes) => Particle::Language(*kind, bytes),
        }
    }
}

fn value() -> impl Strategy<Value = Value> {
    let bytes = proptest::collection::vec(any::<u8>(), 0..50);
    prop_oneof![
        any::<i64>().prop_map(Value::Integer),
        (-1e9..1e9).prop_map(Value::Double),
        any::<bool>().prop_map(Value::Bool),
        (prop_oneof![0_u8..4, 7_u8..=12], bytes)
            .prop_map(|(kind, bytes)| Value::Bytes(kind, bytes)),
    ]
}

/// Any list, nested up to three deep.
fn list() -> impl Strategy<Value = Vec<u8>> {
    let packed = |put: fn(&mut Vec<u8>, i64)| {
        move |value| {
            let mut out = Vec::new();
            put(&mut out, value);
            out
        }
    };
    let text = "[a-z]{0,300}".prop_map(|text| {
        let mut out = Vec::new();
        msgpack::put_string(&mut out, &text);
        out
    });
    let leaf = prop_oneof![any::<i64>().prop_map(packed(msgpack::put_integer)), text];
    let tree = leaf.prop_recursive(3, 64, 20, |inner| {
        proptest::collection::vec(inner, 0..20).prop_map(|items| {
            let mut out = Vec::new();
            msgpack::put_list(&mut out, items.len());
            items.iter().for_each(|item| out.extend(item));
            out
        })
    });
    proptest::collection::vec(tree, 0..20).prop_map(|items| {
        let mut out = Vec::new();
        msgpack::put_list(&mut out, items.len());
        items.iter().for_each(|item| out.extend(item));
        out
    })
}

/// Reads all of a body in every way; nothing may panic.
fn exhaust(body: &[u8]) {
    if let Ok(message) = Message::decode(body) {
        for op in message.ops() {
            let _ = op.particle();
        }
        for field in message.fields() {
            let _ = (field.text(), field.digest());
            batch::Rows::decode(field.bytes).into_iter().flatten().for_each(drop);
        }
    }
    batch::Rows::decode(body).into_iter().flatten().for_each(drop);
    let _ = msgpack::check(body, msgpack::Shape::Map);
    let _ = decompress(body, 1 << 16, &mut Vec::new());
    if let Ok(lines) = info::lines(body) {
        lines.for_each(|(_, value)| drop(Replicas::decode(value)));
    }
}

proptest! {
    #[test]
    fn commands_are_read_back(
        key in any::<i64>(),
        bins in proptest::collection::vec(("[a-z]{1,15}", value()), 0..8),
    ) {
        let key = Key::new("ns", "set", UserKey::Integer(key));
        let ops: Vec<_> = bins.iter()
            .map(|(bin, value)| (OpKind::Write, bin.as_str(), value.particle())).collect();
        let mut bytes = Vec::new();
        let send_key = WritePolicy { send_key: true, ..WritePolicy::default() };
        Command::operate(&key, &send_key, &ops).encode(&mut bytes);
        let message = Message::decode(&bytes[PROTO_SIZE..]).unwrap();
        prop_assert_eq!(message.fields().count(), if ops.is_empty() { 3 } else { 4 });
        let read: Vec<_> = message.ops()
            .map(|op| (op.kind().unwrap(), op.name, op.particle().unwrap())).collect();
        let written: Vec<_> = ops.iter().map(|(k, bin, v)| (*k, bin.as_bytes(), *v)).collect();
        prop_assert_eq!(read, written);

        let mut answered = Vec::new();
        let mut parts = Vec::new();
        for (bin, value) in &bins {
            put_op(&mut parts, OpKind::Read, bin.as_bytes(), &value.particle());
        }
        let answer = Answer {
            generation: 3,
            void_time_s: 9,
            count: bins.len() as u16,
            ops: &parts,
            ..Answer::of(ResultCode::OK)
        };
        answer.encode(&mut answered);
        let message = Message::decode(&answered[PROTO_SIZE..]).unwrap();
        prop_assert_eq!((message.header.generation, message.header.ttl_s), (3, 9));
        let got: Vec<_> = message.ops().map(|op| op.particle().unwrap()).collect();
        prop_assert_eq!(got, bins.iter().map(|(_, v)| v.particle()).collect::<Vec<_>>());
    }

    #[test]
    fn batches_are_read_back(keys in proptest::collection::vec(0..5_i64, 0..40)) {
        let keys: Vec<_> = keys.iter()
            .map(|key| Key::new("ns", if *key > 2 { "a" } else { "b" }, UserKey::Integer(*key)))
            .collect();
        let commands: Vec<_> = keys.iter()
            .map(|key| Command::get(key, Wanted::Bins(&["x", "y"]), ReadLevel::One, 0)).collect();
        let mut bytes = Vec::new();
        batch::encode(&commands, 0, 5, &mut bytes);
        let message = Message::decode(&bytes[PROTO_SIZE..]).unwrap();
        let field = message.fields().next().unwrap();
        let rows: Vec<_> = batch::Rows::decode(field.bytes).unwrap().map(Result::unwrap).collect();
        prop_assert_eq!(rows.len(), keys.len());
        for (n, (row, key)) in rows.iter().zip(&keys).enumerate() {
            prop_assert_eq!((row.index, row.digest), (n as u32, key.digest));
            let set = row.message.fields().nth(1).unwrap();
            prop_assert_eq!(set.text().unwrap(), key.set);
            prop_assert_eq!(row.message.ops().count(), 2);
        }
    }

    #[test]
    fn lists_are_lists(list in list(), cut in any::<prop::sample::Index>()) {
        prop_assert_eq!(msgpack::check(&list, msgpack::Shape::List), Ok(()));
        prop_assert!(msgpack::check(&list, msgpack::Shape::Map).is_err());
        prop_assert!(msgpack::check(&list[..cut.index(list.len())], msgpack::Shape::List).is_err());
        let mut longer = list;
        longer.push(0xC0);
        prop_assert!(msgpack::check(&longer, msgpack::Shape::List).is_err());
    }

    #[test]
    fn compressed_messages_are_read_back(text in "[ab]{0,3000}") {
        let mut plain = Vec::new();
        let key = Key::new("ns", "", UserKey::String("k"));
        let ops = [(OpKind::Write, "t", Particle::String(text.as_bytes()))];
        Command::operate(&key, &WritePolicy::default(), &ops).encode(&mut plain);
        let mut packed = Vec::new();
        compress(&plain, &mut packed);
        let header = ProtoHeader::decode(&packed, 1 << 20).unwrap().unwrap();
        prop_assert_eq!(header.size + PROTO_SIZE, packed.len());
        if header.kind == ProtoKind::Message {
            prop_assert_eq!(packed, plain);
        } else {
            let mut inflated = Vec::new();
            prop_assert!(packed.len() < plain.len());
            prop_assert_eq!(decompress(&packed[PROTO_SIZE..], plain.len(), &mut inflated), Ok(()));
            prop_assert_eq!(&inflated, &plain);
            let small = plain.len() - PROTO_SIZE - 1;
            prop_assert!(decompress(&packed[PROTO_SIZE..], small, &mut inflated).is_err());
        }
    }

    #[test]
    fn hostile_bytes_are_errors(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        exhaust(&bytes);
    }

    #[test]
    fn changed_messages_are_errors_or_messages(
        at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let key = Key::new("ns", "set", UserKey::Integer(1));
        let ops = [(OpKind::Write, "b", Particle::Integer(1)), (OpKind::Read, "b", Particle::Null)];
        let commands = [
            Command::operate(&key, &WritePolicy::default(), &ops),
            Command::get(&key, Wanted::All, ReadLevel::One, 0),
            Command::get(&key, Wanted::All, ReadLevel::One, 0),
        ];
        let mut bytes = Vec::new();
        batch::encode(&commands, 0, 0, &mut bytes);
        let at = PROTO_SIZE + at.index(bytes.len() - PROTO_SIZE);
        bytes[at] = byte;
        exhaust(&bytes[PROTO_SIZE..]);
    }
}

#[test]
fn a_claimed_size_allocates_nothing() {
    let mut claims = (u64::MAX >> 1).to_be_bytes().to_vec();
    claims.extend([0x78, 0x9C, 3, 0]);
    assert!(decompress(&claims, usize::MAX >> 2, &mut Vec::new()).is_err());
    let mut deep = vec![0x91; msgpack::DEPTH_MAX];
    deep.push(0xC0);
    assert!(msgpack::check(&deep, msgpack::Shape::List).is_ok());
    deep.insert(0, 0x91);
    assert!(msgpack::check(&deep, msgpack::Shape::List).is_err());
    assert!(msgpack::check(&[0xDD, 0xFF, 0xFF, 0xFF, 0xFF], msgpack::Shape::List).is_err());
}

#[test]
fn partition_maps_are_read_back() {
    let mut half = Replicas::whole("half");
    half.copies.push(vec![0x55; PARTITIONS / 8]);
    let text = format!("{};{}", Replicas::whole("test").encode(), half.encode());
    let maps = Replicas::decode(&text).unwrap();
    assert_eq!(maps, [Replicas::whole("test"), half.clone()]);
    assert!(half.has(0, 0) && half.has(0, PARTITIONS - 1) && !half.has(0, PARTITIONS));
    assert!(!half.has(1, 0) && half.has(1, 1) && !half.has(2, 0));
    for wrong in ["test", "test:0,1", "test:0,2,AAAA", "test:x,0", "test:0,1,!"] {
        assert!(Replicas::decode(wrong).is_err(), "{wrong}");
    }
    let mut request = Vec::new();
    info::put_request(&["node", "build"], &mut request);
    assert_eq!(info::names(&request[PROTO_SIZE..]).unwrap().collect::<Vec<_>>(), ["node", "build"]);
    let mut answer = Vec::new();
    info::put_line(&mut answer, "node", "A1");
    info::put_line(&mut answer, "empty", "");
    answer.extend(b"bare\n");
    let lines: Vec<_> = info::lines(&answer).unwrap().collect();
    assert_eq!(lines, [("node", "A1"), ("empty", ""), ("bare", "")]);
}
