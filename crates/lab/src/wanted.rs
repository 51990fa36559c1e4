//! Which rows are to be written before a run, by the marker of what is there.
//!
//! In: a trial, the marker, and how keys are looked for. Out: [`Rows`], or that all are there.

use crate::data::writes;
use crate::error::LabError;
use crate::live::Live;
use crate::marker::{Marker, Shape};
use crate::trial::{LoadChoice, Trial};
use record::Caveat;
use std::ops::Range;

/// Rows that are to be loaded.
pub(crate) struct Rows {
    /// Ranges of keys.
    pub(crate) missing: Vec<Range<u64>>,
    pub(crate) seed: u64,
    /// In the marker.
    pub(crate) booked: bool,
}

/// How many keys there are, of so many that were looked for.
pub(crate) struct Probed {
    pub(crate) found: usize,
    pub(crate) of: usize,
}

impl Rows {
    /// All of a trial.
    pub(crate) fn all(trial: &Trial, booked: bool) -> Self {
        let keys = &trial.plan.keys;
        let missing = std::iter::once(keys.start..keys.start + keys.loaded).collect();
        Self { missing, seed: trial.seed, booked }
    }

    /// Those of a table or set without a marker: somebody else's. It may be read when the rows are
    /// there; to write to it takes a word of the user, or it is `foreign`.
    pub(crate) fn unmarked(
        trial: &Trial,
        all: Option<Self>,
        (name, rows): (String, &str),
        foreign: LabError,
        probe: impl FnOnce() -> Result<Probed, LabError>,
        cure: &str,
        caveats: &mut Vec<Caveat>,
    ) -> Result<Option<Self>, LabError> {
        let loads = trial.load_choice == LoadChoice::Load;
        if (loads || writes(&trial.plan)) && !trial.write_into_existing {
            return Err(foreign);
        }
        let (wanted, text) = match trial.load_choice {
            LoadChoice::Load => (all, format!("its {rows} were loaded over those that were there")),
            LoadChoice::Skip => {
                (None, format!("nothing says that its {rows} are those of this workload"))
            }
            LoadChoice::Undecided => {
                let Probed { found, of: probed } = probe()?;
                match (found == probed, trial.write_into_existing) {
                    (true, _) => {
                        let text = "fit was found only by looking for some keys";
                        (None, format!("that its {rows} {text}"))
                    }
                    (false, true) => {
                        (all, format!("its {rows} were loaded beside those that were there"))
                    }
                    (false, false) => {
                        let lacking = probed - found;
                        return Err(LabError::ForeignRows { table: name, lacking, probed });
                    }
                }
            }
        };
        let text = format!("{name} does not carry wideload's marker: {text}.");
        caveats.push(Caveat::new("no-marker", text).cure(cure));
        Ok(wanted)
    }

    /// Those that a marker's table or set, which people call `name`, wants.
    pub(crate) fn wanted(
        trial: &Trial,
        marker: Marker,
        name: String,
        probe: impl FnOnce() -> Result<Probed, LabError>,
        live: &mut dyn Live,
        caveats: &mut Vec<Caveat>,
    ) -> Result<Option<Self>, LabError> {
        let (shape, records) = (Shape::of(&trial.plan), trial.plan.keys.loaded);
        if marker.shape != shape {
            let (theirs, ours) = (marker.shape.layout, shape.layout);
            return Err(LabError::OtherShape { table: name, theirs, ours });
        }
        match trial.load_choice {
            LoadChoice::Load => Ok(Some(Self::all(trial, true))),
            LoadChoice::Skip => {
                if !marker.missing.is_empty() {
                    let caveat = Caveat::new("partial-load", partial(&marker, records));
                    caveats.push(caveat.cure("Run without --skip-load: the load is resumed."));
                }
                Ok(None)
            }
            LoadChoice::Undecided if marker.missing.is_empty() => {
                let Probed { found, of: probed } = probe()?;
                if found < probed {
                    let lacking = probed - found;
                    return Err(LabError::RowsMissing { table: name, lacking, probed });
                }
                Ok(None)
            }
            LoadChoice::Undecided => {
                live.notice(&format!("{} The load is resumed.", partial(&marker, records)));
                Ok(Some(Self { missing: marker.missing, seed: marker.seed, booked: true }))
            }
        }
    }
}

fn partial(marker: &Marker, records: u64) -> String {
    let missing: u64 = marker.missing.iter().map(|keys| keys.end - keys.start).sum();
    format!("An earlier load did not end: {missing} of {records} rows are not known to be there.")
}
