//! Whether a target that runs already is one of our own stand-ins, and does wrong on purpose:
//! results on it must say so, whoever started it.

use drive::{Access, Control, ControlError};
use record::Caveat;
use record::summary::Target;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use units::Nanos;

/// How the release of a reference target ends.
const RELEASE_SUFFIX: &str = "-wideload";

/// What a target is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StandIn {
    /// `Target::kind`.
    pub(crate) kind: &'static str,
    /// The flags of what it does wrong on purpose.
    pub(crate) faults: Option<String>,
}

impl StandIn {
    /// A target that does what it can.
    pub(crate) fn faultless(kind: &'static str) -> Self {
        Self { kind, faults: None }
    }

    /// What speaks against figures on it.
    pub(crate) fn caveat(&self) -> Option<Caveat> {
        let faults = self.faults.as_ref()?;
        let text = "The target does wrong on purpose: its errors and its delays are made up.";
        let cure = "For figures of the target as it is, serve it without faults.";
        Some(Caveat::new("target-faults", text).evidence(faults.as_str()).cure(cure))
    }
}

/// What a target is that reports `release`.
///
/// # Errors
/// [`ControlError`] when a target that calls itself ours does not answer for it.
pub(crate) fn ask(
    address: SocketAddr,
    release: Option<&str>,
    timeout: Nanos,
    access: &Access,
    stop: &Arc<AtomicBool>,
) -> Result<StandIn, ControlError> {
    if !release.is_some_and(|release| release.ends_with(RELEASE_SUFFIX)) {
        return Ok(StandIn::faultless("cql"));
    }
    let mut control = Control::connect_unless(address, timeout, access, stop)?;
    let rows = control.query("SELECT storage, faults FROM system_wideload.target")?;
    let mut cells = rows.into_iter().flatten();
    let (storage, faults) = (cells.next().flatten(), cells.next().flatten());
    let kind =
        if storage.as_deref() == Some(b"null") { Target::NULL_MOCK } else { Target::REFERENCE };
    Ok(StandIn { kind, faults: faults.map(|text| String::from_utf8_lossy(&text).into_owned()) })
}
