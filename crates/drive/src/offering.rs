//! What hosts say of their shards and tablets, asked over control connections before a run.
//!
//! In: a connection to each host. Out: [`Shards`]; None where no host has any. A Cassandra is asked
//! one question more by this. Tablets are read once: what moves later is told by answers.

use crate::control::{Control, ControlError};
use crate::cql::TableName;
use crate::sharded::Shards;
use std::fmt::Write as _;
use wire::shards::{Offer, ShardError};
use wire::tablets::{TabletMap, decode_replicas};

/// What hosts have said.
#[derive(Debug, Default)]
pub struct Offering {
    /// None when no host has shards.
    pub shards: Option<Shards>,
    /// Hosts that say what nobody can route by, and what that is; they are driven as if they had no
    /// shards.
    pub unread: Vec<String>,
}

/// A text in CQL.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

impl Control {
    /// The id of the host; None when it does not say.
    fn host_id(&mut self) -> Result<Option<[u8; 16]>, ControlError> {
        let rows = self.query("SELECT host_id FROM system.local WHERE key = 'local'")?;
        let cell = rows.into_iter().next().and_then(|row| row.into_iter().next()).flatten();
        Ok(cell.and_then(|id| id.try_into().ok()))
    }

    /// The tablets of a table; none when it lies in none, or the host has no such thing.
    fn tablets(&mut self, table: &TableName) -> Result<TabletMap, ControlError> {
        let id = self.query(&format!(
            "SELECT id FROM system_schema.tables WHERE keyspace_name = {} AND table_name = {}",
            literal(&table.keyspace),
            literal(&table.table)
        ))?;
        let id = id.into_iter().next().and_then(|row| row.into_iter().next()).flatten();
        let id: Option<[u8; 16]> = id.and_then(|id| id.try_into().ok());
        let Some(id) = id else { return Ok(TabletMap::default()) };
        let mut uuid = String::new();
        for (n, byte) in id.iter().enumerate() {
            let dash = if matches!(n, 4 | 6 | 8 | 10) { "-" } else { "" };
            // Writing to a string does not fail.
            let _ = write!(uuid, "{dash}{byte:02x}");
        }
        let text =
            format!("SELECT last_token, replicas FROM system.tablets WHERE table_id = {uuid}");
        let rows = match self.query(&text) {
            Ok(rows) => rows,
            // A host that has shards and no tablets yet.
            Err(ControlError::Refused { .. }) => return Ok(TabletMap::default()),
            Err(error) => return Err(error),
        };
        let tablet = |row: Vec<Option<Vec<u8>>>| {
            let [last, replicas] = <[_; 2]>::try_from(row).ok()?;
            let last = i64::from_be_bytes(last?.try_into().ok()?);
            Some((last, decode_replicas(&replicas?).ok()?))
        };
        // One that cannot be read is a gap, which answers fill.
        let ends: Option<Vec<_>> = rows.into_iter().map(tablet).collect();
        Ok(TabletMap::of_all(ends.unwrap_or_default()))
    }
}

impl Offering {
    /// Asks each host, in their order, for what is to be known of the plan's tables.
    ///
    /// # Errors
    /// [`ControlError`] when a connection fails.
    pub fn of(hosts: &mut [Control], tables: &[TableName]) -> Result<Self, ControlError> {
        let mut offering = Self::default();
        let mut shards = Shards::default();
        for (n, host) in hosts.iter_mut().enumerate() {
            let offer = offering.take(host.offer()?);
            // The first one of a Cassandra speaks for all.
            if n == 0 && offer.is_none() && offering.unread.is_empty() {
                return Ok(offering);
            }
            let id = match offer {
                Some(_) => host.host_id()?,
                None => None,
            };
            if shards.tablets.is_empty() && offer.is_some_and(|offer| offer.tablets) {
                let maps = tables.iter().map(|table| host.tablets(table));
                let maps = maps.collect::<Result<Vec<_>, _>>()?;
                if maps.iter().any(|map| !map.is_empty()) {
                    shards.tablets = maps;
                }
            }
            shards.offers.push(offer);
            shards.host_ids.push(id.unwrap_or_default());
        }
        if shards.offers.iter().any(Option::is_some) {
            offering.shards = Some(shards);
        }
        Ok(offering)
    }

    fn take(&mut self, said: Result<Option<Offer>, ShardError>) -> Option<Offer> {
        said.unwrap_or_else(|error| {
            self.unread.push(error.to_string());
            None
        })
    }
}
