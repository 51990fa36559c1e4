//! The flags of TLS, of every verb that connects to a database that runs already.

use crate::exit::Exit;
use crate::output;
use drive::tls::{Client, ClientFiles, Identity, TlsError};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// How to speak TLS.
#[derive(Debug, Clone, clap::Args)]
#[group(skip)]
pub(crate) struct Flags {
    /// Speak TLS with the database, 1.2 or 1.3. Its certificate has to be signed by an authority
    /// that this host trusts, and to be for the address that is connected to
    #[arg(long, help_heading = "TLS")]
    tls: bool,
    /// Trust the authorities in this file (PEM) and no others
    #[arg(long, help_heading = "TLS", value_name = "FILE", requires = "tls")]
    tls_ca: Option<PathBuf>,
    /// The client's certificate, where the database wants one: PEM, with those between it and its
    /// authority behind it
    #[arg(long, help_heading = "TLS", value_name = "FILE", requires = "tls", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert: PEM without a password, for its owner's eyes only
    #[arg(long, help_heading = "TLS", value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// The name that the certificate of every host has to be for [default: the host's address]
    #[arg(long, help_heading = "TLS", value_name = "NAME", requires = "tls")]
    tls_name: Option<String>,
    /// Take any certificate, of anybody: whoever is in between can read and change everything
    #[arg(
        long,
        help_heading = "TLS",
        requires = "tls",
        conflicts_with = "tls_ca",
        conflicts_with = "tls_name"
    )]
    tls_insecure: bool,
}

impl Flags {
    pub(crate) fn asked(&self) -> bool {
        self.tls
    }

    /// Reads the files, if TLS is asked for. Warns on stderr of a key that others may read.
    pub(crate) fn client(&self) -> Result<Option<Client>, Exit> {
        if !self.tls {
            return Ok(None);
        }
        let identity = self.tls_cert.clone().zip(self.tls_key.clone());
        let files = ClientFiles {
            ca: self.tls_ca.clone(),
            identity: identity.map(|(cert, key)| Identity { cert, key }),
            name: self.tls_name.clone(),
            verify: !self.tls_insecure,
        };
        if let Some(identity) = &files.identity {
            warn_of_exposed(identity);
        }
        Client::new(&files).map(Some).map_err(refused)
    }

    /// For the manifest; null without TLS. Paths only: keys stay where they are.
    pub(crate) fn recorded(&self) -> Value {
        let text = |path: &Option<PathBuf>| path.as_deref().map(shown);
        match self.tls {
            false => Value::Null,
            true => json!({
                "ca": text(&self.tls_ca),
                "cert": text(&self.tls_cert),
                "key": text(&self.tls_key),
                "name": self.tls_name,
                "insecure": self.tls_insecure,
            }),
        }
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// On stderr, of a key that others than its owner may read.
pub(crate) fn warn_of_exposed(identity: &Identity) {
    if let Some(key) = identity.exposed_key() {
        output::tell(&format!(
            "warning: the private key {} can be read by others: chmod 600 it",
            shown(key)
        ));
    }
}

/// What is wrong with files is the command line's fault, what is wrong with the build is not.
pub(crate) fn refused(error: TlsError) -> Exit {
    match error {
        TlsError::NotBuilt | TlsError::NoRoots | TlsError::Setup(_) => Exit::environment(error),
        error => Exit::usage(error),
    }
}
