//! The two sides of TLS, ready to be used for any number of connections.

use super::error::TlsError;
use super::files::{ClientFiles, Identity, ServerFiles};
use super::secured::Secured;
use super::session::Session;
use super::verify::{Anybody, Named};
use crate::{BufferSizes, Ring};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring as provider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where systems keep the authorities that they trust: Debian and Alpine, Fedora, openSUSE, others.
const SYSTEM_ROOTS: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

const AUTHORITIES: &str = "file of authorities";
const CERTIFICATE: &str = "certificate";
const KEY: &str = "private key";

/// How connections of a client begin. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    config: Arc<ClientConfig>,
    name: Option<ServerName<'static>>,
    verifies: bool,
    has_identity: bool,
}

/// How connections of a server begin. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Server {
    config: Arc<ServerConfig>,
}

impl Client {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TlsError`]: a file that is not there or holds something else, a name that is none.
    pub fn new(files: &ClientFiles) -> Result<Self, TlsError> {
        let provider = Arc::new(provider::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|e| TlsError::Setup(e.to_string()))?;
        let builder = match files.verify {
            true => {
                let verifier = Arc::new(server_verifier(files.ca.as_deref(), provider)?);
                builder.dangerous().with_custom_certificate_verifier(verifier)
            }
            false => {
                let anybody = Arc::new(Anybody::new(&provider));
                builder.dangerous().with_custom_certificate_verifier(anybody)
            }
        };
        let mut config = match &files.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let (certs, key) = read_identity(identity)?;
                let built = builder.with_client_auth_cert(certs, key);
                built.map_err(|e| mismatched(identity, &e))?
            }
        };
        // Sessions that are resumed would make connections differ from each other, and threads
        // share what is remembered of them.
        config.resumption = Resumption::disabled();
        let name = match &files.name {
            None => None,
            Some(name) => {
                Some(ServerName::try_from(name.clone()).map_err(|_| TlsError::Name(name.clone()))?)
            }
        };
        let has_identity = files.identity.is_some();
        Ok(Self { config: Arc::new(config), name, verifies: files.verify, has_identity })
    }

    /// Whether the server's certificate is verified.
    #[must_use]
    pub fn verifies(&self) -> bool {
        self.verifies
    }

    /// Begins TLS with the server at `address`: what it sends first waits to be taken.
    ///
    /// # Errors
    /// When no session can be made.
    pub fn session(&self, address: SocketAddr) -> io::Result<Session> {
        let name = self.name.clone().unwrap_or_else(|| ServerName::from(address.ip()));
        let connection = ClientConnection::new(self.config.clone(), name);
        let connection = connection.map_err(|e| io::Error::other(e.to_string()))?;
        Ok(Session::new(connection.into(), self.has_identity))
    }

    /// A ring of which every connection is inside TLS; `ring` has buffers for what goes over the
    /// wire (see [`super::wire_size_max`]), `sizes` are those of plaintext.
    pub fn over<R: Ring>(&self, ring: R, sizes: BufferSizes) -> Secured<R> {
        let client = self.clone();
        Secured::new(ring, sizes, Box::new(move |address| client.session(address)))
    }
}

impl Server {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TlsError`]: a file that is not there or holds something else.
    pub fn new(files: &ServerFiles) -> Result<Self, TlsError> {
        let provider = Arc::new(provider::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|e| TlsError::Setup(e.to_string()))?;
        let builder = match &files.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                builder.with_client_cert_verifier(client_verifier(path, provider.clone())?)
            }
        };
        let (certs, key) = read_identity(&files.identity)?;
        let built = builder.with_single_cert(certs, key);
        let mut config = built.map_err(|e| mismatched(&files.identity, &e))?;
        // Nothing is resumed, so that every connection costs the same.
        config.send_tls13_tickets = 0;
        Ok(Self { config: Arc::new(config) })
    }

    /// Begins TLS with a client.
    ///
    /// # Errors
    /// When no session can be made.
    pub fn session(&self) -> io::Result<Session> {
        let connection = ServerConnection::new(self.config.clone());
        let connection = connection.map_err(|e| io::Error::other(e.to_string()))?;
        Ok(Session::new(connection.into(), true))
    }

    /// As [`Client::over`].
    pub fn over<R: Ring>(&self, ring: R, sizes: BufferSizes) -> Secured<R> {
        let server = self.clone();
        Secured::new(ring, sizes, Box::new(move |_| server.session()))
    }
}

/// Trusts the authorities of a file and what they have signed; without a file, what those of this
/// host have signed.
fn server_verifier(path: Option<&Path>, provider: Arc<CryptoProvider>) -> Result<Named, TlsError> {
    let authorities = path.map_or(Ok(Vec::new()), |path| certificates(AUTHORITIES, path))?;
    let signed = WebPkiServerVerifier::builder_with_provider(Arc::new(roots(path)?), provider);
    let signed = signed.build().map_err(|e| {
        let path = path.map(Path::to_owned).or_else(system_roots).unwrap_or_default();
        TlsError::Roots { path, reason: e.to_string() }
    })?;
    Ok(Named::new(signed, authorities))
}

fn client_verifier(
    path: &Path,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, TlsError> {
    let roots = Arc::new(roots(Some(path))?);
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
    verifier.map_err(|e| TlsError::Roots { path: path.to_owned(), reason: e.to_string() })
}

fn mismatched(identity: &Identity, error: &rustls::Error) -> TlsError {
    let (cert, key) = (identity.cert.clone(), identity.key.clone());
    TlsError::Identity { cert, key, reason: error.to_string() }
}

fn read(what: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| {
        let path = path.to_owned();
        TlsError::Unreadable { what, path, source }
    })
}

fn certificates(what: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read(what, path)?;
    let not_pem = |reason| TlsError::NotPem { what: CERTIFICATE, path: path.to_owned(), reason };
    let certs = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
    let certs = certs.map_err(|e| not_pem(format!(" ({e})")))?;
    if certs.is_empty() { Err(not_pem(String::new())) } else { Ok(certs) }
}

fn read_identity(
    identity: &Identity,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    let certs = certificates(CERTIFICATE, &identity.cert)?;
    let text = read(KEY, &identity.key)?;
    // What is in the file stays out of the text of the error.
    let key = PrivateKeyDer::from_pem_slice(&text).map_err(|_| {
        let reason = " without a password".to_owned();
        TlsError::NotPem { what: KEY, path: identity.key.clone(), reason }
    })?;
    Ok((certs, key))
}

/// The authorities in a file, or those that this host trusts.
fn roots(path: Option<&Path>) -> Result<RootCertStore, TlsError> {
    let is_given = path.is_some();
    let path = match path {
        Some(path) => path.to_owned(),
        None => system_roots().ok_or(TlsError::NoRoots)?,
    };
    let mut roots = RootCertStore::empty();
    let certs = certificates(AUTHORITIES, &path)?;
    if !is_given {
        // Systems carry some that are not understood.
        roots.add_parsable_certificates(certs);
        return Ok(roots);
    }
    for cert in certs {
        let added = roots.add(cert);
        added.map_err(|e| TlsError::Roots { path: path.clone(), reason: e.to_string() })?;
    }
    Ok(roots)
}

fn system_roots() -> Option<PathBuf> {
    let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    named.into_iter().chain(SYSTEM_ROOTS.map(PathBuf::from)).find(|path| path.exists())
}
