//! Whether a target that runs already is one of our own stand-ins: results on it must say so,
//! whoever started it.

use drive::{Control, ControlError};
use record::summary::Target;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use units::{Credentials, Nanos};

/// How the release of a reference target ends.
const RELEASE_SUFFIX: &str = "-wideload";

/// `Target::kind` of a target that reports `release`.
///
/// # Errors
/// [`ControlError`] when a target that calls itself ours does not answer for it.
pub(crate) fn kind(
    address: SocketAddr,
    release: Option<&str>,
    timeout: Nanos,
    credentials: Option<&Credentials>,
    stop: &Arc<AtomicBool>,
) -> Result<&'static str, ControlError> {
    if !release.is_some_and(|release| release.ends_with(RELEASE_SUFFIX)) {
        return Ok("cql");
    }
    let mut control = Control::connect_unless(address, timeout, credentials, stop)?;
    let rows = control.query("SELECT storage FROM system_wideload.target")?;
    let storage = rows.into_iter().flatten().flatten().next();
    Ok(if storage.as_deref() == Some(b"null") { Target::NULL_MOCK } else { Target::REFERENCE })
}
