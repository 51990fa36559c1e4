//! Single records, each asked of the master of its partition.

use super::cluster::Cluster;
use super::server::Error;
use wire::aerospike::{
    Command, Key, Message, OpKind, Particle, ReadLevel, ResultCode, Wanted, WritePolicy, partition,
};

/// Bins of a record: names and values as bytes.
pub type Bins = Vec<(String, Vec<u8>)>;

impl Cluster {
    /// The bins of a record; None when there is no such record.
    ///
    /// # Errors
    /// [`Error`] when its server does not answer, or says no.
    pub fn get(&mut self, key: &Key<'_>) -> Result<Option<Bins>, Error> {
        let command = Command::get(key, Wanted::All, ReadLevel::One, 0);
        self.one(key, &command, "a read", |message| {
            let name = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
            message.ops().map(|op| (name(op.name), op.value.to_vec())).collect()
        })
    }

    /// Whether there is a record.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn has(&mut self, key: &Key<'_>) -> Result<bool, Error> {
        let command = Command::get(key, Wanted::Existence, ReadLevel::One, 0);
        Ok(self.one(key, &command, "a look at a record", |_| ())?.is_some())
    }

    /// Writes bins of text to a record, which is created where it is missing.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn put(&mut self, key: &Key<'_>, bins: &[(&str, String)]) -> Result<(), Error> {
        let ops: Vec<_> = bins
            .iter()
            .map(|(name, text)| (OpKind::Write, *name, Particle::String(text.as_bytes())))
            .collect();
        let command = Command::operate(key, &WritePolicy::default(), &ops);
        self.one(key, &command, "a write", |_| ()).map(drop)
    }

    /// What a server answers; None when there is no such record.
    fn one<T>(
        &mut self,
        key: &Key<'_>,
        command: &Command<'_>,
        what: &str,
        read: impl FnOnce(&Message<'_>) -> T,
    ) -> Result<Option<T>, Error> {
        let mut request = Vec::new();
        command.encode(&mut request);
        let server = self.master(partition(&key.digest))?;
        let body = server.message(&request)?;
        let message = Message::decode(&body).map_err(|error| server.foreign(&error))?;
        match ResultCode(message.header.result) {
            ResultCode::OK => Ok(Some(read(&message))),
            ResultCode::NOT_FOUND => Ok(None),
            result => {
                let (address, what) = (server.address(), what.to_owned());
                Err(Error::Refused { address, what, result })
            }
        }
    }
}
