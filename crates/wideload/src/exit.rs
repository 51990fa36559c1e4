//! Exit status of the program (design section 7): 0 also with caveats, 1 ended early or too many
//! errors, 2 usage, 3 environment, 130 Ctrl-C.

use lab::{Dialect, LabError, PlanError};
use stage::cassandra::StartError;
use stage::state::StateError;

/// A failed verb.
pub(crate) struct Exit {
    pub(crate) status: u8,
    pub(crate) error: anyhow::Error,
}

impl Exit {
    /// The command line asks for something that cannot be.
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self { status: 2, error: error.into() }
    }

    /// With the flags of that command line in its text.
    pub(crate) fn in_words_of(self, dialect: Dialect) -> Self {
        let text = self.error.to_string();
        Self { error: anyhow::anyhow!(dialect.told(&text)), ..self }
    }

    /// The host, the target or a file is not as needed.
    pub(crate) fn environment(error: impl Into<anyhow::Error>) -> Self {
        Self { status: 3, error: error.into() }
    }
}

impl From<StartError> for Exit {
    fn from(error: StartError) -> Self {
        let status = match (error.is_interrupted(), error.is_usage()) {
            (true, _) => 130,
            (_, true) => 2,
            _ => 3,
        };
        let told = if status == 3 { lab::told_by_check_of_start(&error) } else { None };
        Self { status, error: quoting(error.into(), told) }
    }
}

/// What `wideload check` would have said before, behind what went wrong.
fn quoting(error: anyhow::Error, told: Option<String>) -> anyhow::Error {
    match told {
        Some(line) => anyhow::anyhow!("{error} ({line})"),
        None => error,
    }
}

impl From<StateError> for Exit {
    fn from(error: StateError) -> Self {
        match error {
            StateError::Exists { .. } | StateError::Name { .. } | StateError::Unknown { .. } => {
                Self::usage(error)
            }
            _ => Self::environment(error),
        }
    }
}

impl From<PlanError> for Exit {
    fn from(error: PlanError) -> Self {
        match error.is_environment() {
            true => Self::environment(error),
            false => Self::usage(error),
        }
    }
}

impl From<LabError> for Exit {
    fn from(error: LabError) -> Self {
        let status = error.exit_status();
        let told = if status == 3 { lab::told_by_check(&error) } else { None };
        Self { status, error: quoting(error.into(), told) }
    }
}
