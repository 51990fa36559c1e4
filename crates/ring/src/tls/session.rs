//! One connection's TLS, without its socket: bytes of the wire on one side, plaintext on the other.

use super::error::Failure;
use super::verify::is_authority;
use rustls::{AlertDescription, CertificateError, Connection, Error};
use std::io::{BufRead, Write};

/// TLS of one connection.
#[derive(Debug)]
pub struct Session {
    tls: Connection,
    /// We have a certificate to show, or nobody asks us for one.
    has_identity: bool,
    /// The peer has said that nothing follows.
    ended: bool,
}

impl Session {
    pub(super) fn new(mut tls: Connection, has_identity: bool) -> Self {
        // What is written is taken at once.
        tls.set_buffer_limit(None);
        Self { tls, has_identity, ended: false }
    }

    /// Whether nothing can be written yet.
    #[must_use]
    pub fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    pub(super) fn is_client(&self) -> bool {
        matches!(self.tls, Connection::Client(_))
    }

    /// Whether the peer has said that nothing follows.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    /// Takes bytes that have arrived, gives the plaintext in them to `plain`, and has what is to be
    /// answered ready ([`Self::take_wired`]), also when it fails.
    ///
    /// # Errors
    /// [`Failure`]; the connection is of no further use then.
    pub fn arrived(
        &mut self,
        mut wired: &[u8],
        mut plain: impl FnMut(&[u8]),
    ) -> Result<(), Failure> {
        while !wired.is_empty() && !self.ended {
            let taken = self.tls.read_tls(&mut wired);
            taken.map_err(|e| Failure::Other(e.to_string()))?;
            let state = self.tls.process_new_packets().map_err(|e| self.failure(&e))?;
            self.ended = state.peer_has_closed();
            let mut reader = self.tls.reader();
            // An error is that there is nothing now.
            while let Ok(some) = reader.fill_buf()
                && !some.is_empty()
            {
                plain(some);
                let size = some.len();
                reader.consume(size);
            }
        }
        Ok(())
    }

    /// Encrypts plaintext, in as few records as it takes; see [`Self::take_wired`].
    ///
    /// # Errors
    /// [`Failure`] when the connection is of no further use.
    pub fn write(&mut self, plain: &[u8]) -> Result<(), Failure> {
        self.tls.writer().write_all(plain).map_err(|e| Failure::Other(e.to_string()))
    }

    /// Says that nothing follows.
    pub fn end(&mut self) {
        self.tls.send_close_notify();
    }

    /// Appends what is to go over the wire; true when there was something.
    pub fn take_wired(&mut self, out: &mut Vec<u8>) -> bool {
        let before = out.len();
        // Writing to memory does not fail.
        while self.tls.wants_write() && self.tls.write_tls(out).is_ok_and(|size| size > 0) {}
        out.len() > before
    }

    fn failure(&self, error: &Error) -> Failure {
        match error {
            Error::InvalidCertificate(error) => of_certificate(error),
            Error::AlertReceived(alert) => self.of_alert(*alert),
            // Nothing that has arrived so far was TLS.
            Error::InvalidMessage(_) if self.is_handshaking() => Failure::NotTls,
            Error::NoCertificatesPresented => {
                Failure::Other("the client has shown no certificate".to_owned())
            }
            other => Failure::Other(other.to_string()),
        }
    }

    fn of_alert(&self, alert: AlertDescription) -> Failure {
        use AlertDescription as A;
        let name = format!("{alert:?}");
        match alert {
            A::CertificateRequired | A::BadCertificate | A::HandshakeFailure
                if !self.has_identity =>
            {
                Failure::CertificateWanted(name)
            }
            A::BadCertificate
            | A::UnsupportedCertificate
            | A::CertificateRevoked
            | A::CertificateExpired
            | A::CertificateUnknown
            | A::UnknownCA
            | A::AccessDenied
            | A::DecryptError => Failure::CertificateRefused(name),
            _ => Failure::Other(format!("the peer says {name}")),
        }
    }
}

/// `DnsName("db.example")` and `IpAddress(10.0.0.1)` without what is around them.
fn bare(name: &str) -> &str {
    let inner = name.split_once('(').and_then(|(_, inner)| inner.strip_suffix(')'));
    inner.unwrap_or(name).trim_matches('"')
}

fn of_certificate(error: &CertificateError) -> Failure {
    use CertificateError as C;
    match error {
        C::UnknownIssuer | C::BadSignature => Failure::Untrusted,
        C::Expired | C::ExpiredContext { .. } => Failure::Expired,
        C::NotValidYet | C::NotValidYetContext { .. } => Failure::NotYetValid,
        C::NotValidForNameContext { expected, presented } => {
            let expected = expected.to_str().into_owned();
            let presented: Vec<_> = presented.iter().map(|name| bare(name)).collect();
            let presented = match presented.is_empty() {
                true => "no name at all (it has no subject alternative names)".to_owned(),
                false => presented.join(", "),
            };
            Failure::Name { expected, presented }
        }
        error if is_authority(error) => Failure::Authority,
        other => Failure::Certificate(other.to_string()),
    }
}
