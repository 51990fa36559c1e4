//! All servers, and who of them is the master of which partition.
//!
//! Servers are told apart by their names, whatever their addresses. Where two servers say that they
//! are the master of a partition, the greater regime counts, and else who has said so last. A
//! partition that nobody claims stays with whom it was: that is where a client would ask.

use super::server::{Error, Server};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use units::Nanos;
use wire::aerospike::PARTITIONS;
use wire::aerospike::info::{Peers, Replicas};

/// How to get to a cluster.
#[derive(Debug, Clone)]
pub struct Config {
    /// Addresses of at least one server.
    pub seeds: Vec<SocketAddr>,
    /// Whose partitions count.
    pub namespace: String,
    /// Only the seeds are used, under these addresses, whatever the servers say of others.
    pub fixed_hosts: bool,
    /// For connecting, and for each answer.
    pub timeout: Nanos,
}

/// A server of the cluster.
#[derive(Debug)]
struct Member {
    name: String,
    address: SocketAddr,
    /// None when it does not answer.
    server: Option<Server>,
    partition_generation: String,
    peers_generation: String,
}

/// The master of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Owner {
    /// Index into the members.
    member: usize,
    regime: u32,
}

/// A cluster that is connected to.
#[derive(Debug)]
pub struct Cluster {
    config: Config,
    stop: Arc<AtomicBool>,
    /// Each keeps its index.
    members: Vec<Member>,
    owners: Vec<Option<Owner>>,
    build: String,
    edition: String,
}

impl Cluster {
    /// Connects to the first seed that answers, and by it to all others.
    ///
    /// # Errors
    /// [`Error`] when no seed answers, the namespace is not there, or a partition has no master.
    pub fn connect(config: &Config, stop: &Arc<AtomicBool>) -> Result<Self, Error> {
        let mut cluster = Self {
            config: config.clone(),
            stop: stop.clone(),
            members: Vec::new(),
            owners: vec![None; PARTITIONS],
            build: String::new(),
            edition: String::new(),
        };
        let mut failure = None;
        for &seed in &config.seeds {
            if let Err(error) = cluster.meet(seed) {
                match error {
                    Error::Interrupted { .. } | Error::Namespace { .. } => return Err(error),
                    _ if config.fixed_hosts => return Err(error),
                    _ => failure = failure.or(Some(error)),
                }
            }
        }
        if cluster.members.is_empty() {
            return Err(failure.unwrap_or(Error::NoHost));
        }
        cluster.greet_peers();
        for index in 0..cluster.members.len() {
            cluster.learn_partitions(index)?;
        }
        cluster.check_whole()?;
        Ok(cluster)
    }

    /// Where its servers are, those that do not answer too; each keeps its index.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.members.iter().map(|member| member.address).collect()
    }

    /// By partition: the index of the server that is its master.
    #[must_use]
    pub fn masters(&self) -> Vec<u16> {
        self.owners.iter().map(|owner| owner.map_or(0, |owner| owner.member as u16)).collect()
    }

    /// The version of the first server.
    #[must_use]
    pub fn build(&self) -> &str {
        &self.build
    }

    /// Its edition, in its words.
    #[must_use]
    pub fn edition(&self) -> &str {
        &self.edition
    }

    /// The value of a name, as the first server that answers says.
    ///
    /// # Errors
    /// [`Error`] when none does.
    pub fn info(&mut self, name: &str) -> Result<String, Error> {
        let server = self.members.iter_mut().find_map(|member| member.server.as_mut());
        let [value] = server.ok_or(Error::NoHost)?.info([name])?;
        Ok(value)
    }

    /// The values of a name, of all servers that answer.
    ///
    /// # Errors
    /// [`Error`] when one has none.
    pub fn info_of_all(&mut self, name: &str) -> Result<Vec<String>, Error> {
        let servers = self.members.iter_mut().filter_map(|member| member.server.as_mut());
        servers.map(|server| server.info([name]).map(|[value]| value)).collect()
    }

    /// The connection to the master of a partition.
    pub(super) fn master(&mut self, partition: usize) -> Result<&mut Server, Error> {
        let index = self.owners[partition].map_or(0, |owner| owner.member);
        let member = &mut self.members[index];
        if member.server.is_none() {
            member.server = Some(Server::connect(member.address, self.config.timeout, &self.stop)?);
        }
        member.server.as_mut().ok_or(Error::NoHost)
    }

    /// Asks every server whether its peers or partitions are others than before, and learns them
    /// where they are. Servers that do not answer are asked again each time.
    ///
    /// # Errors
    /// [`Error::Interrupted`] only: what a server does not say is asked again the next time.
    pub fn tend(&mut self) -> Result<(), Error> {
        for index in 0..self.members.len() {
            if let Err(error @ Error::Interrupted { .. }) = self.tend_one(index) {
                return Err(error);
            }
        }
        self.greet_peers();
        Ok(())
    }

    fn tend_one(&mut self, index: usize) -> Result<(), Error> {
        let member = &mut self.members[index];
        let Some(server) = &mut member.server else { return self.rejoin(index) };
        let told = server.info(["node", "partition-generation", "peers-generation"]);
        match told {
            // Another server may have taken its address.
            Ok([name, ..]) if name != member.name => {
                member.server = None;
                Ok(())
            }
            Ok([_, partitions, peers]) => {
                if peers != member.peers_generation {
                    // Asked for by `greet_peers`.
                    member.peers_generation.clear();
                }
                match partitions == member.partition_generation {
                    true => Ok(()),
                    false => self.learn_partitions(index),
                }
            }
            Err(error) => {
                member.server = None;
                Err(error)
            }
        }
    }

    /// A server that did not answer is tried again.
    fn rejoin(&mut self, index: usize) -> Result<(), Error> {
        let address = self.members[index].address;
        let timeout = self.config.timeout.min(Nanos::from_secs(1));
        let mut server = Server::connect(address, timeout, &self.stop)?;
        let [name] = server.info(["node"])?;
        let member = &mut self.members[index];
        // One that was replaced is another server at the same place.
        member.name = name;
        member.server = Some(server);
        member.peers_generation.clear();
        self.learn_partitions(index)
    }

    /// Connects to a server that is not known yet.
    fn meet(&mut self, address: SocketAddr) -> Result<(), Error> {
        let mut server = Server::connect(address, self.config.timeout, &self.stop)?;
        let [name, namespaces, build, edition] =
            server.info(["node", "namespaces", "build", "edition"])?;
        let namespace = &self.config.namespace;
        if !namespaces.split(';').any(|known| known == namespace) {
            let (namespace, there) = (namespace.clone(), namespaces.replace(';', ", "));
            return Err(Error::Namespace { address, namespace, there });
        }
        if self.members.iter().any(|member| member.name == name) {
            return Ok(());
        }
        if self.members.is_empty() {
            (self.build, self.edition) = (build, edition);
        }
        self.members.push(Member {
            name,
            address,
            server: Some(server),
            partition_generation: String::new(),
            peers_generation: String::new(),
        });
        Ok(())
    }

    /// Asks those whose peers are not known, or others than before, for them, and meets who is new.
    fn greet_peers(&mut self) {
        if self.config.fixed_hosts {
            return;
        }
        let mut index = 0;
        // Those that join are asked too.
        while index < self.members.len() {
            if self.members[index].peers_generation.is_empty() {
                self.greet_peers_of(index);
            }
            index += 1;
        }
    }

    fn greet_peers_of(&mut self, index: usize) {
        let member = &mut self.members[index];
        let Some(server) = &mut member.server else { return };
        let Ok([generation, peers]) = server.info(["peers-generation", "peers-clear-std"]) else {
            return;
        };
        let Ok(peers) = Peers::decode(&peers) else { return };
        let mut all_met = true;
        for peer in &peers.peers {
            if self.members.iter().any(|member| member.name == peer.name) {
                continue;
            }
            let address = peer.addresses.iter().find_map(|text| resolve(text, peers.default_port));
            let met = address.map(|address| self.meet(address));
            let joined = self.members.iter().position(|member| member.name == peer.name);
            match joined {
                Some(joined) => drop(self.learn_partitions(joined)),
                // It is on its way: asked for again the next time.
                None => all_met &= !matches!(met, Some(Err(_))),
            }
        }
        if all_met {
            self.members[index].peers_generation = generation;
        }
    }

    fn learn_partitions(&mut self, index: usize) -> Result<(), Error> {
        let member = &mut self.members[index];
        let Some(server) = &mut member.server else { return Ok(()) };
        let [generation, replicas] = server.info(["partition-generation", "replicas"])?;
        let all = Replicas::decode(&replicas).map_err(|error| server.foreign(&error))?;
        member.partition_generation = generation;
        let own = all.iter().find(|one| one.namespace == self.config.namespace);
        let Some(own) = own else { return Ok(()) };
        for (partition, owner) in self.owners.iter_mut().enumerate() {
            let claim = Owner { member: index, regime: own.regime };
            if own.has(0, partition) && owner.is_none_or(|owner| own.regime >= owner.regime) {
                *owner = Some(claim);
            }
        }
        Ok(())
    }

    fn check_whole(&self) -> Result<(), Error> {
        let missing = self.owners.iter().filter(|owner| owner.is_none()).count();
        if missing == 0 {
            return Ok(());
        }
        let hosts: Vec<_> = self.addresses().iter().map(ToString::to_string).collect();
        Err(Error::Partitions {
            missing,
            all: PARTITIONS,
            namespace: self.config.namespace.clone(),
            hosts: hosts.join(", "),
        })
    }
}

/// `HOST` or `HOST:PORT`.
fn resolve(text: &str, default_port: Option<u16>) -> Option<SocketAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    match bare.parse() {
        Ok(ip) => Some(SocketAddr::new(ip, default_port?)),
        Err(_) => text.to_socket_addrs().ok()?.next(),
    }
}
