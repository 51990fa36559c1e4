//! The workload of a line: `I`, `RU,80`, `RU,80,50,100`, `RR,80`.
//!
//! In: the value of `-w`. Out: what share of operations reads, and what share of those touches all
//! bins. Limits: functions, deletes of records and of bins are not built.

use super::generation::Generation;
use super::line::LineError;
use std::fmt;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Each key is written once.
    Insert,
    /// Reads, and writes of bins.
    ReadUpdate,
    /// Reads, and writes that replace the record.
    ReadReplace,
}

/// A workload. Shares are percent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Workload {
    /// What is done.
    pub kind: Kind,
    /// Of all operations, how many read.
    pub read: f64,
    /// Of reads, how many ask for all bins instead of the first.
    pub read_all: f64,
    /// Of writes, how many write all bins instead of the first.
    pub write_all: f64,
    /// Of the keys, how many are inserted.
    pub insert: f64,
}

impl Workload {
    /// Reads the value of `-w`.
    ///
    /// # Errors
    /// When it means nothing, or is not built.
    pub fn parse(text: &str, generation: Generation) -> Result<Self, LineError> {
        let mut parts = text.split(',').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let refuse = |cure: &str| Err(LineError::new(format!("workload '{text}'"), cure));
        let kind = match name {
            "I" => Kind::Insert,
            "RU" => Kind::ReadUpdate,
            "RR" => Kind::ReadReplace,
            "RUF" => return refuse("is not built: no function is called; give RU"),
            "RUD" | "DB" => return refuse("is not built: nothing is deleted; give I, RU or RR"),
            "RMU" | "RMI" | "RMD" | "TXN" => {
                return refuse("is not built: give I, RU or RR");
            }
            _ => return refuse("means nothing: give I, RU,80 or RR,80"),
        };
        let percent = |text: &str| text.parse::<f64>().ok().filter(|p| (0.0..=100.0).contains(p));
        let shares: Option<Vec<f64>> = parts.map(percent).collect();
        let Some(shares) = shares else {
            return refuse("has a share that is no number from 0 to 100");
        };
        let most = match (kind, generation) {
            (Kind::Insert, Generation::Two) => 0,
            (Kind::Insert, _) => 1,
            (_, Generation::Two | Generation::Java) => 3,
            _ => 1,
        };
        if shares.len() > most {
            return refuse(match (kind, most) {
                (Kind::Insert, 0) => "has a share of keys, which tools before asbench took: -k",
                (Kind::Insert, _) => "has more than a share of keys",
                (_, 1) => "has more than a share of reads, which asbench and Java's tool take",
                _ => "has more than shares of reads, of whole reads and of whole writes",
            });
        }
        let share = |at: usize, usual| shares.get(at).copied().unwrap_or(usual);
        Ok(match kind {
            Kind::Insert => {
                let insert = share(0, 100.0);
                Self { kind, read: 0.0, read_all: 100.0, write_all: 100.0, insert }
            }
            _ => Self {
                kind,
                read: share(0, 50.0),
                read_all: share(1, 100.0),
                write_all: share(2, 100.0),
                insert: 100.0,
            },
        })
    }

    /// Keys are drawn, and it has no end of its own.
    #[must_use]
    pub fn is_random(&self) -> bool {
        self.kind != Kind::Insert
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.kind {
            Kind::Insert if self.insert < 100.0 => return write!(f, "I,{}", self.insert),
            Kind::Insert => return f.write_str("I"),
            Kind::ReadUpdate => "RU",
            Kind::ReadReplace => "RR",
        };
        write!(f, "{name},{}", self.read)?;
        if (self.read_all, self.write_all) != (100.0, 100.0) {
            write!(f, ",{},{}", self.read_all, self.write_all)?;
        }
        Ok(())
    }
}
