//! What a layout study leaves for its reader beside figures: why these arms, with how many clients
//! each, what was left out, and what is recommended.
//!
//! In: a study, before it is carried out and after. Out: `study.json` in its run directory, from
//! where the outcome has it, also when the experiment is resumed.

use record::{RunDir, RunDirError};
use serde::{Deserialize, Serialize};
use std::path::Path;
use units::{Bytes, read_plain_text};

const STUDY_JSON: &str = "study.json";
const SIZE_MAX: Bytes = Bytes(4 << 20);

/// Sentences for people.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notes {
    /// How the arms were chosen.
    pub arms: Vec<String>,
    /// How many clients each has, and how that was found.
    pub clients: Vec<String>,
    /// Arms that were not measured, and why.
    pub left_out: Vec<String>,
    /// What to do with the result.
    pub recommended: Option<String>,
}

impl Notes {
    /// None where there are none, or they cannot be read: they are no figures.
    pub(crate) fn read(run_dir: &Path) -> Option<Self> {
        let text = read_plain_text(&run_dir.join(STUDY_JSON), SIZE_MAX).ok()?;
        serde_json::from_str(&text).ok()
    }

    pub(crate) fn write(&self, run_dir: &RunDir) -> Result<(), RunDirError> {
        run_dir.write_json(STUDY_JSON, self)
    }
}
