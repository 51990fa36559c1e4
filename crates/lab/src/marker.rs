//! The marker: a row beside the tables of a keyspace that says which of them are wideload's, and
//! what is in them.
//!
//! In: a plan. Out: its [`Shape`], what decides its rows, as words and a hash; and a row of
//! `wideload_marker` written and read. A table without a row there belongs to somebody else. The
//! hash is 64-bit FNV-1a over the whole of the shape; it has to stay the same over versions.

use crate::error::LabError;
use admin::aerospike::{self, Cluster};
use admin::{Admin, QueryError, Row, SchemaError, literal};
use drive::{TableName, identifier};
use std::ops::Range;
use wire::aerospike::{Key, UserKey};
use workload::{Content, KeyOrder, Lengths, Plan};

/// The table of markers, in the keyspace of the tables that it is about.
const TABLE: &str = "wideload_marker";
/// Its columns.
const COLUMNS: [&str; 7] =
    ["table_name", "plan_hash", "records", "layout", "seed", "finished", "missing"];
/// More ranges than this are not read back: it is no text that this program has written.
const RANGES_MAX: usize = 1 << 16;

/// What decides which rows a plan loads. The bytes of random values follow from the seed as well;
/// their lengths do not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    /// For people.
    pub(crate) layout: String,
    /// Of all of it, in hexadecimal digits.
    pub(crate) hash: String,
}

impl Shape {
    pub(crate) fn of(plan: &Plan) -> Self {
        let (keys, schema) = (&plan.keys, &plan.schema);
        let order = match &keys.order {
            KeyOrder::Hashed => "hashed",
            KeyOrder::Ordered => "ordered",
            KeyOrder::Seeded(_) => "seeds of cassandra-stress",
        };
        let values = match &plan.values.content {
            Content::Verified { size } => format!("verified text of {size} bytes"),
            Content::Random(Lengths::Constant(size)) => format!("random text of {size} bytes"),
            Content::Random(Lengths::Uniform { min, max }) => {
                format!("random text of {min} to {max} bytes, uniform")
            }
            Content::Random(Lengths::Zipfian { min, max, .. }) => {
                format!("random text of {min} to {max} bytes, zipfian")
            }
            Content::Blobs { columns, .. } => {
                format!("blobs of cassandra-stress {}", fnv(&format!("{columns:?}")))
            }
            Content::Increments(by) => format!("counters {}", fnv(&format!("{by:?}"))),
            Content::Random(lengths) => {
                let hash = fnv(&format!("{lengths:?}"));
                format!("random text of up to {} bytes by histogram {hash}", lengths.max())
            }
        };
        let names = match &schema.columns[..] {
            [first, .., last] => format!("{first} to {last}"),
            columns => columns.join(", "),
        };
        let layout = format!(
            "{} keys from {}, {order}, {} digits; {} columns {names} of {values}",
            keys.loaded,
            keys.start,
            keys.zero_padding,
            schema.columns.len()
        );
        let all = format!("{layout}\n{}\n{}", schema.key_column, schema.columns.join("\n"));
        Self { layout, hash: fnv(&all) }
    }
}

fn fnv(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// What the marker says of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Marker {
    /// What was loaded.
    pub(crate) shape: Shape,
    /// By which seed.
    pub(crate) seed: u64,
    /// The keys that are not known to be written, ascending; none when the load is finished.
    pub(crate) missing: Vec<Range<u64>>,
}

/// Creates the table of markers where it is missing.
pub(crate) fn create(admin: &Admin, table: &TableName) -> Result<(), SchemaError> {
    admin.schema_change(&format!(
        "CREATE TABLE IF NOT EXISTS {} (table_name text PRIMARY KEY, plan_hash text, records \
         bigint, layout text, seed bigint, finished boolean, missing text)",
        marker_table(table)
    ))
}

/// Writes a table's row. `records` are the keys that its load writes.
pub(crate) fn write(
    admin: &Admin,
    table: &TableName,
    marker: &Marker,
    records: u64,
) -> Result<(), QueryError> {
    let text = format!(
        "INSERT INTO {} (table_name, plan_hash, records, layout, seed, finished, missing) VALUES \
         ({}, {}, {}, {}, {}, {}, {})",
        marker_table(table),
        literal(&table.table),
        literal(&marker.shape.hash),
        records.cast_signed(),
        literal(&marker.shape.layout),
        marker.seed.cast_signed(),
        marker.missing.is_empty(),
        literal(&ranges_text(&marker.missing))
    );
    admin.write(&text)
}

fn ranges_text(ranges: &[Range<u64>]) -> String {
    let ranges = ranges.iter().map(|keys| format!("{}..{}", keys.start, keys.end));
    ranges.collect::<Vec<_>>().join(" ")
}

/// As [`write`], of a set of records.
pub(crate) fn write_record(
    cluster: &mut Cluster,
    set: &TableName,
    marker: &Marker,
    records: u64,
) -> Result<(), aerospike::Error> {
    let key = Key::new(&set.keyspace, TABLE, UserKey::String(&set.table));
    let [_, hash, count, layout, seed, finished, missing] = COLUMNS;
    cluster.put(
        &key,
        &[
            (hash, marker.shape.hash.clone()),
            (count, records.to_string()),
            (layout, marker.shape.layout.clone()),
            (seed, marker.seed.to_string()),
            (finished, marker.missing.is_empty().to_string()),
            (missing, ranges_text(&marker.missing)),
        ],
    )
}

/// As [`read`], of a set of records.
pub(crate) fn read_record(
    cluster: &mut Cluster,
    set: &TableName,
) -> Result<Option<Marker>, LabError> {
    let key = Key::new(&set.keyspace, TABLE, UserKey::String(&set.table));
    let Some(bins) = cluster.get(&key)? else { return Ok(None) };
    let text = |name: &str| {
        let value = bins.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        value.and_then(|value| String::from_utf8(value).ok())
    };
    let marker = || {
        let [_, hash, _, layout, seed, finished, missing] = COLUMNS;
        let ranges = ranges(&text(missing)?)?;
        (text(finished)? == ranges.is_empty().to_string()).then_some(())?;
        Some(Marker {
            shape: Shape { layout: text(layout)?, hash: text(hash)? },
            seed: text(seed)?.parse().ok()?,
            missing: ranges,
        })
    };
    let unread = || LabError::Marker {
        table: format!("{}.{}", set.keyspace, set.table),
        markers: format!("{}.{TABLE}", set.keyspace),
        name: format!("'{}'", set.table),
    };
    marker().map(Some).ok_or_else(unread)
}

/// Reads a table's row; None when it has none, or its keyspace has no markers.
pub(crate) fn read(admin: &Admin, table: &TableName) -> Result<Option<Marker>, LabError> {
    let exists = format!(
        "SELECT column_name FROM system_schema.columns WHERE keyspace_name = {} AND table_name = \
         {}",
        literal(&table.keyspace),
        literal(TABLE)
    );
    let columns = admin.query(&exists)?;
    if columns.is_empty() {
        return Ok(None);
    }
    let has = |name| columns.iter().any(|row| row.get("column_name").text() == Some(name));
    if !COLUMNS.into_iter().all(has) {
        let (table, markers) = (table.quoted(), marker_table(table));
        return Err(LabError::ForeignMarkers { table, markers });
    }
    let text = format!(
        "SELECT plan_hash, layout, seed, finished, missing FROM {} WHERE table_name = {}",
        marker_table(table),
        literal(&table.table)
    );
    let rows = admin.query(&text)?;
    let unread = || LabError::Marker {
        table: table.quoted(),
        markers: marker_table(table),
        name: literal(&table.table),
    };
    rows.first().map(|row| parse(row).ok_or_else(unread)).transpose()
}

fn parse(row: &Row) -> Option<Marker> {
    let text = |column| row.get(column).text().map(str::to_owned);
    let missing = ranges(&text("missing")?)?;
    let finished = row.get("finished").boolean()?;
    (finished == missing.is_empty()).then_some(())?;
    Some(Marker {
        shape: Shape { layout: text("layout")?, hash: text("plan_hash")? },
        seed: row.get("seed").integer()?.cast_unsigned(),
        missing,
    })
}

/// `0..10 20..30`, ascending and apart.
fn ranges(text: &str) -> Option<Vec<Range<u64>>> {
    let mut ranges = Vec::new();
    let mut end = 0;
    for word in text.split_ascii_whitespace() {
        let (from, to) = word.split_once("..")?;
        let range: Range<u64> = from.parse().ok()?..to.parse().ok()?;
        if range.is_empty() || range.start < end || ranges.len() == RANGES_MAX {
            return None;
        }
        end = range.end;
        ranges.push(range);
    }
    Some(ranges)
}

fn marker_table(table: &TableName) -> String {
    format!("{}.{TABLE}", identifier(&table.keyspace))
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::ycsb::{self, Properties};

    fn shape(workload: &str, properties: &[&str], records: u64) -> Shape {
        let files: [&str; 0] = [];
        let properties = Properties::load(&files, properties).unwrap();
        Shape::of(&ycsb::plan(workload, &properties, Some(records), None).unwrap().plan)
    }

    #[test]
    fn the_shape_is_what_decides_the_rows_and_nothing_else() {
        let shape_a = shape("a", &[], 1000);
        assert_eq!(
            shape_a.layout,
            "1000 keys from 0, hashed, 1 digits; 10 columns field0 to field9 of random text of \
             100 bytes"
        );
        // Kept in markers on other people's clusters: it must not change.
        assert_eq!(shape_a.hash, GOLDEN_HASH);
        for same in [
            shape("c", &[], 1000),
            shape("a", &["requestdistribution=uniform", "readproportion=0.1"], 1000),
            shape("a", &["writeallfields=true", "operationcount=7"], 1000),
        ] {
            assert_eq!(same, shape_a);
        }
        for (properties, records) in [
            (&[][..], 1001),
            (&["fieldcount=9"], 1000),
            (&["fieldlength=99"], 1000),
            (&["fieldlengthdistribution=uniform"], 1000),
            (&["fieldlengthdistribution=zipfian"], 1000),
            (&["insertorder=ordered"], 1000),
            (&["insertstart=1"], 1000),
            (&["zeropadding=20"], 1000),
            (&["dataintegrity=true"], 1000),
            (&["fieldnameprefix=f"], 1000),
        ] {
            let other = shape("a", properties, records);
            assert_ne!(other.hash, shape_a.hash, "{properties:?}");
            assert_ne!(other.layout, shape_a.layout, "{properties:?}");
        }
    }

    /// Computed by an independent program from the words of the layout and the columns.
    const GOLDEN_HASH: &str = "dd6a049b20c3ac4f";

    #[test]
    fn ranges_are_read_or_refused() {
        assert_eq!(ranges(""), Some(vec![]));
        assert_eq!(ranges("0..10 20..30"), Some(vec![0..10, 20..30]));
        for bad in ["10..0", "0..0", "20..30 0..10", "0..10 5..20", "0-10", "0..x", "-1..5", ".."] {
            assert_eq!(ranges(bad), None, "{bad}");
        }
    }
}
