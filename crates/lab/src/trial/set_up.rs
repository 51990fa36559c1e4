//! What comes before the first operation that is measured: provision -> create -> load -> verify.

use super::Running;
use crate::data::{self, Prepared};
use crate::data_size::DataSize;
use crate::error::LabError;
use crate::filling::{Filling, Pour};
use crate::jvm;
use crate::local_target::LocalTarget;
use crate::places;
use crate::provision::{self, DataDir, Provisioned, Storage, TargetChoice};
use crate::records::{self, Tended};
use crate::requests;
use crate::ring_watch::RingWatch;
use crate::stand_in::{self, StandIn};
use crate::watchdog::Watchdog;
use drive::{Drive, Encoding, Load, PreparedId, Roster};
use machine::Machine;
use record::run_dir::write_failed;
use record::summary::Target;
use record::{Caveat, Manifest, TrialDir};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is known once the target answers.
pub(crate) struct Ready {
    /// The hosts of each database.
    pub(super) databases: Vec<Arc<Roster>>,
    pub(super) watch: Option<RingWatch>,
    pub(super) target: Target,
    pub(super) encoder: Encoding,
    pub(super) ids: Vec<PreparedId>,
    pub(super) filling: Option<Filling>,
    pub(super) local: LocalTarget,
    pub(super) machine: Machine,
    pub(super) caveats: Vec<Caveat>,
}

/// A target that can be driven; it is stopped with this.
pub(super) struct SetUp {
    pub(super) ready: Ready,
    pub(super) watchdog: Watchdog,
    pub(super) provisioned: Provisioned,
    /// Rows were loaded.
    pub(super) fills: bool,
}

impl Ready {
    /// Prepared, in the order of the plan's statements.
    pub(crate) fn ids(&self) -> &[PreparedId] {
        &self.ids
    }

    /// Of all hosts that are driven.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.databases.iter().flat_map(|hosts| hosts.addresses()).collect()
    }
}

impl Running<'_> {
    /// Starts the target, or finds it, and fills its table.
    pub(super) fn set_up(&mut self, trial_dir: &TrialDir) -> Result<SetUp, LabError> {
        let provisioned = self.provision(trial_dir)?;
        let mut ready = self.prepare(&provisioned).map_err(|error| {
            // Whatever was not waited for: this is why.
            if self.stop.load(Ordering::Relaxed) { LabError::Interrupted } else { error }
        })?;
        self.write_trial_manifest(trial_dir)?;
        let apart = provisioned.databases() > 1;
        let watchdog = Watchdog::start(provisioned.processes(), apart, self.stop.clone());
        let watchdog = watchdog.map_err(LabError::Thread)?;
        let fills = ready.filling.is_some();
        if let Some(filling) = ready.filling.take() {
            let loaded = self.load(&ready, &filling, watchdog.halt());
            if watchdog.died() {
                return Err(LabError::target_died(trial_dir));
            }
            loaded?;
            if let Some(mark) = self.trial.kept.as_deref().map(data::loaded_mark) {
                std::fs::write(&mark, "").map_err(write_failed(&mark))?;
            }
        }
        self.verify_places(&provisioned)?;
        Ok(SetUp { ready, watchdog, provisioned, fills })
    }

    fn provision(&mut self, trial_dir: &TrialDir) -> Result<Provisioned, LabError> {
        match &self.trial.target {
            TargetChoice::Reference { storage, serial } => {
                let cpus = self.trial.target_cpus();
                self.live.stage(&format!(
                    "starting the reference target ({}) on cpus {cpus}",
                    storage.name()
                ));
                let places = &self.trial.places;
                let namespace = self.trial.records.map(|_| self.trial.table.keyspace.as_str());
                let raw = trial_dir.raw()?;
                provision::reference(*storage, *serial, namespace, places, &raw, self.stop)
            }
            TargetChoice::Cassandra { options, data_dir } => {
                let (places, data_dir) = (&self.trial.places, data_dir.as_deref());
                let said = &mut |what: &str| self.live.stage(what);
                let data = match (&self.trial.kept, data_dir) {
                    (Some(kept), _) => DataDir::Kept(kept),
                    (_, Some(dir)) => DataDir::Below(dir),
                    _ => DataDir::OfTrial,
                };
                provision::cassandra(options, data, places, &trial_dir.raw()?, said, self.stop)
            }
            TargetChoice::Running { hosts } => {
                provision::running(hosts, self.trial.records.is_some(), self.stop)
            }
        }
    }

    /// The table or set that is driven.
    fn rows_name(&self) -> String {
        match self.trial.records {
            Some(_) => records::set_name(self.trial),
            None => self.trial.table.quoted(),
        }
    }

    /// What the target is; `version` is that which its hosts tell.
    fn kind(
        &self,
        addresses: &[SocketAddr],
        version: &mut Option<String>,
        tended: Option<&mut Tended>,
    ) -> Result<StandIn, LabError> {
        let trial = self.trial;
        Ok(match (&trial.target, tended) {
            (TargetChoice::Reference { storage: Storage::Memory, .. }, _) => {
                StandIn::faultless(Target::REFERENCE)
            }
            (TargetChoice::Reference { storage: Storage::Null, .. }, _) => {
                StandIn::faultless(Target::NULL_MOCK)
            }
            (TargetChoice::Cassandra { .. }, _) => StandIn::faultless("cassandra"),
            (TargetChoice::Running { .. }, Some(tended)) => {
                let (kind, build, faults) = records::kind(&mut tended.cluster);
                *version = Some(build);
                StandIn { kind, faults }
            }
            (TargetChoice::Running { .. }, None) => {
                let (release, access) = (version.as_deref(), &trial.access);
                stand_in::ask(addresses[0], release, trial.timeout, access, self.stop)?
            }
        })
    }

    fn prepare(&mut self, provisioned: &Provisioned) -> Result<Ready, LabError> {
        let trial = self.trial;
        self.live.stage(&format!("preparing {}", self.rows_name()));
        let prepared = data::prepare(trial, provisioned, self.live, self.stop)?;
        let Prepared { ids, filling, mut version, addresses, ring, shards, .. } = prepared;
        let Prepared { watched, mut tended, mut caveats, .. } = prepared;
        let encoder = requests::of_run(trial, trial.plan.clone(), &ids)?;
        let stand_in = self.kind(&addresses, &mut version, tended.as_mut())?;
        let version = version.or_else(|| provisioned.version.clone());
        let spoken = match trial.records {
            Some(_) => Some(wire::aerospike::VERSION),
            None => Some(trial.protocol.version()),
        };
        let target = Target { kind: stand_in.kind.to_owned(), version, protocol: spoken };
        caveats.extend(stand_in.caveat());
        let listed: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        let local = LocalTarget::of(trial, provisioned, &addresses);
        let machine = Machine::read(Path::new("/"))?;
        let data = DataSize::of(&trial.plan, trial.databases(), &target, &local, &machine);
        caveats.extend(data.caveat(&trial.plan, &target));
        let effects = provisioned.effects();
        caveats.extend(jvm::caveat(&effects, &trial.places, &machine));
        self.manifest.target = serde_json::json!({
            "kind": target.kind,
            "version": target.version,
            "protocol": target.protocol,
            "spoken": if trial.records.is_some() { "aerospike" } else { "cql" },
            "compression": trial.protocol.compression().name(),
            "tls": trial.access.tls.is_some(),
            "addresses": listed,
            "cpus": (!local.cpus.is_empty()).then(|| local.cpus.to_string()),
            "faults": stand_in.faults,
            "data": data.facts(),
            "loaded_rows": filling.as_ref().map_or(0, Filling::rows),
            "started": provisioned.facts,
            "jvms": (!effects.is_empty()).then(|| jvm::facts(&effects)),
        });
        let databases: Vec<_> = match trial.databases() {
            1 => {
                let roster = Roster::new(addresses, ring);
                vec![Arc::new(match (shards, &tended) {
                    (Some(shards), _) => roster.sharded(shards),
                    (None, Some(tended)) => roster.partitioned(tended.masters.clone()),
                    (None, None) => roster,
                })]
            }
            _ => addresses.iter().map(|&one| Arc::new(Roster::new(vec![one], None))).collect(),
        };
        let cpus = trial.client_cpus.clone();
        let hosts = databases[0].clone();
        let watch = match (watched, tended) {
            (Some(watched), _) => Some(RingWatch::start(watched, hosts)),
            (None, Some(tended)) => Some(RingWatch::tend(tended, hosts, cpus)),
            (None, None) => None,
        };
        let watch = watch.transpose().map_err(LabError::Thread)?;
        Ok(Ready { databases, watch, target, encoder, ids, filling, local, machine, caveats })
    }

    /// Looks where every instance that was started has its threads and its pages, now that its rows
    /// are loaded.
    fn verify_places(&mut self, provisioned: &Provisioned) -> Result<(), LabError> {
        let pages = provisioned.verify_pages().collect::<Result<Vec<_>, _>>()?;
        if let (Value::Object(facts), true) = (&mut self.manifest.target, provisioned.is_ours()) {
            facts.insert("places".to_owned(), places::facts(&self.trial.places, &pages));
        }
        Ok(())
    }

    /// Looks again behind the window, where looking costs no operation its time. What is elsewhere
    /// by then speaks against the figures, which are kept.
    pub(super) fn verify_places_at_end(
        &self,
        provisioned: &Provisioned,
        manifest: &mut Manifest,
    ) -> Option<Caveat> {
        let found = provisioned.verify_running();
        if let (Value::Object(facts), true) = (&mut manifest.target, provisioned.is_ours()) {
            facts.insert("places_at_end".to_owned(), places::facts_at_end(&found));
        }
        places::moved(&self.trial.places, &found)
    }

    /// What is missing in the logs of the instances is told, for nobody looks for it there.
    pub(super) fn logs_cut(provisioned: &Provisioned, manifest: &mut Manifest) -> Option<Caveat> {
        let lost = provisioned.log_lines_lost();
        if lost == 0 {
            return None;
        }
        if let Value::Object(facts) = &mut manifest.target {
            facts.insert("log_lines_lost".to_owned(), lost.into());
        }
        let text = format!(
            "{lost} lines that the target printed are in no log: it was full, or could not be \
             written."
        );
        let cure = "Have it log less, and see that --out has space.";
        Some(Caveat::new("logs-cut", text).cure(cure))
    }

    fn load(
        &mut self,
        ready: &Ready,
        filling: &Filling,
        halt: &Arc<AtomicBool>,
    ) -> Result<(), LabError> {
        let trial = self.trial;
        let load = Load::every_key(trial.load.arrivals.in_flight_max().clamp(64, 1024));
        let workers = drive::workers(trial.client_cpus.len(), &load.arrivals, trial.databases());
        let drive = Drive {
            load,
            connections: drive::connections(trial.connections, workers / trial.databases()),
            retries: trial.load_retries,
            retry_pause: drive::RetryPause::constant(trial.load_retry_pause),
            first_failure_ends: false,
            ..self.drive_of(ready)
        };
        let into = self.rows_name();
        self.live.stage(&format!("loading {} rows into {into}", filling.rows()));
        filling.pour(&Pour { trial, ids: &ready.ids, drive, workers }, self.live, halt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stage::{MemoryPolicy, Program};
    use units::{Nanos, clock};

    #[test]
    fn lines_that_no_disk_takes_are_told() {
        let child = stage::spawn(&Program {
            host: "local".to_owned(),
            instance: "reference".to_owned(),
            argv: ["/bin/sh", "-c", "echo one; echo two"].map(Into::into).to_vec(),
            cpus: units::cpus_of_current_thread().unwrap(),
            memory: MemoryPolicy::Local,
            // A disk without space.
            log: "/dev/full".into(),
        });
        let provisioned = Provisioned {
            addresses: Vec::new(),
            children: vec![child.unwrap()],
            clusters: Vec::new(),
            version: None,
            facts: Value::Null,
        };
        let until = clock::now() + Nanos::from_secs(20);
        while provisioned.log_lines_lost() < 2 && clock::now() < until {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let mut manifest = Manifest::starting("test", Vec::new(), Nanos::ZERO);
        manifest.target = serde_json::json!({});
        let caveat = Running::logs_cut(&provisioned, &mut manifest).unwrap();
        assert_eq!(caveat.code, "logs-cut");
        assert!(caveat.text.starts_with("2 lines"), "{}", caveat.text);
        assert_eq!(manifest.target["log_lines_lost"], 2);
    }
}
