//! What an answer means for an operation.

use record::Outcome;
use wire::aerospike::ResultCode;
use wire::cql::ErrorCode;

/// The outcome that an ERROR answer stands for.
#[must_use]
pub(crate) fn of_error(code: ErrorCode) -> Outcome {
    match code {
        ErrorCode::READ_TIMEOUT | ErrorCode::WRITE_TIMEOUT | ErrorCode::CAS_WRITE_UNKNOWN => {
            Outcome::ServerTimeout
        }
        ErrorCode::UNAVAILABLE => Outcome::Unavailable,
        ErrorCode::OVERLOADED | ErrorCode::BOOTSTRAPPING => Outcome::Overloaded,
        _ => Outcome::Error,
    }
}

/// The outcome that a result of Aerospike's stands for, other than success and a missing record.
#[must_use]
pub(crate) fn of_result(result: ResultCode) -> Outcome {
    match result {
        ResultCode::TIMEOUT => Outcome::ServerTimeout,
        ResultCode::UNAVAILABLE => Outcome::Unavailable,
        ResultCode::KEY_BUSY | ResultCode::DEVICE_OVERLOAD => Outcome::Overloaded,
        _ => Outcome::Error,
    }
}

/// Whether another attempt can end otherwise.
#[must_use]
pub(crate) fn worth_a_retry(outcome: Outcome) -> bool {
    !matches!(outcome, Outcome::Ok | Outcome::NotFound | Outcome::Invalid | Outcome::NotSent)
}
