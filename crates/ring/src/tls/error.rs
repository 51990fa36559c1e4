//! What goes wrong with TLS: before a connection, and on one. The cure is in the text.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why there can be no TLS at all.
#[derive(Debug, Error)]
#[allow(missing_docs)] // the fields are what the texts name
pub enum TlsError {
    /// Built without the feature.
    #[error("this build has no TLS: build wideload with its default features, or leave TLS out")]
    NotBuilt,
    /// A file that cannot be read.
    #[error("cannot read {what} {path}: {source}; give another file")]
    Unreadable { what: &'static str, path: PathBuf, source: io::Error },
    /// A file with something else in it.
    #[error("{path} holds no {what} in PEM{reason}; give a file with -----BEGIN lines")]
    NotPem { what: &'static str, path: PathBuf, reason: String },
    /// This host has no list of authorities.
    #[error(
        "this host has no file of certificate authorities where one is usual: --tls-ca FILE names \
         the authority that signed the server's certificate"
    )]
    NoRoots,
    /// An authority that cannot be used as one.
    #[error("{path} holds no certificate authority that can be used: {reason}; give another file")]
    Roots { path: PathBuf, reason: String },
    /// A certificate and a key that do not go together, or of a kind that is not known.
    #[error(
        "{cert} and {key} cannot be used together: {reason}; give a certificate and its own key"
    )]
    Identity { cert: PathBuf, key: PathBuf, reason: String },
    /// A name that is no name.
    #[error("'{0}' is no host name and no address: --tls-name takes what a certificate is for")]
    Name(String),
    /// None of the protocol's versions can be spoken.
    #[error("TLS cannot be set up: {0}; this is a fault of the build")]
    Setup(String),
}

/// Why a connection inside TLS does not come about, or has ended.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs)] // the fields are what the texts name
pub enum Failure {
    /// Nobody that is trusted here has signed its certificate.
    #[error(
        "its certificate is not signed by an authority that is trusted here: --tls-ca FILE names \
         the authority that has signed it"
    )]
    Untrusted,
    /// The certificate is another host's.
    #[error(
        "its certificate is for {presented}, not for {expected}: --tls-name NAME says which name \
         it has to be for"
    )]
    Name { expected: String, presented: String },
    /// The certificate is too old, or this host's clock is wrong.
    #[error("its certificate has expired: renew it, or correct this host's clock")]
    Expired,
    /// The certificate is too new, or this host's clock is wrong.
    #[error("its certificate is not valid yet: correct this host's clock, or wait")]
    NotYetValid,
    /// What it shows is a certificate to sign others with, and none that was named.
    #[error(
        "its certificate is an authority's own (CA:TRUE), and none that is trusted here as the \
         server's: --tls-ca FILE with this very certificate trusts it, or give the server one that \
         the authority has signed"
    )]
    Authority,
    /// The certificate is no good for another reason.
    #[error("its certificate cannot be used: {0}; give the server another one")]
    Certificate(String),
    /// It wants to know who we are.
    #[error("it wants a client's certificate ({0}): give --tls-cert FILE and --tls-key FILE")]
    CertificateWanted(String),
    /// It does not take our certificate.
    #[error(
        "it does not take our certificate ({0}): --tls-cert FILE has to be signed by an authority \
         that the server trusts"
    )]
    CertificateRefused(String),
    /// It answers something that is no TLS.
    #[error("it does not speak TLS: leave --tls out, or give the port on which it does")]
    NotTls,
    /// It closed the connection in the midst of the handshake.
    #[error(
        "it ended the connection within the TLS handshake: does it speak TLS on this port? If not, \
         leave --tls out"
    )]
    Ended,
    /// They find nothing that both can do, or the peer breaks the protocol.
    #[error("TLS failed: {0}; is it TLS 1.2 or 1.3 that the server speaks?")]
    Other(String),
}

impl Failure {
    /// That an error of a socket is one of TLS.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

impl From<Failure> for io::Error {
    fn from(failure: Failure) -> Self {
        Self::new(io::ErrorKind::InvalidData, failure)
    }
}
