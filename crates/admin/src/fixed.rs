//! Fixed hosts: each given address is asked whose it is; from then on that host is reached there
//! and nowhere else, and other hosts are left alone.
//!
//! The driver knows hosts by the addresses that the cluster tells, which behind NAT or in
//! containers lead nowhere. Host ids are the same on both sides.

use crate::connect::{ConnectError, Way, builder, open};
use crate::rows::{Cell, rows_of};
use scylla::client::session::Session;
use scylla::cluster::metadata::Peer;
use scylla::errors::TranslationError;
use scylla::policies::address_translator::{AddressTranslator, UntranslatedPeer};
use scylla::policies::host_filter::HostFilter;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

/// Given addresses by host id.
pub(crate) type Fixed = HashMap<[u8; 16], SocketAddr>;

/// The future that the driver's trait wants back.
type Translated<'a> =
    Pin<Box<dyn Future<Output = Result<SocketAddr, TranslationError>> + Send + 'a>>;

/// Asks each host who it is, unless that is known, then connects to all of them under their given
/// addresses.
pub(crate) async fn connect(way: Way<'_>) -> Result<(Session, SocketAddr, Fixed), ConnectError> {
    let config = way.config;
    let mut fixed: Fixed = config.identities.iter().copied().collect();
    if fixed.is_empty() {
        for &address in &config.hosts {
            fixed.entry(who_is_at(way, address).await?).or_insert(address);
        }
    }
    let known = Arc::new(Known(fixed.clone()));
    let mut first = None;
    for &contact in &config.hosts {
        let builder = builder(way, contact)?.host_filter(known.clone());
        let translator = way.translator(known.clone());
        match open(builder.address_translator(translator), way, contact).await {
            Ok(session) => return Ok((session, contact, fixed)),
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or(ConnectError::NoHost))
}

async fn who_is_at(way: Way<'_>, address: SocketAddr) -> Result<[u8; 16], ConnectError> {
    let builder = builder(way, address)?
        .host_filter(Arc::new(AnyOne(OnceLock::new())))
        .address_translator(way.translator(Arc::new(AllAt(address))));
    let session = open(builder, way, address).await?;
    let not_cql = |reason: String| ConnectError::NotCql { address, reason };
    let text = "SELECT host_id FROM system.local WHERE key = 'local'";
    let answer = session.query_unpaged(text, &[]).await.map_err(|e| not_cql(e.to_string()))?;
    let rows = rows_of(answer).map_err(not_cql)?;
    match rows.first().map(|row| row.get("host_id")) {
        Some(Cell::Bytes(id)) => id[..].try_into().ok(),
        _ => None,
    }
    .ok_or_else(|| not_cql("it does not tell its host id".to_owned()))
}

/// Whatever the cluster tells, this is where it is: so that a session with one address, told as
/// any host, asks that very address.
struct AllAt(SocketAddr);

impl AddressTranslator for AllAt {
    fn translate_address<'a, 'b, 'r>(&'a self, _peer: &'b UntranslatedPeer<'_>) -> Translated<'r>
    where
        'a: 'r,
        'b: 'r,
        Self: 'r,
    {
        let address = self.0;
        Box::pin(async move { Ok(address) })
    }
}

/// Lets one host in, the first that is asked for.
struct AnyOne(OnceLock<[u8; 16]>);

impl HostFilter for AnyOne {
    fn accept(&self, peer: &Peer) -> bool {
        let id = *peer.host_id.as_bytes();
        *self.0.get_or_init(|| id) == id
    }
}

/// Lets in the hosts whose address was given, at that address.
struct Known(Fixed);

impl HostFilter for Known {
    fn accept(&self, peer: &Peer) -> bool {
        self.0.contains_key(peer.host_id.as_bytes())
    }
}

impl AddressTranslator for Known {
    fn translate_address<'a, 'b, 'r>(&'a self, peer: &'b UntranslatedPeer<'_>) -> Translated<'r>
    where
        'a: 'r,
        'b: 'r,
        Self: 'r,
    {
        let id = peer.host_id();
        let address = self.0.get(id.as_bytes()).copied();
        Box::pin(async move { address.ok_or(TranslationError::NoRuleForHost(id)) })
    }
}
