//! What happened to a target while a trial went on: `events.csv`, a row per event.
//!
//! In and out: [`Event`]s in the order in which they were learnt. The file exists only where there
//! was one.

use crate::table::{TableError, failed};
use std::io::{Read, Write};

const COLUMNS: [&str; 3] = ["t_s", "kind", "text"];

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// Hosts joined or left, or tokens moved.
    Ring,
    /// The table was altered, dropped, or created again.
    Schema,
    /// The target says that a host is up or down.
    Status,
    /// The ring could not be read anew.
    Unread,
}

impl EventKind {
    const ALL: [Self; 4] = [Self::Ring, Self::Schema, Self::Status, Self::Unread];

    /// As in the file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::Schema => "schema",
            Self::Status => "status",
            Self::Unread => "unread",
        }
    }
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// When it was learnt, since the start of the window; negative in the warm-up.
    pub t_s: f64,
    /// What it is about.
    pub kind: EventKind,
    /// What happened: a sentence.
    pub text: String,
}

/// Writes `events.csv`.
#[derive(Debug)]
pub struct EventsWriter<W: Write> {
    out: csv::Writer<W>,
}

impl<W: Write> EventsWriter<W> {
    /// A table with its header.
    ///
    /// # Errors
    /// [`TableError`]: the disk.
    pub fn new(out: W) -> Result<Self, TableError> {
        let mut out = csv::WriterBuilder::new().from_writer(out);
        out.write_record(COLUMNS).map_err(failed("events.csv"))?;
        Ok(Self { out })
    }

    /// Adds an event; it is in the file when this returns.
    ///
    /// # Errors
    /// [`TableError`]: the disk.
    pub fn write(&mut self, event: &Event) -> Result<(), TableError> {
        let t_s = format!("{:.3}", event.t_s);
        let fields = [&t_s, event.kind.name(), &event.text];
        self.out.write_record(fields).map_err(failed("events.csv"))?;
        self.out.flush().map_err(|e| failed("events.csv")(e.into()))
    }
}

/// Reads `events.csv`, at most `rows_max` rows of it. Rows of other kinds or without a time are
/// left out.
///
/// # Errors
/// [`TableError`]: no table, or not readable.
pub fn read_events(input: impl Read, rows_max: usize) -> Result<Vec<Event>, TableError> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(input);
    let mut events = Vec::new();
    for record in reader.records().take(rows_max) {
        let record = record.map_err(failed("events.csv"))?;
        let t_s = record.get(0).and_then(|t| t.parse::<f64>().ok()).filter(|t| t.is_finite());
        let kind = EventKind::ALL.into_iter().find(|kind| record.get(1) == Some(kind.name()));
        if let (Some(t_s), Some(kind)) = (t_s, kind) {
            let text = record.get(2).unwrap_or_default().to_owned();
            events.push(Event { t_s, kind, text });
        }
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_back_and_are_bounded() {
        let event = |t_s, kind, text: &str| Event { t_s, kind, text: text.to_owned() };
        let all = [
            event(-1.5, EventKind::Ring, "127.0.0.3:9042 joined, \"at last\"."),
            event(2.0, EventKind::Schema, "a\nb"),
            event(3.25, EventKind::Status, ""),
            event(4.0, EventKind::Unread, "no"),
        ];
        let mut bytes = Vec::new();
        let mut table = EventsWriter::new(&mut bytes).unwrap();
        all.iter().for_each(|e| table.write(e).unwrap());
        drop(table);
        bytes.extend(b"5,other,x\nx,ring,y\n");
        assert_eq!(read_events(&bytes[..], 100).unwrap(), all);
        assert_eq!(read_events(&bytes[..], 2).unwrap(), all[..2]);
    }
}
