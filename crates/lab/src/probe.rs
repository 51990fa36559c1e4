//! A target looked at from outside, before anything is driven.
//!
//! Input: an address. Output: [`analyze::check::Target`]: whether and how fast it answers, its
//! version, clock, process and settings. Nothing is written to it. Limits: some 30 small queries;
//! the clock only to half a round trip and one millisecond; the process only on this host.

use crate::stand_in;
use analyze::check::{Clock, Local, Reached, Setting, Target};
use drive::{Access, Control, ControlError};
use machine::listener;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use units::{Nanos, clock};

const CONNECTS: usize = 5;
const QUERIES: usize = 21;

/// Looks at one host.
pub(crate) fn probe(address: SocketAddr, timeout: Nanos, access: &Access) -> Target {
    let reached = reached(address, timeout, access).map_err(|error| error.to_string());
    Target { address: address.to_string(), reached }
}

fn reached(address: SocketAddr, timeout: Nanos, access: &Access) -> Result<Reached, ControlError> {
    let mut control = Control::connect_as(address, timeout, access)?;
    let version = text_of(&mut control, "SELECT release_version FROM system.local")?;
    let known = stand_in::ask(address, version.as_deref(), timeout, access, &Arc::default())?;
    let mut connects = Vec::new();
    for _ in 0..CONNECTS {
        let begin = clock::now();
        let connected = TcpStream::connect_timeout(&address, timeout.to_duration());
        connected.map_err(|source| ControlError::Unreachable { address, source })?;
        connects.push(clock::now().since(begin));
    }
    let mut queries = Vec::new();
    for _ in 0..QUERIES {
        let begin = clock::now();
        control.query("SELECT key FROM system.local")?;
        queries.push(clock::now().since(begin));
    }
    Ok(Reached {
        version,
        stand_in: known.kind != "cql",
        connect_us: median_us(connects),
        query_us: median_us(queries),
        clock: clock_of(&mut control),
        local: local(address),
        settings: settings(&mut control),
    })
}

fn median_us(mut times: Vec<Nanos>) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).map_or(0.0, |time| time.0 as f64 / 1e3)
}

fn text_of(control: &mut Control, query: &str) -> Result<Option<String>, ControlError> {
    let cell = control.query(query)?.into_iter().flatten().flatten().next();
    Ok(cell.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Its clock against the middle of the query that asked for it.
fn clock_of(control: &mut Control) -> Option<Clock> {
    let before = clock::wall();
    // What is not understood is no error of the target: it simply does not tell.
    let rows = control.query("SELECT toUnixTimestamp(now()) FROM system.local").ok()?;
    let after = clock::wall();
    let cell = rows.into_iter().flatten().flatten().next()?;
    let theirs_ms = i64::from_be_bytes(cell.try_into().ok()?);
    let (before_ms, after_ms) = (before.0 as f64 / 1e6, after.0 as f64 / 1e6);
    // It cuts its time to the millisecond.
    let ahead_ms = theirs_ms as f64 + 0.5 - (before_ms + after_ms) / 2.0;
    Some(Clock { ahead_ms, error_ms: (after_ms - before_ms) / 2.0 + 0.5 })
}

fn local(address: SocketAddr) -> Local {
    match listener(Path::new("/"), address) {
        Some(found) => {
            let machine::Listener { pid, name, limits, cpus } = found;
            Local::Here { pid, name, limits, cpus }
        }
        None if address.ip().is_loopback() => Local::Hidden,
        None => Local::Elsewhere,
    }
}

fn settings(control: &mut Control) -> Option<Vec<Setting>> {
    let rows = control.query("SELECT name, value FROM system_views.settings").ok()?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let setting = |row: Vec<Option<Vec<u8>>>| {
        let [name, value] = row.try_into().ok()?;
        Some(Setting { name: text(name?), value: text(value?) })
    };
    Some(rows.into_iter().filter_map(setting).collect())
}
