//! A plan in the requests of one protocol or the other.

use crate::aerospike::RecordEncoder;
use crate::cql::Encoder;
use std::sync::Arc;
use workload::Plan;

/// What a load is encoded by; which one it is, is asked once per worker.
#[derive(Debug, Clone)]
pub enum Encoding {
    /// Prepared statements.
    Cql(Arc<Encoder>),
    /// Messages on records.
    Aerospike(Arc<RecordEncoder>),
}

impl Encoding {
    /// The plan that is encoded.
    #[must_use]
    pub fn plan(&self) -> &Arc<Plan> {
        match self {
            Self::Cql(encoder) => encoder.plan(),
            Self::Aerospike(encoder) => encoder.plan(),
        }
    }
}

impl From<Arc<Encoder>> for Encoding {
    fn from(encoder: Arc<Encoder>) -> Self {
        Self::Cql(encoder)
    }
}

impl From<Arc<RecordEncoder>> for Encoding {
    fn from(encoder: Arc<RecordEncoder>) -> Self {
        Self::Aerospike(encoder)
    }
}
