//! Which files a side of TLS is made of.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A certificate with those between it and its authority, and its private key, both in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The own certificate first.
    pub cert: PathBuf,
    /// PKCS#8, PKCS#1 or SEC1, without a password.
    pub key: PathBuf,
}

impl Identity {
    /// The key's file, when others than its owner may read it.
    #[must_use]
    pub fn exposed_key(&self) -> Option<&Path> {
        let mode = std::fs::metadata(&self.key).ok()?.permissions().mode();
        (mode & 0o077 != 0).then_some(self.key.as_path())
    }
}

/// Whom a client trusts, and who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientFiles {
    /// Authorities that are trusted; None for those of this host.
    pub ca: Option<PathBuf>,
    /// Who we are, where the server wants to know.
    pub identity: Option<Identity>,
    /// What the server's certificate has to be for; None for the address connected to.
    pub name: Option<String>,
    /// False takes any certificate, of anybody.
    pub verify: bool,
}

/// Who a server is, and whom it lets in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFiles {
    /// Who it is.
    pub identity: Identity,
    /// Clients need a certificate that one of these authorities has signed; None asks for none.
    pub client_ca: Option<PathBuf>,
}
