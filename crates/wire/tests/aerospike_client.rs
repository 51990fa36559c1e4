//! Requests and digests are, byte for byte, those of the official Rust client; how its bytes were
//! recorded stands in `data/aerospike-client.txt`.
// Helpers of a test may fail as the test itself may.
#![allow(clippy::unwrap_used)]

use wire::aerospike::{
    Command, Expiry, Generation, Key, Message, OpKind, PARTITIONS, PROTO_SIZE, Particle,
    ProtoHeader, ProtoKind, ReadLevel, RecordExists, UserKey, Wanted, WritePolicy, batch, digest,
    msgpack, partition,
};

/// The bytes recorded under a name.
fn recorded(name: &str) -> Vec<u8> {
    let lines = include_str!("data/aerospike-client.txt").lines();
    let mut found = lines.filter_map(|line| line.split_once(' ')).filter(|(n, _)| *n == name);
    let (_, hex) = found.next().unwrap();
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

/// As the client has it by default.
fn policy() -> WritePolicy {
    WritePolicy { timeout_ms: 1000, ..WritePolicy::default() }
}

fn same(name: &str, command: &Command<'_>) {
    let mut bytes = Vec::new();
    command.encode(&mut bytes);
    assert_eq!(hex(&bytes), hex(&recorded(name)), "{name}");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn integer() -> Key<'static> {
    Key::new("test", "users", UserKey::Integer(7))
}

fn string() -> Key<'static> {
    Key::new("test", "users", UserKey::String("seven"))
}

fn blob() -> Key<'static> {
    Key::new("test", "", UserKey::Blob(&[1, 2, 3]))
}

#[test]
fn digests() {
    let long = "k".repeat(100);
    for (name, set, key) in [
        ("integer", "users", UserKey::Integer(7)),
        ("string", "users", UserKey::String("seven")),
        ("blob", "", UserKey::Blob(&[1, 2, 3])),
        ("negative", "set", UserKey::Integer(-1)),
        ("max", "set", UserKey::Integer(i64::MAX)),
        ("empty", "set", UserKey::String("")),
        ("long", "set", UserKey::String(&long)),
    ] {
        let digest = digest(set, &key);
        assert_eq!(hex(&digest), hex(&recorded(&format!("digest-{name}"))), "{name}");
        let low = usize::from(digest[0]) | usize::from(digest[1] & 0x0F) << 8;
        assert_eq!(partition(&digest), low);
        assert!(low < PARTITIONS);
    }
}

#[test]
fn puts() {
    let (integer, string, blob) = (integer(), string(), blob());
    let scalars = [
        (OpKind::Write, "i", Particle::Integer(-5)),
        (OpKind::Write, "d", Particle::Double(2.5)),
        (OpKind::Write, "s", Particle::String(b"text")),
        (OpKind::Write, "b", Particle::Blob(&[0, 255])),
        (OpKind::Write, "y", Particle::Bool(true)),
    ];
    same("put-scalars", &Command::operate(&integer, &policy(), &scalars));
    let (mut list, mut map) = (Vec::new(), Vec::new());
    msgpack::put_list(&mut list, 11);
    for number in [1, -33, 300, 1 << 40, -70_000] {
        msgpack::put_integer(&mut list, number);
    }
    msgpack::put_string(&mut list, &"a".repeat(40));
    msgpack::put_blob(&mut list, &[9]);
    msgpack::put_double(&mut list, 1.5);
    msgpack::put_bool(&mut list, false);
    msgpack::put_nil(&mut list);
    msgpack::put_list(&mut list, 0);
    msgpack::put_map(&mut map, 1);
    msgpack::put_string(&mut map, "k");
    msgpack::put_integer(&mut map, 1);
    let nested = [
        (OpKind::Write, "l", Particle::List(&list)),
        (OpKind::Write, "m", Particle::Map(&map)),
        (OpKind::Write, "g", Particle::GeoJson(br#"{"type":"Point","coordinates":[1.5,2]}"#)),
    ];
    same("put-nested", &Command::operate(&blob, &policy(), &nested));

    let put = |name, policy: WritePolicy, text: &'static [u8]| {
        let ops = [(OpKind::Write, "s", Particle::String(text))];
        same(name, &Command::operate(&string, &policy, &ops));
    };
    let replace = WritePolicy {
        exists: RecordExists::Replace,
        expiry: Expiry::Seconds(1000),
        send_key: true,
        ..policy()
    };
    put("put-replace-ttl-key", replace, b"x");
    let update = WritePolicy {
        exists: RecordExists::UpdateOnly,
        generation: Generation::Equal(1),
        expiry: Expiry::Keep,
        commit_master: true,
        ..policy()
    };
    put("put-update-generation", update, b"y");
    let create =
        WritePolicy { exists: RecordExists::CreateOnly, expiry: Expiry::Never, ..policy() };
    put("put-create", create, b"y");
    let exists = RecordExists::ReplaceOnly;
    put(
        "put-replace-only-greater",
        WritePolicy { exists, generation: Generation::Below(9), ..policy() },
        b"z",
    );
}

#[test]
fn gets() {
    let (integer, blob) = (integer(), blob());
    let get = |name, key, wanted, level| same(name, &Command::get(key, wanted, level, 1000));
    get("get-all", &blob, Wanted::All, ReadLevel::One);
    get("get-some", &integer, Wanted::Bins(&["i", "s"]), ReadLevel::One);
    get("get-header", &integer, Wanted::Header, ReadLevel::One);
    get("exists", &integer, Wanted::Existence, ReadLevel::One);
    get("get-all-copies", &integer, Wanted::All, ReadLevel::All);
}

#[test]
fn operates_touches_and_deletes() {
    let key = integer();
    let ops = [
        (OpKind::Increment, "i", Particle::Integer(5)),
        (OpKind::Append, "s", Particle::String(b"!")),
        (OpKind::Prepend, "s", Particle::String(b"!")),
        (OpKind::Write, "n", Particle::Integer(1)),
        (OpKind::Read, "i", Particle::Null),
    ];
    let all = WritePolicy { respond_all: true, ..policy() };
    same("operate", &Command::operate(&key, &all, &ops));
    let reads = [(OpKind::Read, "i", Particle::Null), (OpKind::Read, "s", Particle::Null)];
    same("operate-read", &Command::operate(&key, &policy(), &reads));
    let touch = [(OpKind::Touch, "", Particle::Null), (OpKind::Read, "", Particle::Null)];
    same("operate-touch-get", &Command::operate(&key, &policy(), &touch));
    same("touch", &Command::touch(&key, &policy()));
    same("delete", &Command::delete(&key, &policy()));
}

#[test]
fn batches() {
    let (integer, string, blob) = (integer(), string(), blob());
    let other = Key::new("test", "other", UserKey::String("o"));
    let ops = [(OpKind::Write, "n", Particle::Integer(1)), (OpKind::Read, "n", Particle::Null)];
    let plain = WritePolicy::default();
    let commands = [
        Command::get(&integer, Wanted::All, ReadLevel::One, 0),
        Command::get(&string, Wanted::Bins(&["s"]), ReadLevel::One, 0),
        Command::get(&other, Wanted::Header, ReadLevel::One, 0),
        Command::operate(&other, &plain, &ops),
        Command::delete(&blob, &plain),
    ];
    let mut bytes = Vec::new();
    let flags = batch::flags::INLINE | batch::flags::RESPOND_ALL | batch::flags::ALWAYS;
    batch::encode(&commands, flags, 1000, &mut bytes);
    assert_eq!(hex(&bytes), hex(&recorded("batch")));
}

#[test]
fn recorded_requests_are_understood() {
    let lines = include_str!("data/aerospike-client.txt").lines();
    let names = lines.filter(|line| !line.starts_with('#')).filter_map(|l| l.split_once(' '));
    for (name, _) in names.filter(|(name, _)| !name.starts_with("digest-")) {
        let bytes = recorded(name);
        let header = ProtoHeader::decode(&bytes, 1 << 20).unwrap().unwrap();
        assert_eq!((header.kind, header.size), (ProtoKind::Message, bytes.len() - PROTO_SIZE));
        let message = Message::decode(&bytes[PROTO_SIZE..]).unwrap();
        assert_eq!(message.fields().count(), usize::from(message.header.fields), "{name}");
        assert_eq!(message.ops().count(), usize::from(message.header.ops), "{name}");
        for op in message.ops() {
            op.particle().unwrap();
        }
        // Cut anywhere it is none.
        for end in PROTO_SIZE..bytes.len() {
            assert!(Message::decode(&bytes[PROTO_SIZE..end]).is_err(), "{name} cut at {end}");
        }
    }
}
