"""The Python client of Aerospike uses the reference target unmodified:
python aerospike_check.py HOST PORT, with the namespaces test and other.

Ends with status 0 and the line "ok", or with the assertion that failed.
"""

import sys
import time

import aerospike
from aerospike import exception as ex
from aerospike_helpers.batch import records as br
from aerospike_helpers.operations import list_operations, operations as op

HOST, PORT = sys.argv[1], int(sys.argv[2])


def refused(kind, what, *arguments, **named):
    try:
        what(*arguments, **named)
    except kind as error:
        return error
    raise AssertionError("not refused")


def check_values(client):
    """Bins of every type come back as they were put, for keys of every type."""
    bins = {
        "integer": -(1 << 63), "double": 2.5, "string": "grüße", "blob": bytearray(b"\0\xff"),
        "yes": True, "list": [1, -200, 70000, 1 << 40, "a" * 40, b"b", 1.5, None, [True]],
        "map": {"k": 1, 2: ["x"], "deep": {"er": {}}}, "empty": "",
        "geo": aerospike.GeoJSON({"type": "Point", "coordinates": [1.5, 2.0]}),
    }
    for key in (("test", "s", 7), ("test", "s", "seven"), ("test", "s", bytearray(b"7")),
                ("test", None, 7), ("other", "s", 7)):
        assert client.exists(key)[1] is None
        client.put(key, bins)
        _, meta, got = client.get(key)
        assert meta["gen"] == 1 and meta["ttl"] == aerospike.TTL_NEVER_EXPIRE, meta
        assert got.pop("geo").unwrap() == bins["geo"].unwrap()
        assert got == {k: v for k, v in bins.items() if k != "geo"}, got
        assert client.exists(key)[1]["gen"] == 1
        assert client.select(key, ["yes", "nothing"])[2] == {"yes": True}
        client.remove(key)
        refused(ex.RecordNotFound, client.get, key)
        refused(ex.RecordNotFound, client.remove, key)


def check_operate(client):
    key = ("test", "s", "counted")
    for n in range(1, 4):
        _, meta, got = client.operate(
            key, [op.increment("n", 5), op.append("s", "x"), op.prepend("s", "y"), op.read("n")])
        assert (meta["gen"], got["n"]) == (n, 5 * n)
    assert client.get(key)[2] == {"n": 15, "s": "yyyxxx"}
    client.increment(key, "d", 1.5)
    client.increment(key, "d", -0.25)
    assert client.select(key, ["d"])[2] == {"d": 1.25}
    refused(ex.BinIncompatibleType, client.increment, key, "s", 1)
    refused(ex.BinIncompatibleType, client.append, key, "n", "text")
    client.remove_bin(key, ["d", "s"])
    assert client.get(key)[2] == {"n": 15}
    # What fails leaves the record as it was.
    refused(ex.BinIncompatibleType, client.operate, key,
            [op.write("n", 1), op.append("n", "text")])
    assert client.get(key)[2] == {"n": 15}
    refused(ex.UnsupportedFeature, client.operate, key, [list_operations.list_append("l", 1)])
    # A record without bins is none.
    client.remove_bin(key, ["n"])
    assert client.exists(key)[1] is None
    refused(ex.BinNameError, client.put, key, {"sixteen-letters-": 1})


def check_policies(client):
    key = ("test", "s", "policies")
    only = {"exists": aerospike.POLICY_EXISTS_UPDATE}
    refused(ex.RecordNotFound, client.put, key, {"a": 1}, policy=only)
    client.put(key, {"a": 1, "b": 2}, policy={"exists": aerospike.POLICY_EXISTS_CREATE})
    refused(ex.RecordExistsError, client.put, key, {"a": 2},
            policy={"exists": aerospike.POLICY_EXISTS_CREATE})
    client.put(key, {"a": 3}, policy=only)
    assert client.get(key)[2] == {"a": 3, "b": 2}
    client.put(key, {"c": 4}, policy={"exists": aerospike.POLICY_EXISTS_REPLACE})
    assert client.get(key)[2] == {"c": 4}
    generation = client.get(key)[1]["gen"]
    equal = {"gen": aerospike.POLICY_GEN_EQ}
    refused(ex.RecordGenerationError, client.put, key, {"c": 5}, {"gen": generation + 1}, equal)
    client.put(key, {"c": 5}, {"gen": generation}, equal)
    refused(ex.RecordGenerationError, client.remove, key, {"gen": generation}, equal)
    client.remove(key, {"gen": generation + 1}, equal)


def check_expiry(client):
    key = ("test", "s", "ends")
    client.put(key, {"a": 1}, {"ttl": 1000})
    assert 990 <= client.get(key)[1]["ttl"] <= 1000
    client.put(key, {"a": 2}, {"ttl": aerospike.TTL_DONT_UPDATE})
    assert 990 <= client.get(key)[1]["ttl"] <= 1000
    client.touch(key, 5000)
    assert client.exists(key)[1]["ttl"] > 4990
    client.touch(key, aerospike.TTL_NEVER_EXPIRE)
    assert client.exists(key)[1]["ttl"] == aerospike.TTL_NEVER_EXPIRE
    client.touch(key, 1)
    until = time.monotonic() + 20
    while client.exists(key)[1] is not None:
        assert time.monotonic() < until, "the record has not ended"
        time.sleep(0.1)
    refused(ex.RecordNotFound, client.touch, key, 10)


def check_batch(client):
    keys = [("test", "b", n) for n in range(300)]
    rows = [br.Write(key, [op.write("n", n), op.write("t", "x" * 100)])
            for n, key in enumerate(keys)]
    result = client.batch_write(br.BatchRecords(rows))
    assert result.result == 0 and all(row.result == 0 for row in result.batch_records)
    missing = ("test", "b", "missing")
    read = client.batch_read(keys + [missing])
    got = [row.record[2]["n"] for row in read.batch_records[:-1]]
    assert got == list(range(300)) and read.batch_records[-1].result == 2
    some = client.batch_read(keys[:3], ["n"])
    assert [row.record[2] for row in some.batch_records] == [{"n": n} for n in range(3)]
    there = client.batch_read(keys[:1] + [missing], [])
    assert [row.result for row in there.batch_records] == [0, 2]
    mixed = br.BatchRecords([
        br.Read(keys[5], [op.read("n")]),
        br.Write(keys[6], [op.increment("n", 1), op.read("n")]),
        br.Remove(keys[7]),
        br.Write(missing, [op.write("n", 1)],
                 policy={"exists": aerospike.POLICY_EXISTS_UPDATE}),
        br.Read(keys[8], [op.read("t")]),
    ])
    client.batch_write(mixed)
    assert [row.result for row in mixed.batch_records] == [0, 0, 0, 2, 0]
    assert mixed.batch_records[0].record[2] == {"n": 5}
    assert mixed.batch_records[1].record[2] == {"n": 7}
    assert client.exists(keys[7])[1] is None
    removed = client.batch_remove(keys)
    assert sorted({row.result for row in removed.batch_records}) == [0, 2]


def check_compression(client):
    key = ("test", "s", "large")
    text = "0123456789" * 5000
    packed = {"compress": True}
    client.put(key, {"t": text}, policy=packed)
    assert client.get(key, policy=packed)[2] == {"t": text}
    assert client.get(key)[2] == {"t": text}
    client.remove(key)


def check_info(client):
    def ask(what):
        (_, answer), = [(e, a) for e, a in client.info_all(what).values()]
        return answer.strip().split("\t", 1)[-1]

    assert ask("namespaces") == "test;other"
    assert "objects=0;" in ask("namespace/test")
    assert ask("partitions") == "4096" and ask("status") == "ok"
    figures = dict(pair.split("=", 1) for pair in ask("statistics").split(";"))
    assert int(figures["records.write"]) > 300 and figures["objects"] == "0", figures


def main():
    client = aerospike.client({"hosts": [(HOST, PORT)], "policies": {"timeout": 20000}}).connect()
    assert client.is_connected()
    for check in (check_values, check_operate, check_policies, check_expiry, check_batch,
                  check_compression, check_info):
        check(client)
    refused(ex.AerospikeError, client.put, ("nowhere", "s", 1), {"a": 1})
    refused(ex.AerospikeError, client.scan("test", "s").results)
    client.close()
    print("ok")


main()
