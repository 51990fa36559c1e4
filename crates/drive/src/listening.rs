//! A control connection that listens: what the target tells by itself, while nothing is asked.
//!
//! In: EVENT frames (section 4.2.6). Out: a [`Happening`]. Nothing goes over the wire
//! but what happens. Limits: a host tells of what it hears itself; a host that vanishes without
//! closing its connections tells nothing.

use crate::control::{Control, ControlError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::net::IpAddr;
use units::Nanos;
use wire::cql::request::Request;
use wire::cql::response::Response;
use wire::cql::{Cursor, DecodeError};

/// What a target tells of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happening {
    /// A host joined, left or moved: the target's word for it.
    Topology(String, IpAddr),
    /// The target thinks that a host is up, or else down.
    Status {
        /// Which host.
        host: IpAddr,
        /// Up.
        up: bool,
    },
    /// A keyspace or what is in it was created, altered or dropped.
    Schema {
        /// The keyspace.
        keyspace: String,
        /// The table or type; None for the keyspace itself.
        object: Option<String>,
    },
    /// Something that this program knows nothing of.
    Other,
}

impl Control {
    /// Asks to be told of changes of the ring, of hosts, and of the schema.
    ///
    /// # Errors
    /// [`ControlError`], as for [`Self::query`].
    pub fn listen(&mut self) -> Result<(), ControlError> {
        let request = Request::Register(vec!["TOPOLOGY_CHANGE", "STATUS_CHANGE", "SCHEMA_CHANGE"]);
        let (header, body) = self.ask(&request)?;
        match self.decode(&header, &body)? {
            Response::Ready => Ok(()),
            Response::Error { code, message, .. } => Err(self.refused("REGISTER", code, message)),
            other => Err(self.unexpected(&other)),
        }
    }

    /// What the target has told, if it has within `patience`.
    ///
    /// # Errors
    /// [`ControlError`] when the connection is broken.
    pub fn hear(&mut self, patience: Nanos) -> Result<Option<Happening>, ControlError> {
        if self.has_frame() {
            return self.happening();
        }
        let patience = Timespec {
            tv_sec: (patience.0 / 1_000_000_000) as i64,
            tv_nsec: (patience.0 % 1_000_000_000) as i64,
        };
        match poll(&mut [PollFd::new(self.socket(), PollFlags::IN)], Some(&patience)) {
            Ok(0) | Err(Errno::INTR) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(self.broken(error.into())),
        }
        self.happening()
    }

    fn happening(&mut self) -> Result<Option<Happening>, ControlError> {
        let (header, body) = self.frame()?;
        match self.decode(&header, &body)? {
            Response::Event(kind, cursor) => {
                happening(kind, cursor).map(Some).map_err(|e| self.not_cql(&e))
            }
            other => Err(self.unexpected(&other)),
        }
    }
}

fn happening(kind: &str, mut cursor: Cursor<'_>) -> Result<Happening, DecodeError> {
    Ok(match kind {
        "TOPOLOGY_CHANGE" => {
            let change = cursor.string("change")?.to_owned();
            Happening::Topology(change, cursor.inet("host")?.0)
        }
        "STATUS_CHANGE" => {
            let up = cursor.string("change")? == "UP";
            Happening::Status { host: cursor.inet("host")?.0, up }
        }
        "SCHEMA_CHANGE" => {
            cursor.string("change")?;
            let target = cursor.string("target")?;
            let whole = target == "KEYSPACE";
            let keyspace = cursor.string("keyspace")?.to_owned();
            let object = if whole { None } else { Some(cursor.string("name")?.to_owned()) };
            Happening::Schema { keyspace, object }
        }
        _ => Happening::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::cql::put;

    fn told(kind: &str, write: impl FnOnce(&mut Vec<u8>)) -> Result<Happening, DecodeError> {
        let mut body = Vec::new();
        write(&mut body);
        happening(kind, Cursor::new(&body))
    }

    #[test]
    fn what_is_told_is_understood() {
        let inet = |out: &mut Vec<u8>| {
            put::u8(out, 4);
            out.extend([127, 0, 0, 3]);
            put::i32(out, 9042);
        };
        let host: IpAddr = [127, 0, 0, 3].into();
        let joined = told("TOPOLOGY_CHANGE", |out| {
            put::string(out, "NEW_NODE");
            inet(out);
        });
        assert_eq!(joined, Ok(Happening::Topology("NEW_NODE".into(), host)));
        for (word, up) in [("UP", true), ("DOWN", false)] {
            let status = told("STATUS_CHANGE", |out| {
                put::string(out, word);
                inet(out);
            });
            assert_eq!(status, Ok(Happening::Status { host, up }));
        }
        for object in [None, Some("t".to_owned())] {
            let change = told("SCHEMA_CHANGE", |out| {
                put::string(out, "UPDATED");
                put::string(out, if object.is_some() { "TABLE" } else { "KEYSPACE" });
                put::string(out, "ks");
                object.iter().for_each(|name| put::string(out, name));
            });
            assert_eq!(change, Ok(Happening::Schema { keyspace: "ks".into(), object }));
        }
        assert_eq!(told("SOMETHING_NEW", |_| {}), Ok(Happening::Other));
        assert!(told("STATUS_CHANGE", |out| put::string(out, "UP")).is_err());
    }
}
