//! Looks after the ring and the table while a run goes on.
//!
//! In: what the target tells by itself on one connection that only listens, and the workers' word
//! that they are in trouble. Out: a ring for the workers ([`Roster`]), and [`News`] for people.
//! Between the two the control plane is opened again, reads the ring and the table's shape, and is
//! closed; that is all that it does while something is measured. It looks [`SETTLE`] after it was
//! given a reason, and not again within [`LOOK_MIN`]; while workers are in trouble and nothing
//! has changed, the pause doubles up to [`LOOK_MAX`].
//! Limits: with fixed hosts only they are followed. A host is driven once it can be connected to.

use crate::partition_watch;
use crate::records::Tended;
use admin::{Admin, literal};
use drive::{Access, Change, Control, ControlError, Happening, Roster, TableName};
use record::Caveat;
use record::events::EventKind;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use units::{CpuSet, Nanos, clock, cpus_of_current_thread, pin_current_thread};
use wire::routing::Ring;
use wire::shards::Offer;

/// After a reason to look: what changes, changes in several steps.
const SETTLE: Nanos = Nanos::from_secs(1);
/// Between two looks, at least, and at most while trouble goes on.
const LOOK_MIN: Nanos = Nanos::from_secs(5);
const LOOK_MAX: Nanos = Nanos::from_secs(60);
/// Between attempts to find a host that tells of itself.
const LISTEN_PAUSE: Nanos = Nanos::from_secs(5);
/// How long the end of the run may go unseen.
const TICK: Nanos = Nanos::from_millis(100);
/// For one answer of a host that is asked to tell.
const PATIENCE: Nanos = Nanos::from_secs(2);
/// News that are kept.
const NEWS_MAX: usize = 1000;

/// What is looked after.
#[derive(Debug, Clone)]
pub(crate) struct Watched {
    /// How to get to the cluster; its datacenter is named.
    pub(crate) config: admin::Config,
    /// What the run drives.
    pub(crate) table: TableName,
    /// What the table was when the run was prepared.
    pub(crate) shape: Shape,
}

/// What a table is, as far as statements depend on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Another one after it was dropped and created again.
    id: Vec<u8>,
    /// Names with types, in order; none where there is no table.
    columns: Vec<String>,
}

/// Something that people should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct News {
    /// When it was learnt.
    pub(crate) at: Nanos,
    pub(crate) kind: EventKind,
    pub(crate) text: String,
}

/// Looks while it lives.
#[derive(Debug)]
pub(crate) struct RingWatch {
    news: Arc<Mutex<Vec<News>>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl RingWatch {
    pub(crate) fn start(watched: Watched, hosts: Arc<Roster>) -> std::io::Result<Self> {
        let (news, over) = (Arc::<Mutex<Vec<News>>>::default(), Arc::<AtomicBool>::default());
        let watcher = Watcher {
            watched,
            hosts,
            news: news.clone(),
            over: over.clone(),
            ear: None,
            listen_at: Nanos::ZERO,
            due: None,
            looked: None,
            pause: LOOK_MIN,
            unread: false,
        };
        let thread = std::thread::Builder::new().name("ring-watch".to_owned());
        Ok(Self { news, over, thread: Some(thread.spawn(move || watcher.watch())?) })
    }

    /// Of servers of records.
    pub(crate) fn tend(
        tended: Tended,
        hosts: Arc<Roster>,
        workers: CpuSet,
    ) -> std::io::Result<Self> {
        let (news, over) = (Arc::<Mutex<Vec<News>>>::default(), Arc::<AtomicBool>::default());
        let (told, end) = (news.clone(), over.clone());
        let thread = std::thread::Builder::new().name("partition-watch".to_owned());
        let thread = thread.spawn(move || {
            stay_off(&workers);
            partition_watch::watch(tended, &hosts, &end, &|news| keep(&told, news));
        })?;
        Ok(Self { news, over, thread: Some(thread) })
    }

    /// What is new since this was asked last.
    pub(crate) fn take_news(&self) -> Vec<News> {
        std::mem::take(&mut *self.news.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for RingWatch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It cannot have panicked; if it has, there is nobody to tell.
            let _ = thread.join();
        }
    }
}

/// What a table is now.
pub(crate) fn shape(admin: &Admin, table: &TableName) -> Result<Shape, admin::QueryError> {
    let of = format!(
        "WHERE keyspace_name = {} AND table_name = {}",
        literal(&table.keyspace),
        literal(&table.table)
    );
    let tables = admin.query(&format!("SELECT id FROM system_schema.tables {of}"))?;
    let columns =
        admin.query(&format!("SELECT column_name, type FROM system_schema.columns {of}"))?;
    let id = match tables.first().map(|row| row.get("id")) {
        Some(admin::Cell::Bytes(id)) => id.clone(),
        _ => Vec::new(),
    };
    let word = |row: &admin::Row, name| row.get(name).text().unwrap_or_default().to_owned();
    let named = |row| format!("{} {}", word(row, "column_name"), word(row, "type"));
    let mut columns: Vec<String> = columns.iter().map(named).collect();
    columns.sort_unstable();
    Ok(Shape { id, columns })
}

/// What a look has found.
struct Read {
    ring: Ring,
    /// What hosts that are new say of their shards.
    met: Vec<(SocketAddr, Offer)>,
    shape: Shape,
    /// There are hosts that cannot be connected to, and that are not driven yet.
    coming: bool,
}

struct Watcher {
    watched: Watched,
    hosts: Arc<Roster>,
    news: Arc<Mutex<Vec<News>>>,
    over: Arc<AtomicBool>,
    /// The connection that only listens.
    ear: Option<Control>,
    /// When one is tried to be had again.
    listen_at: Nanos,
    /// When the next look is due.
    due: Option<Nanos>,
    /// When the last one was.
    looked: Option<Nanos>,
    pause: Nanos,
    /// That the ring cannot be read has been told.
    unread: bool,
}

impl Watcher {
    fn watch(mut self) {
        stay_off(&self.watched.config.cpus);
        while !self.over.load(Ordering::Relaxed) {
            self.listen();
            let heard = match &mut self.ear {
                Some(ear) => ear.hear(TICK),
                None => {
                    std::thread::sleep(TICK.to_duration());
                    Ok(None)
                }
            };
            match heard {
                Ok(None) => {}
                Ok(Some(happening)) => self.heard(happening),
                // Its host may have died, or left.
                Err(_) => {
                    self.ear = None;
                    self.want_a_look(false);
                }
            }
            if self.hosts.take_trouble() {
                self.want_a_look(false);
            }
            if self.due.is_some_and(|at| clock::now() >= at) {
                self.look();
            }
        }
    }

    /// Has one host tell of what happens, where none does.
    fn listen(&mut self) {
        let now = clock::now();
        if self.ear.is_some() || now < self.listen_at {
            return;
        }
        self.listen_at = now + LISTEN_PAUSE;
        let access = self.access();
        self.ear = self.hosts.addresses().into_iter().find_map(|host| {
            let mut ear = Control::connect_unless(host, PATIENCE, &access, &self.over).ok()?;
            ear.listen().ok().map(|()| ear)
        });
    }

    fn access(&self) -> Access {
        let config = &self.watched.config;
        Access { credentials: config.credentials.clone(), tls: config.tls.clone() }
    }

    fn heard(&mut self, happening: Happening) {
        match happening {
            Happening::Topology(..) => self.want_a_look(true),
            Happening::Status { host, up } => {
                if self.hosts.addresses().iter().any(|address| address.ip() == host) {
                    let word = if up { "up" } else { "down" };
                    self.tell(EventKind::Status, format!("The cluster says that {host} is {word}"));
                }
                self.want_a_look(true);
            }
            Happening::Schema { keyspace, object } => {
                let table = &self.watched.table;
                let ours = object.is_none_or(|object| object == table.table);
                if ours && keyspace == table.keyspace {
                    self.want_a_look(true);
                }
            }
            Happening::Other => {}
        }
    }

    /// `new`: the target has told something; else there is only trouble.
    fn want_a_look(&mut self, new: bool) {
        if new {
            self.pause = LOOK_MIN;
        }
        let soon = clock::now() + SETTLE;
        let at = self.looked.map_or(soon, |looked| soon.max(looked + self.pause));
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// Reads the ring and the table's shape anew.
    fn look(&mut self) {
        self.due = None;
        let read = self.read();
        self.looked = Some(clock::now());
        if self.over.load(Ordering::Relaxed) {
            return;
        }
        let mut waits = false;
        let changed = match read {
            Ok(Read { ring, met, shape, coming }) => {
                self.unread = false;
                waits = coming;
                self.compare(&ring, &met, shape)
            }
            Err(why) => {
                if !std::mem::replace(&mut self.unread, true) {
                    self.tell(EventKind::Unread, format!("The ring could not be read: {why}"));
                }
                false
            }
        };
        self.pause = if changed { LOOK_MIN } else { Nanos(self.pause.0 * 2).min(LOOK_MAX) };
        // One that is not up by then will be told of when it is.
        if waits && self.pause < LOOK_MAX {
            self.want_a_look(false);
        }
    }

    fn read(&self) -> Result<Read, String> {
        let known = self.hosts.addresses();
        let mut config = self.watched.config.clone();
        if !config.fixed_hosts {
            config.hosts.clone_from(&known);
        }
        let admin = Admin::connect_unless(&config, &self.over).map_err(|e| e.to_string())?;
        let all = admin.ring(&self.watched.table.keyspace).map_err(|e| e.to_string())?;
        let near = all.only(|host| host.datacenter == admin.datacenter());
        let mut ring = near.only(|host| host.up || known.contains(&host.address));
        let mut met = Vec::new();
        for host in self.hosts.unmet(&ring) {
            match self.ask(host) {
                Ok(offer) => met.extend(offer.map(|offer| (host, offer))),
                Err(_) => ring = ring.only(|other| other.address != host),
            }
        }
        let coming = ring.hosts.len() < near.hosts.len();
        let shape = shape(&admin, &self.watched.table).map_err(|e| e.to_string())?;
        Ok(Read { ring, met, shape, coming })
    }

    /// What a host says of its shards; None of one that has none, or says what makes no sense.
    fn ask(&self, host: SocketAddr) -> Result<Option<Offer>, ControlError> {
        let access = self.access();
        let mut control = Control::connect_unless(host, PATIENCE, &access, &self.over)?;
        Ok(control.offer()?.unwrap_or_default())
    }

    /// Makes what was read that of the workers; whether it is other than before.
    fn compare(&mut self, ring: &Ring, met: &[(SocketAddr, Offer)], shape: Shape) -> bool {
        let change = self.hosts.update(ring, met);
        if !change.is_none() {
            self.tell(EventKind::Ring, ring_text(&change));
        }
        let before = std::mem::replace(&mut self.watched.shape, shape);
        let altered = schema_text(&self.watched.table, &before, &self.watched.shape);
        let changed = !change.is_none() || altered.is_some();
        if let Some(text) = altered {
            self.tell(EventKind::Schema, text);
        }
        changed
    }

    fn tell(&self, kind: EventKind, text: String) {
        keep(&self.news, News { at: clock::now(), kind, text });
    }
}

fn keep(all: &Mutex<Vec<News>>, news: News) {
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    if all.len() < NEWS_MAX {
        all.push(news);
    }
}

fn ring_text(change: &Change) -> String {
    let list =
        |hosts: &[SocketAddr]| hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let mut parts = Vec::new();
    if !change.joined.is_empty() {
        parts.push(format!("{} joined", list(&change.joined)));
    }
    if !change.left.is_empty() {
        parts.push(format!("{} left", list(&change.left)));
    }
    if parts.is_empty() {
        parts.push("tokens moved to other hosts".to_owned());
    }
    format!("The ring changed: {}", parts.join(", "))
}

fn schema_text(table: &TableName, before: &Shape, now: &Shape) -> Option<String> {
    let name = table.quoted();
    if before == now {
        return None;
    }
    let other = |of: &Shape, than: &Shape| {
        let columns = of.columns.iter().filter(|column| !than.columns.contains(column));
        columns.cloned().collect::<Vec<_>>().join(", ")
    };
    Some(match (before.columns.is_empty(), now.columns.is_empty()) {
        (_, true) => format!("{name} is gone"),
        (true, false) => format!("{name} is there again"),
        _ if before.id != now.id => format!("{name} was dropped and created again"),
        _ => {
            let (more, fewer) = (other(now, before), other(before, now));
            let parts = [(more, "with"), (fewer, "without")];
            let parts = parts.iter().filter(|(columns, _)| !columns.is_empty());
            let parts: Vec<_> = parts.map(|(columns, word)| format!("{word} {columns}")).collect();
            format!("{name} was altered: it is now {}", parts.join(", "))
        }
    })
}

/// What is to be said of a window in which `news` came.
pub(crate) fn caveats(news: &[News], from: Nanos, to: Nanos) -> Vec<Caveat> {
    let within = |kind| -> Vec<String> {
        let of_kind = |n: &&News| n.kind == kind && (from..=to).contains(&n.at);
        let told = news.iter().filter(of_kind);
        told.map(|n| format!("{} (at {:.0} s)", n.text, n.at.since(from).as_secs_f64())).collect()
    };
    let caveat = |kind, code, text: &str, cure: &str| {
        let evidence = within(kind);
        (!evidence.is_empty())
            .then(|| Caveat::new(code, text).evidence(evidence.join("; ")).cure(cure))
    };
    let ring = caveat(
        EventKind::Ring,
        "ring-changed",
        "The ring changed while it was measured: the figures are a mean over rings that differ.",
        "Repeat it on a ring that stays; the report marks the moment.",
    );
    let schema = caveat(
        EventKind::Schema,
        "schema-changed",
        "The table was changed while it was measured: statements were prepared again, or failed.",
        "Repeat it on a table that nobody alters.",
    );
    let unread = caveat(
        EventKind::Unread,
        "ring-unread",
        "Workers were in trouble and the ring could not be read anew: hosts may have come or gone \
         without being noticed.",
        "Is the cluster within reach? --timeout gives its answers longer.",
    );
    [ring, schema, unread].into_iter().flatten().collect()
}

/// Best effort: a machine without other cpus has none to give.
fn stay_off(workers: &CpuSet) {
    if let Ok(allowed) = cpus_of_current_thread() {
        let rest = allowed.difference(workers);
        if !rest.is_empty() {
            let _ = pin_current_thread(&rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_told_in_words() {
        let host = |i: u8| SocketAddr::from(([127, 0, 0, i], 9042));
        let change = Change { joined: vec![host(3)], left: vec![host(1), host(2)], moved: true };
        let text = "127.0.0.3:9042 joined, 127.0.0.1:9042, 127.0.0.2:9042 left";
        assert_eq!(ring_text(&change), format!("The ring changed: {text}"));
        let moved = Change { moved: true, ..Change::default() };
        assert_eq!(ring_text(&moved), "The ring changed: tokens moved to other hosts");
    }

    #[test]
    fn what_became_of_the_table_is_told() {
        let table = TableName { keyspace: "ks".into(), table: "t".into() };
        let shape = |id: u8, columns: &[&str]| Shape {
            id: vec![id],
            columns: columns.iter().map(|c| (*c).to_owned()).collect(),
        };
        let before = shape(1, &["a text", "b text"]);
        let told = |now: &Shape| schema_text(&table, &before, now);
        assert_eq!(told(&before), None);
        let altered = told(&shape(1, &["a text", "c int"])).unwrap();
        assert_eq!(altered, "ks.t was altered: it is now with c int, without b text");
        assert_eq!(told(&Shape::default()).unwrap(), "ks.t is gone");
        assert_eq!(told(&shape(2, &["a text"])).unwrap(), "ks.t was dropped and created again");
        let back = schema_text(&table, &Shape::default(), &before).unwrap();
        assert_eq!(back, "ks.t is there again");
    }

    #[test]
    fn only_what_came_within_the_window_is_a_caveat() {
        let news =
            |s: u64, kind, text: &str| News { at: Nanos::from_secs(s), kind, text: text.into() };
        let all = [
            news(5, EventKind::Ring, "early"),
            news(12, EventKind::Ring, "x joined"),
            news(13, EventKind::Status, "x is up"),
            news(31, EventKind::Schema, "late"),
        ];
        let caveats = caveats(&all, Nanos::from_secs(10), Nanos::from_secs(30));
        let [caveat] = &caveats[..] else { panic!("{caveats:?}") };
        assert_eq!(
            (caveat.code.as_str(), caveat.evidence.as_str()),
            ("ring-changed", "x joined (at 2 s)")
        );
    }
}
