//! How to be let in.

use ring::tls::Client;
use units::Credentials;

/// What connections to a target need beside its address.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Who we are, where the target wants to know.
    pub credentials: Option<Credentials>,
    /// Inside TLS; None sends everything as it is.
    pub tls: Option<Client>,
}

impl From<Credentials> for Access {
    fn from(credentials: Credentials) -> Self {
        Self { credentials: Some(credentials), tls: None }
    }
}
