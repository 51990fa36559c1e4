//! How an operation ended. The classes and which of them are the headline: design section 7,
//! "Outcomes".

use std::fmt;

/// The final outcome of one operation, retries included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Outcome {
    /// Done as asked.
    Ok,
    /// A read of a key that is not there.
    NotFound,
    /// An answer whose content is not what was written.
    Invalid,
    /// No answer within the client's own timeout.
    ClientTimeout,
    /// The server answered that it ran out of time (read or write timeout).
    ServerTimeout,
    /// The server had too few live replicas.
    Unavailable,
    /// The server refused for load.
    Overloaded,
    /// The connection broke with the operation in flight.
    ConnectionLost,
    /// Any other error that the server answered with.
    Error,
    /// Was due, but no connection ever took it. Has no service time.
    NotSent,
}

impl Outcome {
    /// Every outcome, in the order of its `u8` value and of all outcome tables.
    pub const ALL: [Self; 10] = [
        Self::Ok,
        Self::NotFound,
        Self::Invalid,
        Self::ClientTimeout,
        Self::ServerTimeout,
        Self::Unavailable,
        Self::Overloaded,
        Self::ConnectionLost,
        Self::Error,
        Self::NotSent,
    ];

    /// Number of outcomes.
    pub const COUNT: usize = Self::ALL.len();

    /// The name in flags, JSON, CSV and tags.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::NotFound => "not_found",
            Self::Invalid => "invalid",
            Self::ClientTimeout => "client_timeout",
            Self::ServerTimeout => "server_timeout",
            Self::Unavailable => "unavailable",
            Self::Overloaded => "overloaded",
            Self::ConnectionLost => "connection_lost",
            Self::Error => "error",
            Self::NotSent => "not_sent",
        }
    }

    /// The outcome of that [`name`](Self::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.name() == name)
    }

    /// Whether its latency belongs to the headline: ok, and timeouts at their real length.
    ///
    /// Leaving timeouts out would make a stalling server look fast; fast failures would do the same
    /// if they were in.
    #[must_use]
    #[inline]
    pub const fn is_headline(self) -> bool {
        matches!(self, Self::Ok | Self::ClientTimeout | Self::ServerTimeout)
    }

    /// Position in [`Self::ALL`].
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_names_and_order_agree() {
        for (index, outcome) in Outcome::ALL.into_iter().enumerate() {
            assert_eq!(outcome.index(), index);
            assert_eq!(Outcome::from_name(outcome.name()), Some(outcome));
        }
        assert_eq!(Outcome::from_name("timeout"), None);
    }

    #[test]
    fn the_headline_is_ok_and_the_timeouts() {
        let headline: Vec<_> =
            Outcome::ALL.into_iter().filter(|o| o.is_headline()).map(Outcome::name).collect();
        assert_eq!(headline, ["ok", "client_timeout", "server_timeout"]);
    }
}
