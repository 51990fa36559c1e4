//! Statements: changes of the schema with agreement, questions with rows, probes for many keys.
//!
//! Consistency is LOCAL_QUORUM, so that what one run has written down, the next one reads.

use crate::connect::{Admin, chain};
use crate::rows::{Row, rows_of};
use scylla::client::session::Session;
use scylla::errors::{DbError, ExecutionError, PrepareError, RequestAttemptError};
use scylla::serialize::value::SerializeValue;
use scylla::statement::prepared::PreparedStatement;
use scylla::statement::unprepared::Statement;
use std::net::SocketAddr;
use std::sync::Arc;
use thiserror::Error;
use tokio::task::JoinSet;
use units::Nanos;

/// Longest wait for all hosts to have the same schema.
pub(crate) const AGREEMENT_MAX: Nanos = Nanos::from_secs(30);
/// A change of the schema is never given less time than this.
const CHANGE_MIN: Nanos = Nanos::from_secs(30);
/// Probes under way at a time.
const PROBES_MAX: usize = 32;
/// Longest statement shown in an error, in characters.
const SHOWN_MAX: usize = 300;

/// Instead of an answer that was not waited for.
pub(crate) const INTERRUPTED: &str = "interrupted while waiting for it";

/// Why the schema could not be changed.
#[derive(Debug, Error)]
#[allow(missing_docs)] // the fields are what the texts name
pub enum SchemaError {
    /// The database says no.
    #[error("the cluster of {address} refused '{statement}': {reason}")]
    Refused { address: SocketAddr, statement: String, reason: String },
    /// It is there already.
    #[error("the cluster of {address} has what '{statement}' makes")]
    Exists { address: SocketAddr, statement: String },
    /// Not all hosts have taken the change.
    #[error(
        "the hosts of the cluster of {address} did not agree on a schema within {timeout} after \
         '{statement}': see `nodetool describecluster`, and restart the host that differs"
    )]
    Disagreement { address: SocketAddr, statement: String, timeout: Nanos },
    /// No answer, or a broken connection.
    #[error(
        "the cluster of {address} did not answer '{statement}': {reason}; is it up, and within \
         reach? --fixed-hosts where it tells addresses that cannot be reached from here"
    )]
    Lost { address: SocketAddr, statement: String, reason: String },
}

/// Why a question has no answer.
#[derive(Debug, Error)]
#[allow(missing_docs)] // the fields are what the texts name
pub enum QueryError {
    /// The database says no.
    #[error("the cluster of {address} refused '{statement}': {reason}")]
    Refused { address: SocketAddr, statement: String, reason: String },
    /// No answer, or a broken connection.
    #[error(
        "the cluster of {address} did not answer '{statement}': {reason}; is it up, and within \
         reach? --fixed-hosts where it tells addresses that cannot be reached from here"
    )]
    Lost { address: SocketAddr, statement: String, reason: String },
    /// An answer that cannot be read.
    #[error(
        "the answer of the cluster of {address} to '{statement}' cannot be read: {reason}; is it a \
         database of another kind?"
    )]
    Answer { address: SocketAddr, statement: String, reason: String },
}

/// `text` as a CQL string literal.
#[must_use]
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

impl Admin {
    /// Runs a statement that changes the schema, and waits until all hosts that are up agree on it.
    /// Takes at most 30 s, or `timeout` where that is longer, and 30 s for the agreement.
    ///
    /// # Errors
    /// [`SchemaError`]: refused, no agreement, no answer.
    pub fn schema_change(&self, text: &str) -> Result<(), SchemaError> {
        let mut statement = Statement::new(text);
        statement.set_request_timeout(Some(self.timeout.max(CHANGE_MIN).to_duration()));
        let change = self.session().query_unpaged(statement, &[]);
        let changed = self.runtime.block_on_unless(&self.stop, change);
        let (address, statement) = (self.contact(), shown(text));
        let Some(changed) = changed else {
            return Err(SchemaError::Lost { address, statement, reason: INTERRUPTED.to_owned() });
        };
        match changed {
            Ok(_) => Ok(()),
            Err(ExecutionError::SchemaAgreementError(_)) => {
                Err(SchemaError::Disagreement { address, statement, timeout: AGREEMENT_MAX })
            }
            Err(error) if exists(&error) => Err(SchemaError::Exists { address, statement }),
            Err(error) => Err(match refusal(&error) {
                Some(reason) => SchemaError::Refused { address, statement, reason },
                None => SchemaError::Lost { address, statement, reason: chain(&error) },
            }),
        }
    }

    /// Lets names without a keyspace mean those of this one, as it stands in CQL.
    ///
    /// # Errors
    /// [`SchemaError`]: refused, no answer.
    pub fn use_keyspace(&self, name: &str) -> Result<(), SchemaError> {
        let quoted = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
        let used = self.session().use_keyspace(quoted.unwrap_or(name), quoted.is_some());
        let used = self.runtime.block_on_unless(&self.stop, used);
        let (address, statement) = (self.contact(), format!("USE {}", shown(name)));
        match used {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => {
                Err(SchemaError::Refused { address, statement, reason: chain(&error) })
            }
            None => Err(SchemaError::Lost { address, statement, reason: INTERRUPTED.to_owned() }),
        }
    }

    /// Runs a statement that writes, to its end also when the caller wants to stop.
    ///
    /// # Errors
    /// [`QueryError`]: refused, no answer.
    pub fn write(&self, text: &str) -> Result<(), QueryError> {
        let answer = self.runtime.block_on(self.session().query_unpaged(text, &[]));
        answer.map(drop).map_err(|e| self.query_error(text, &e, refusal(&e)))
    }

    /// Runs any other statement; its rows. Meant for few rows: all are read.
    ///
    /// # Errors
    /// [`QueryError`]: refused, no answer, not readable.
    pub fn query(&self, text: &str) -> Result<Vec<Row>, QueryError> {
        let asked = self.session().query_unpaged(text, &[]);
        let answer = self.runtime.block_on_unless(&self.stop, asked);
        let answer = answer.ok_or_else(|| self.interrupted(text))?;
        let answer = answer.map_err(|e| self.query_error(text, &e, refusal(&e)))?;
        let (address, statement) = (self.contact(), shown(text));
        rows_of(answer).map_err(|reason| QueryError::Answer { address, statement, reason })
    }

    /// Runs `text`, which has one marker of type text, for each of `keys`, at most 32 at a time;
    /// how many of them have rows.
    ///
    /// # Errors
    /// [`QueryError`] of the first that fails.
    pub fn count_found(&self, text: &str, keys: Vec<String>) -> Result<usize, QueryError> {
        self.count_rows(text, keys)
    }

    /// As [`Self::count_found`], with a marker of type blob.
    ///
    /// # Errors
    /// [`QueryError`] of the first that fails.
    pub fn count_found_blobs(&self, text: &str, keys: Vec<Vec<u8>>) -> Result<usize, QueryError> {
        self.count_rows(text, keys)
    }

    /// As [`Self::count_found`], with a marker of type bigint.
    ///
    /// # Errors
    /// [`QueryError`] of the first that fails.
    pub fn count_found_integers(&self, text: &str, keys: Vec<i64>) -> Result<usize, QueryError> {
        self.count_rows(text, keys)
    }

    fn count_rows<K: SerializeValue + Send + Sync + 'static>(
        &self,
        text: &str,
        keys: Vec<K>,
    ) -> Result<usize, QueryError> {
        let session = self.session();
        let found = self.runtime.block_on_unless(&self.stop, async {
            let statement = session.prepare(text).await;
            let statement = statement.map_err(|e| (chain(&e), refusal_to_prepare(&e)))?;
            count(session, &statement, keys).await.map_err(|e| (chain(&e), refusal(&e)))
        });
        let (address, statement) = (self.contact(), shown(text));
        let found = found.ok_or_else(|| self.interrupted(text))?;
        found.map_err(|(lost, refused)| match refused {
            Some(reason) => QueryError::Refused { address, statement, reason },
            None => QueryError::Lost { address, statement, reason: lost },
        })
    }

    /// The versions of all hosts that the contact knows, each once, in order.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn versions(&self) -> Result<Vec<String>, QueryError> {
        let mut versions = Vec::new();
        for table in ["local", "peers"] {
            let text = format!("SELECT release_version FROM system.{table}");
            let rows = self.query(&text)?;
            versions.extend(
                rows.iter().filter_map(|row| row.cells().first()?.text()).map(str::to_owned),
            );
        }
        versions.sort_unstable();
        versions.dedup();
        Ok(versions)
    }

    fn interrupted(&self, text: &str) -> QueryError {
        let (address, statement) = (self.contact(), shown(text));
        QueryError::Lost { address, statement, reason: INTERRUPTED.to_owned() }
    }

    fn query_error(
        &self,
        text: &str,
        error: &ExecutionError,
        refused: Option<String>,
    ) -> QueryError {
        let (address, statement) = (self.contact(), shown(text));
        match refused {
            Some(reason) => QueryError::Refused { address, statement, reason },
            None => QueryError::Lost { address, statement, reason: chain(error) },
        }
    }
}

async fn count<K: SerializeValue + Send + Sync + 'static>(
    session: &Arc<Session>,
    statement: &PreparedStatement,
    keys: Vec<K>,
) -> Result<usize, ExecutionError> {
    let mut under_way = JoinSet::<Result<bool, ExecutionError>>::new();
    let mut found = 0;
    let mut keys = keys.into_iter();
    loop {
        while under_way.len() < PROBES_MAX
            && let Some(key) = keys.next()
        {
            let (session, statement) = (session.clone(), statement.clone());
            under_way.spawn(async move {
                let answer = session.execute_unpaged(&statement, (key,)).await?;
                Ok(answer.into_rows_result().is_ok_and(|rows| rows.rows_num() > 0))
            });
        }
        match under_way.join_next().await {
            None => return Ok(found),
            // A task that panicked has found nothing.
            Some(Err(_)) => {}
            Some(Ok(answer)) => found += usize::from(answer?),
        }
    }
}

/// Whether the database said that what is to be made is there.
fn exists(error: &ExecutionError) -> bool {
    let there = |attempt: &RequestAttemptError| {
        matches!(attempt, RequestAttemptError::DbError(DbError::AlreadyExists { .. }, _))
    };
    matches!(error, ExecutionError::LastAttemptError(attempt) if there(attempt))
}

/// What the database said, when it said no.
fn refusal(error: &ExecutionError) -> Option<String> {
    match error {
        ExecutionError::LastAttemptError(attempt) => said(attempt),
        ExecutionError::PrepareError(error) => refusal_to_prepare(error),
        _ => None,
    }
}

fn refusal_to_prepare(error: &PrepareError) -> Option<String> {
    match error {
        PrepareError::AllAttemptsFailed { first_attempt } => said(first_attempt),
        _ => None,
    }
}

fn said(attempt: &RequestAttemptError) -> Option<String> {
    match attempt {
        RequestAttemptError::DbError(code, message) => {
            Some(if message.is_empty() { code.to_string() } else { message.clone() })
        }
        _ => None,
    }
}

fn shown(statement: &str) -> String {
    match statement.char_indices().nth(SHOWN_MAX) {
        Some((at, _)) => format!("{}...", &statement[..at]),
        None => statement.to_owned(),
    }
}
