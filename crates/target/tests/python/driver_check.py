"""The Python cassandra-driver uses the reference target unmodified:
python driver_check.py HOST PORT VERSION COMPRESSION, with version 4 or 5 and none, lz4 or snappy.

Ends with status 0 and the line "ok", or with the assertion that failed.
"""

import datetime
import decimal
import ipaddress
import sys
import time
import uuid
import warnings

from cassandra import AlreadyExists, ConsistencyLevel, InvalidRequest
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.policies import RoundRobinPolicy
from cassandra.protocol import SyntaxException
from cassandra.query import (BatchStatement, BatchType, SimpleStatement, UNSET_VALUE,
                             ValueSequence)

HOST, PORT = sys.argv[1], int(sys.argv[2])
VERSION, COMPRESSION = int(sys.argv[3]), sys.argv[4]


def cluster(**kwargs):
    profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy())
    kwargs.setdefault("compression", False if COMPRESSION == "none" else COMPRESSION)
    return Cluster([HOST], port=PORT, execution_profiles={EXEC_PROFILE_DEFAULT: profile}, **kwargs)


def refused(kind, what):
    try:
        what()
    except kind as error:
        return str(error)
    raise AssertionError("not refused")


def wait_for(what):
    until = time.monotonic() + 5
    while not what():
        assert time.monotonic() < until, "nothing happened in 5 s"
        time.sleep(0.02)


def check_downgrade():
    """Without a version the driver begins beyond v5 and must come down to v5 by itself."""
    assert Cluster([HOST]).protocol_version > 5
    lab = cluster()
    session = lab.connect()
    assert lab.protocol_version == 5
    assert session.execute("SELECT release_version FROM system.local").one()[0].startswith("4.1")
    lab.shutdown()


def check_statements(session):
    session.execute("CREATE TABLE t (k int, c text, v double, PRIMARY KEY (k, c)) "
                    "WITH CLUSTERING ORDER BY (c DESC)")
    session.execute("INSERT INTO t (k, c, v) VALUES (%s, %s, %s)", (1, "a'b", 1.5))
    session.execute("INSERT INTO t (k, c, v) VALUES (%(k)s, %(c)s, %(v)s)",
                    {"k": 1, "c": "z", "v": 2.5})
    assert [r.c for r in session.execute("SELECT * FROM t WHERE k = 1")] == ["z", "a'b"]
    insert = session.prepare("INSERT INTO t (k, c, v) VALUES (?, ?, ?)")
    assert insert.routing_key_indexes == [0]
    named = session.prepare("INSERT INTO t (k, c, v) VALUES (:key, :c, :v)")
    session.execute(named, {"key": 2, "c": "x", "v": 3.0})
    for n in range(250):
        session.execute(insert, (10 + n % 7, "c%03d" % n, float(n)))
    for size in (1, 10, 83, 5000):
        statement = SimpleStatement("SELECT k, c FROM t", fetch_size=size)
        rows = [tuple(r) for r in session.execute(statement)]
        assert len(rows) == len(set(rows)) == 253, (size, len(rows))
    session.execute(insert, (2, "x", UNSET_VALUE))
    assert session.execute("SELECT v FROM t WHERE k = 2").one().v == 3.0
    session.execute(insert, (2, "x", None))
    assert session.execute("SELECT v FROM t WHERE k = 2").one().v is None
    found = session.execute("SELECT k FROM t WHERE k IN %s", (ValueSequence([1, 2]),))
    assert sorted(r.k for r in found) == [1, 1, 2]
    assert session.execute("SELECT COUNT(*) FROM t").one()[0] == 253
    futures = [session.execute_async(insert, (99, str(n), float(n))) for n in range(500)]
    for future in futures:
        future.result()
    assert session.execute("SELECT COUNT(*) FROM t WHERE k = 99").one()[0] == 500


def check_types(session):
    session.execute(
        "CREATE TABLE types (k uuid PRIMARY KEY, a ascii, bi bigint, bl blob, bo boolean, "
        "da date, de decimal, d double, du duration, f float, i inet, n int, sm smallint, "
        "ti time, ts timestamp, tu timeuuid, ty tinyint, vi varint, l list<int>, s set<text>, "
        "m map<text, frozen<list<int>>>, tp tuple<int, text>)")
    row = session.execute("SELECT * FROM types")
    assert row.column_names[0] == "k"
    key, now = uuid.uuid4(), uuid.uuid1()
    values = {
        "k": key, "a": "ascii", "bi": -2 ** 63, "bl": b"\x00\xff", "bo": True,
        "da": datetime.date(2024, 2, 29), "de": decimal.Decimal("-12.50"), "d": 0.1,
        "f": 0.5, "i": "10.0.0.1", "n": -1, "sm": 7,
        "ti": datetime.time(1, 2, 3, 4000), "ts": datetime.datetime(2020, 1, 2, 3, 4, 5, 678000),
        "tu": now, "ty": -7, "vi": 2 ** 100, "l": [3, 1, 2], "s": {"b", "a"},
        "m": {"x": [1, 2]}, "tp": (1, "one"),
    }
    names = ", ".join(values)
    marks = ", ".join("?" for _ in values)
    insert = session.prepare("INSERT INTO types (%s) VALUES (%s)" % (names, marks))
    session.execute(insert, list(values.values()))
    row = session.execute("SELECT * FROM types WHERE k = %s", (key,)).one()
    for name, value in values.items():
        found = getattr(row, name)
        if name in ("da", "ti"):
            found, value = str(found)[:10], str(value)[:10]
        if name in ("s",):
            found = set(found)
        if name in ("m",):
            found = {k: list(v) for k, v in found.items()}
        assert found == value, (name, found, value)
    # The same by literals.
    literal = SimpleStatement("INSERT INTO types (k, de, vi, i, ts, du) VALUES "
                              "(%s, -1.5e3, 1267650600228229401496703205376, '::1', "
                              "'2020-01-02 03:04:05.678Z', 1h30m)" % uuid.UUID(int=1))
    session.execute(literal)
    row = session.execute("SELECT * FROM types WHERE k = %s", (uuid.UUID(int=1),)).one()
    assert row.de == decimal.Decimal(-1500) and row.vi == 2 ** 100
    assert ipaddress.ip_address(row.i) == ipaddress.ip_address("::1")
    assert row.ts == values["ts"] and row.du.nanoseconds == 5400 * 10 ** 9


def check_batches_and_counters(session):
    session.execute("CREATE TABLE b (k int PRIMARY KEY, v int)")
    insert = session.prepare("INSERT INTO b (k, v) VALUES (?, ?)")
    batch = BatchStatement(BatchType.UNLOGGED)
    for n in range(10):
        batch.add(insert, (n, n))
    batch.add(SimpleStatement("DELETE FROM b WHERE k = %s"), (100,))
    session.execute(batch)
    assert session.execute("SELECT COUNT(*) FROM b").one()[0] == 10
    session.execute("CREATE TABLE n (k int PRIMARY KEY, c counter)")
    add = session.prepare("UPDATE n SET c = c + ? WHERE k = ?")
    counters = BatchStatement(BatchType.COUNTER)
    counters.add(add, (5, 1))
    counters.add(add, (-2, 1))
    session.execute(counters)
    assert session.execute("SELECT c FROM n").one().c == 3
    session.execute("INSERT INTO b (k, v) VALUES (50, 1) USING TTL 1000 AND TIMESTAMP 123")
    row = session.execute("SELECT ttl(v), writetime(v) FROM b WHERE k = 50").one()
    assert 990 <= row[0] <= 1000 and row[1] == 123
    session.execute("INSERT INTO b (k, v) VALUES (51, 1) USING TTL 1")
    wait_for(lambda: session.execute("SELECT * FROM b WHERE k = 51").one() is None)


def check_errors(session):
    refused(SyntaxException, lambda: session.execute("SELEKT"))
    refused(InvalidRequest, lambda: session.execute("SELECT * FROM nowhere"))
    refused(AlreadyExists, lambda: session.execute("CREATE TABLE b (k int PRIMARY KEY)"))
    two = SimpleStatement("SELECT * FROM b", consistency_level=ConsistencyLevel.TWO)
    # The driver tries its other hosts, of which there are none.
    assert "consistency level TWO" in refused(NoHostAvailable, lambda: session.execute(two))
    text = refused(InvalidRequest, lambda: session.execute("CREATE INDEX ON b (v)"))
    assert "secondary indexes" in text
    wide = session.execute_async("CREATE KEYSPACE wide WITH replication = "
                                 "{'class': 'SimpleStrategy', 'replication_factor': 3}")
    wide.result()
    assert "one instance" in wide.warnings[0]
    session.execute("DROP KEYSPACE wide")


def check_metadata(lab, session):
    session.execute("CREATE TABLE meta (a int, b text, c int, s int static, v set<int>, "
                    "PRIMARY KEY ((a, b), c)) WITH CLUSTERING ORDER BY (c DESC) "
                    "AND comment = 'for the metadata' AND default_time_to_live = 60")
    assert lab.metadata.cluster_name == "wideload reference target"
    table = lab.metadata.keyspaces["ks"].tables["meta"]
    assert [c.name for c in table.partition_key] == ["a", "b"]
    assert [c.name for c in table.clustering_key] == ["c"]
    assert table.columns["c"].is_reversed and table.columns["s"].is_static
    assert table.columns["v"].cql_type == "set<int>"
    assert table.options["comment"] == "for the metadata"
    # What the driver prints of a table makes the same table.
    text = table.export_as_string().replace("ks.meta", "ks.meta2")
    session.execute(text)
    again = lab.metadata.keyspaces["ks"].tables["meta2"]
    assert list(again.columns) == list(table.columns)
    assert lab.metadata.token_map is not None
    assert {h.datacenter for h in lab.metadata.all_hosts()} == {"datacenter1"}
    assert session.execute("SELECT COUNT(*) FROM system.peers").one()[0] == 0


def check_long_rows(session):
    """Over several segments, both ways."""
    session.execute("CREATE TABLE long (k int PRIMARY KEY, v text)")
    insert = session.prepare("INSERT INTO long (k, v) VALUES (?, ?)")
    for n, size in enumerate([0, 1, 131_000, 131_071, 131_072, 500_000]):
        value = ("%07d" % n) * (size // 7 + 1)
        session.execute(insert, (n, value))
        assert session.execute("SELECT v FROM long WHERE k = %s", (n,)).one()[0] == value


def check_events():
    """Schema changes of one cluster object reach another by events."""
    watcher, doer = (cluster(protocol_version=VERSION) for _ in range(2))
    watcher.connect()
    session = doer.connect("ks")
    session.execute("CREATE TABLE told (k int PRIMARY KEY)")
    tables = lambda: watcher.metadata.keyspaces["ks"].tables  # noqa: E731
    wait_for(lambda: "told" in tables())
    session.execute("ALTER TABLE told ADD v text")
    wait_for(lambda: "v" in tables()["told"].columns)
    select = session.prepare("SELECT * FROM told")
    session.execute("DROP TABLE told")
    wait_for(lambda: "told" not in tables())
    refused(InvalidRequest, lambda: session.execute(select))
    watcher.shutdown()
    doer.shutdown()


def check_tokens(lab, session):
    session.execute("CREATE TABLE tokens (k text PRIMARY KEY)")
    insert = session.prepare("INSERT INTO tokens (k) VALUES (?)")
    for n in range(100):
        session.execute(insert, ("kéy%d" % n,))
    to_token = lab.metadata.token_map.token_class.from_key
    for row in session.execute("SELECT k, token(k) FROM tokens"):
        assert to_token(row[0].encode()).value == row[1]
    low = session.execute("SELECT k FROM tokens WHERE token(k) <= 0").all()
    high = session.execute("SELECT k FROM tokens WHERE token(k) > 0").all()
    assert len(low) + len(high) == 100


def main():
    warnings.simplefilter("ignore")
    if COMPRESSION != "snappy":  # which v5 does not have
        check_downgrade()
    lab = cluster(protocol_version=VERSION)
    session = lab.connect()
    connection = session.get_pools().__iter__().__next__()._connection
    assert (connection.compressor is not None) == (COMPRESSION != "none"), connection.compressor
    session.execute("CREATE KEYSPACE ks WITH replication = "
                    "{'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.set_keyspace("ks")
    check_statements(session)
    check_types(session)
    check_batches_and_counters(session)
    check_errors(session)
    check_metadata(lab, session)
    check_tokens(lab, session)
    check_long_rows(session)
    check_events()
    lab.shutdown()
    print("ok")


main()
