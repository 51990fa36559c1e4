//! Connecting: to the first of the given hosts that answers, and from there to the cluster.
//!
//! Hosts are tried one by one, so that an error can name the one it came from. With fixed hosts
//! each of them is asked who it is first, and only they are used, under the addresses given.

use crate::bridge::{Bridge, Over};
use crate::fixed::{self, Fixed};
use crate::runtime::Runtime;
use ring::tls::{Client, Failure, is_spoken_at};
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::errors::{
    ConnectionError, ConnectionPoolError, ConnectionSetupRequestErrorKind, DbError, MetadataError,
    NewSessionError,
};
use scylla::policies::address_translator::AddressTranslator;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use thiserror::Error;
use units::{CpuSet, Credentials, Nanos};

/// How long a host that does not speak CQL may take to answer in TLS.
const GREETING_MAX: Nanos = Nanos::from_secs(2);

/// How to get to a cluster. Keep it to connect again.
#[derive(Debug, Clone)]
pub struct Config {
    /// CQL addresses of at least one host.
    pub hosts: Vec<SocketAddr>,
    /// Who we are, where the cluster wants to know.
    pub credentials: Option<Credentials>,
    /// Inside TLS; None says everything as it is.
    pub tls: Option<Client>,
    /// Only `hosts` are used, under these addresses, whatever the cluster says about itself.
    pub fixed_hosts: bool,
    /// With fixed hosts: whose addresses they are, where that was found before. Then one of them
    /// that answers is enough.
    pub identities: Vec<([u8; 16], SocketAddr)>,
    /// The preferred datacenter; None is that of the first host that answers.
    pub datacenter: Option<String>,
    /// For connecting to a host and reading what it says of the cluster, and for a request.
    pub timeout: Nanos,
    /// Cpus of the workers; the driver's thread stays off them.
    pub cpus: CpuSet,
}

/// Why a cluster cannot be connected to. Each text names the host and the cure.
#[derive(Debug, Error)]
#[allow(missing_docs)] // the fields are what the texts name
pub enum ConnectError {
    /// No thread, no sockets.
    #[error("this host cannot run the control plane: {0}; check the limits on threads and files")]
    Runtime(io::Error),
    /// No address was given.
    #[error("no host to connect to: give --target HOST[:PORT]")]
    NoHost,
    /// Nobody listens, or no route.
    #[error(
        "cannot connect to {address}: {source}; is the database up, and is this its CQL address?"
    )]
    Unreachable { address: SocketAddr, source: Arc<io::Error> },
    /// Something listens and does not answer.
    #[error(
        "{address} accepts connections but did not answer within {timeout}; is it a CQL port? \
         --timeout gives it longer"
    )]
    Mute { address: SocketAddr, timeout: Nanos },
    /// It is reached, and TLS with it does not come about.
    #[error("cannot speak TLS with {address}: {failure}")]
    Tls { address: SocketAddr, failure: Failure },
    /// It wants TLS.
    #[error("{address} speaks TLS: add --tls, and with --tls-ca FILE whom to trust")]
    WantsTls { address: SocketAddr },
    /// It wants to know who we are.
    #[error(
        "{address} wants authentication: give --user NAME and --password-file FILE (or the \
         environment variable WIDELOAD_PASSWORD)"
    )]
    CredentialsMissing { address: SocketAddr },
    /// It does not let this user in.
    #[error(
        "{address} refused user '{user}': {message}; check --user and the password in \
         --password-file or WIDELOAD_PASSWORD"
    )]
    CredentialsRefused { address: SocketAddr, user: String, message: String },
    /// It answers something else.
    #[error("{address} does not serve as a CQL v4 host: {reason}; is this its CQL address?")]
    NotCql { address: SocketAddr, reason: String },
    /// The caller does not want it any more.
    #[error("interrupted while connecting")]
    Interrupted,
    /// The preferred datacenter is not there.
    #[error(
        "the cluster of {address} has no datacenter '{name}', only {known}; correct --datacenter"
    )]
    Datacenter { address: SocketAddr, name: String, known: String },
}

/// A connected control plane. Drop it before anything is measured.
pub struct Admin {
    // The session goes first: its tasks live on the runtime.
    session: Arc<Session>,
    pub(crate) runtime: Runtime,
    pub(crate) timeout: Nanos,
    pub(crate) contact: SocketAddr,
    /// The preferred datacenter; empty where hosts do not say.
    pub(crate) datacenter: String,
    /// With fixed hosts: their given addresses by host id.
    pub(crate) fixed: Option<Fixed>,
    /// Between the driver and hosts that speak TLS.
    pub(crate) bridge: Option<Bridge>,
    /// Set when nobody waits for answers any more.
    pub(crate) stop: Arc<AtomicBool>,
}

impl std::fmt::Debug for Admin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admin")
            .field("contact", &self.contact)
            .field("datacenter", &self.datacenter)
            .field("fixed", &self.fixed)
            .finish_non_exhaustive()
    }
}

impl Admin {
    /// Connects to the first host that answers and reads what the cluster says about itself. Takes
    /// at most `timeout` per host.
    ///
    /// # Errors
    /// [`ConnectError`] of the first host, when none can be used; a refused or missing password of
    /// any host tried, at once.
    pub fn connect(config: &Config) -> Result<Self, ConnectError> {
        Self::connect_unless(config, &Arc::default())
    }

    /// As [`Self::connect`], but once `stop` is set neither this nor a later question is waited
    /// for longer than 50 ms; what writes rows ([`Self::write`]) still is.
    ///
    /// # Errors
    /// As for [`Self::connect`], and [`ConnectError::Interrupted`].
    pub fn connect_unless(config: &Config, stop: &Arc<AtomicBool>) -> Result<Self, ConnectError> {
        let runtime = Runtime::start(&config.cpus).map_err(ConnectError::Runtime)?;
        let bridge = config.tls.clone().map(Bridge::new);
        let way = Way { config, bridge: bridge.as_ref() };
        let connected = runtime.block_on_unless(stop, async {
            if config.fixed_hosts {
                let (session, contact, fixed) = fixed::connect(way).await?;
                Ok((session, contact, Some(fixed)))
            } else {
                let (session, contact) = connect_any(way).await?;
                Ok((session, contact, None))
            }
        });
        let (session, contact, fixed) = connected.ok_or(ConnectError::Interrupted)??;
        let datacenter = datacenter(&session, contact, way)?;
        let (session, timeout, stop) = (Arc::new(session), config.timeout, stop.clone());
        Ok(Self { session, runtime, timeout, contact, datacenter, fixed, bridge, stop })
    }

    /// The host through which the cluster was found.
    #[must_use]
    pub fn contact(&self) -> SocketAddr {
        self.contact
    }

    /// The preferred datacenter; empty where hosts do not say.
    #[must_use]
    pub fn datacenter(&self) -> &str {
        &self.datacenter
    }

    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }
}

/// How hosts are connected to.
#[derive(Clone, Copy)]
pub(crate) struct Way<'a> {
    pub(crate) config: &'a Config,
    bridge: Option<&'a Bridge>,
}

impl Way<'_> {
    /// Translates addresses of hosts by `behind`, and then to where the driver connects to.
    pub(crate) fn translator(
        self,
        behind: Arc<dyn AddressTranslator>,
    ) -> Arc<dyn AddressTranslator> {
        match self.bridge.cloned() {
            Some(bridge) => Arc::new(Over { bridge, behind: Some(behind) }),
            None => behind,
        }
    }
}

async fn connect_any(way: Way<'_>) -> Result<(Session, SocketAddr), ConnectError> {
    let mut first = None;
    for &address in &way.config.hosts {
        let all = builder(way, address)?;
        match open(all, way, address).await {
            Ok(session) => return Ok((session, address)),
            // Asking further hosts with the same password may lock the role.
            Err(
                error @ (ConnectError::CredentialsMissing { .. }
                | ConnectError::CredentialsRefused { .. }),
            ) => return Err(error),
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or(ConnectError::NoHost))
}

pub(crate) fn builder(way: Way<'_>, address: SocketAddr) -> Result<SessionBuilder, ConnectError> {
    let config = way.config;
    let known = match way.bridge {
        None => address,
        Some(bridge) => bridge.way_to(address).map_err(ConnectError::Runtime)?,
    };
    let timeout = config.timeout.to_duration();
    let profile = ExecutionProfile::builder().request_timeout(Some(timeout)).build();
    let builder = SessionBuilder::new()
        .known_node_addr(known)
        .default_execution_profile_handle(profile.into_handle())
        // Hosts that swallow what is sent to them leave time for the others.
        .connection_timeout(timeout / 2)
        .metadata_request_clientside_timeout(timeout)
        .schema_agreement_timeout(crate::statements::AGREEMENT_MAX.to_duration())
        .schema_agreement_interval(Duration::from_millis(100))
        // Read where it is needed.
        .refresh_metadata_on_auto_schema_agreement(false);
    let builder = match way.bridge.cloned() {
        Some(bridge) => builder.address_translator(Arc::new(Over { bridge, behind: None })),
        None => builder,
    };
    Ok(match &config.credentials {
        Some(who) => builder.user(&who.user, who.password.expose()),
        None => builder,
    })
}

pub(crate) async fn open(
    builder: SessionBuilder,
    way: Way<'_>,
    address: SocketAddr,
) -> Result<Session, ConnectError> {
    let timeout = way.config.timeout;
    let opened = tokio::time::timeout(timeout.to_duration(), builder.build());
    let error = match opened.await {
        Ok(Ok(session)) => return Ok(session),
        Ok(Err(error)) => explain(&error, way.config, address),
        Err(_) => ConnectError::Mute { address, timeout },
    };
    match (way.bridge, &error) {
        (Some(bridge), _) => Err(bridge.failure(address).unwrap_or(error)),
        (None, ConnectError::NotCql { .. } | ConnectError::Unreachable { .. })
            if is_spoken_at(address, timeout.min(GREETING_MAX)) =>
        {
            Err(ConnectError::WantsTls { address })
        }
        (None, _) => Err(error),
    }
}

/// The driver's error as one of ours.
fn explain(error: &NewSessionError, config: &Config, address: SocketAddr) -> ConnectError {
    let connection = match error {
        NewSessionError::MetadataError(MetadataError::ConnectionPoolError(
            ConnectionPoolError::Broken { last_connection_error },
        )) => last_connection_error,
        other => return ConnectError::NotCql { address, reason: chain(other) },
    };
    match connection {
        ConnectionError::ConnectTimeout => {
            let timeout = config.timeout;
            ConnectError::Mute { address, timeout }
        }
        ConnectionError::IoError(source) => {
            let source = source.clone();
            match source.kind() {
                io::ErrorKind::TimedOut => ConnectError::Mute { address, timeout: config.timeout },
                _ => ConnectError::Unreachable { address, source },
            }
        }
        ConnectionError::ConnectionSetupRequestError(setup) => match &setup.error {
            ConnectionSetupRequestErrorKind::MissingAuthentication => {
                ConnectError::CredentialsMissing { address }
            }
            ConnectionSetupRequestErrorKind::DbError(DbError::AuthenticationError, message) => {
                let user = config.credentials.as_ref().map_or("", |who| &who.user).to_owned();
                ConnectError::CredentialsRefused { address, user, message: message.clone() }
            }
            _ => ConnectError::NotCql { address, reason: chain(setup) },
        },
        other => ConnectError::NotCql { address, reason: chain(other) },
    }
}

/// An error and, where its text leaves them out, its causes.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// The datacenter asked for, if it is there; else that of the contact.
fn datacenter(
    session: &Session,
    contact: SocketAddr,
    way: Way<'_>,
) -> Result<String, ConnectError> {
    let state = session.get_cluster_state();
    let hosts = state.get_nodes_info();
    if let Some(name) = way.config.datacenter.as_deref() {
        let mut known: Vec<_> = hosts.iter().filter_map(|n| n.datacenter.as_deref()).collect();
        known.sort_unstable();
        known.dedup();
        if !known.contains(&name) {
            let (name, known) = (name.to_owned(), known.join(", "));
            return Err(ConnectError::Datacenter { address: contact, name, known });
        }
        return Ok(name.to_owned());
    }
    let own = hosts.iter().find(|host| {
        let address = SocketAddr::new(host.address.ip(), host.address.port());
        way.bridge.map_or(address, |bridge| bridge.host_at(address)) == contact
    });
    let host = own.or_else(|| hosts.first());
    Ok(host.and_then(|n| n.datacenter.clone()).unwrap_or_default())
}
