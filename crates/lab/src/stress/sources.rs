//! What a line's profiles need from elsewhere: their text, and tables that they do not define.
//!
//! In: a path or an address; a cluster and the name of a table. Out: text; the statement that would
//! make the table. Bounded: 2 MiB, 10 s to connect and for each read. Addresses of `http` alone:
//! one GET of HTTP/1.0 (RFC 1945), no redirection followed.

use super::trial::addresses;
use crate::data::CONTROL_TIMEOUT_MIN;
use crate::provision;
use admin::{Admin, Config, literal};
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use units::{Bytes, CpuSet, Nanos, read_plain_text};
use workload::cassandra_stress::Sources;
use workload::cassandra_stress::settings::{Hosts, Mode};

/// Of a profile; beyond, its reader refuses it.
const PROFILE_SIZE_MAX: Bytes = Bytes(2 << 20);
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// Of a whole answer.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// This host's files, and the clusters that it reaches.
#[derive(Debug, Clone, Copy)]
pub struct Reachable;

impl Sources for Reachable {
    fn text(&self, place: &str) -> Result<String, String> {
        match place.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => fetched(rest),
            _ => {
                let read = read_plain_text(Path::new(place), PROFILE_SIZE_MAX);
                read.map_err(|error| error.to_string())
            }
        }
    }

    fn table(
        &self,
        (hosts, mode): (&Hosts, &Mode),
        keyspace: &str,
        table: &str,
    ) -> Result<String, String> {
        let said = |error: &dyn std::fmt::Display| error.to_string();
        let stop = Arc::new(AtomicBool::new(false));
        let named = addresses(hosts, mode.port).map_err(|e| said(&e))?;
        let found = provision::running(&named, false, &stop).map_err(|e| said(&e))?;
        let config = Config {
            hosts: found.addresses,
            credentials: mode.credentials.clone(),
            tls: None,
            fixed_hosts: hosts.whitelist,
            identities: Vec::new(),
            datacenter: hosts.datacenter.clone(),
            timeout: Nanos::from_millis(mode.timeout_ms).max(CONTROL_TIMEOUT_MIN),
            cpus: CpuSet::default(),
        };
        let admin = Admin::connect(&config).map_err(|e| said(&e))?;
        let query = format!(
            "SELECT column_name, kind, position, type, clustering_order FROM \
             system_schema.columns WHERE keyspace_name = {} AND table_name = {}",
            literal(keyspace),
            literal(table)
        );
        let rows = admin.query(&query).map_err(|e| said(&e))?;
        let text = |row: &admin::Row, name| row.get(name).text().unwrap_or_default().to_owned();
        let column = |row: &admin::Row| Column {
            name: text(row, "column_name"),
            kind: text(row, "kind"),
            position: row.get("position").integer().unwrap_or(0),
            type_text: text(row, "type"),
        };
        definition(keyspace, table, rows.iter().map(column).collect())
            .ok_or_else(|| format!("the cluster has no table {keyspace}.{table}"))
    }
}

/// A column as the system tables tell it.
#[derive(Debug, Clone)]
struct Column {
    name: String,
    kind: String,
    position: i64,
    type_text: String,
}

/// The statement that would make a table of these columns; None of none.
fn definition(keyspace: &str, table: &str, mut columns: Vec<Column>) -> Option<String> {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    columns.sort_by_key(|column| column.position);
    let key = |kind: &str| {
        let of_kind = columns.iter().filter(|column| column.kind == kind);
        of_kind.map(|column| quoted(&column.name)).collect::<Vec<_>>()
    };
    let (partition, clustering) = (key("partition_key"), key("clustering"));
    if partition.is_empty() {
        return None;
    }
    let declared = columns.iter().map(|column| {
        let fixed = if column.kind == "static" { " static" } else { "" };
        format!("{} {}{fixed}", quoted(&column.name), column.type_text)
    });
    let declared: Vec<_> = declared.collect();
    let rest: String = clustering.iter().map(|name| format!(", {name}")).collect();
    Some(format!(
        "CREATE TABLE {}.{} ({}, PRIMARY KEY (({}){rest}))",
        quoted(keyspace),
        quoted(table),
        declared.join(", "),
        partition.join(", ")
    ))
}

/// What a server answers a GET with; `place` is `host[:port]/path`.
fn fetched(place: &str) -> Result<String, String> {
    let (host, path) = place.split_once('/').map_or((place, ""), |(host, path)| (host, path));
    let odd = |c: char| c.is_whitespace() || c.is_control();
    if host.is_empty() || place.contains(odd) {
        return Err("it is no address like http://host:port/path".to_owned());
    }
    let port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let with_port = if port { host.to_owned() } else { format!("{host}:80") };
    let said = |error: std::io::Error| error.to_string();
    let mut found = with_port.to_socket_addrs().map_err(said)?;
    let address = found.next().ok_or("its host has no address")?;
    let mut stream = TcpStream::connect_timeout(&address, CONNECT_MAX).map_err(said)?;
    stream.set_read_timeout(Some(CONNECT_MAX)).map_err(said)?;
    stream.set_write_timeout(Some(CONNECT_MAX)).map_err(said)?;
    let request = format!("GET /{path} HTTP/1.0\r\nHost: {host}\r\nAccept: */*\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(said)?;
    let begun = Instant::now();
    let (mut answer, mut part) = (Vec::new(), [0; 1 << 14]);
    loop {
        match stream.read(&mut part).map_err(said)? {
            0 => return body(&answer),
            size => answer.extend_from_slice(&part[..size]),
        }
        if answer.len() as u64 > PROFILE_SIZE_MAX.0 {
            return Err(format!("it is larger than {PROFILE_SIZE_MAX}"));
        }
        if begun.elapsed() > ANSWER_MAX {
            return Err("the server takes longer than 30 s".to_owned());
        }
    }
}

/// The text behind the head of an answer.
fn body(answer: &[u8]) -> Result<String, String> {
    let answer = String::from_utf8_lossy(answer);
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("the answer is not HTTP's")?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    match (head.starts_with("HTTP/1."), status) {
        (true, "200") => Ok(body.to_owned()),
        (true, _) => Err(format!("the server answers {status}")),
        (false, _) => Err("the answer is not HTTP's".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_table_is_told_by_its_columns() {
        let column = |name: &str, kind: &str, position, type_text: &str| Column {
            name: name.to_owned(),
            kind: kind.to_owned(),
            position,
            type_text: type_text.to_owned(),
        };
        let columns = vec![
            column("B", "partition_key", 1, "int"),
            column("a", "partition_key", 0, "text"),
            column("c", "clustering", 0, "timeuuid"),
            column("s", "static", -1, "frozen<set<int>>"),
        ];
        let text = definition("k", "T", columns).unwrap();
        assert_eq!(
            text,
            "CREATE TABLE \"k\".\"T\" (\"s\" frozen<set<int>> static, \"a\" text, \"c\" timeuuid, \
             \"B\" int, PRIMARY KEY ((\"a\", \"B\"), \"c\"))"
        );
        assert_eq!(definition("k", "t", Vec::new()), None);
    }

    #[test]
    fn a_text_is_fetched_or_said_why_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            for answer in [
                "HTTP/1.1 200 OK\r\nServer: x\r\n\r\nkeyspace: k\n",
                "HTTP/1.0 404 Not Found\r\n\r\nno",
                "SSH-2.0\r\n",
            ] {
                let (mut stream, _) = listener.accept().unwrap();
                let mut asked = [0; 512];
                let size = stream.read(&mut asked).unwrap();
                assert!(asked[..size].starts_with(b"GET /a/b.yaml HTTP/1.0\r\nHost: "));
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        let ask = || Reachable.text(&format!("http://{address}/a/b.yaml"));
        assert_eq!(ask(), Ok("keyspace: k\n".to_owned()));
        assert_eq!(ask(), Err("the server answers 404".to_owned()));
        assert_eq!(ask(), Err("the answer is not HTTP's".to_owned()));
        server.join().unwrap();
        assert!(ask().is_err(), "nobody listens");
        assert!(Reachable.text("http:///x").is_err() && Reachable.text("http://a b/").is_err());
    }
}
