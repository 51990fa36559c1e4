//! A share of something, as a distribution over a divisor: `FIXED(1)/10`.

use super::grammar::{count, not_above, position};
use super::{Distribution, DistributionError, DistributionProblem, DrawState};

/// A distribution of shares from 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Ratio {
    distribution: Distribution,
    divisor: f64,
}

impl Ratio {
    /// Everything: `FIXED(1)/1`.
    #[must_use]
    pub const fn whole() -> Self {
        Self { distribution: Distribution::fixed(1), divisor: 1.0 }
    }

    /// Reads `DISTRIBUTION/DIVISOR`.
    ///
    /// # Errors
    /// When the distribution is wrong, or no divisor above 0 stands behind it.
    pub fn parse(spec: &str) -> Result<Self, DistributionError> {
        let fails = |at, problem| {
            let position = position(spec, at);
            Err(DistributionError { spec: spec.to_owned(), position, problem })
        };
        let Some((distribution, divisor)) = spec.rsplit_once('/') else {
            return fails(spec.len(), DistributionProblem::Divisor);
        };
        let at = distribution.len() + 1;
        match count(divisor) {
            Some(value) if value > 0 => {
                let distribution = Distribution::parse(distribution)?;
                Ok(Self { distribution, divisor: value as f64 })
            }
            Some(value) => fails(at, not_above("divisor", &value.to_string(), "")),
            None => fails(at, DistributionProblem::Divisor),
        }
    }

    /// The next share.
    pub fn sample(&self, state: &mut DrawState) -> f64 {
        (self.distribution.sample_f64(state) / self.divisor).clamp(0.0, 1.0)
    }

    /// Least share; may be below 0 where the distribution is, as in the original.
    #[must_use]
    pub fn min(&self) -> f64 {
        (self.distribution.min() as f64 / self.divisor).min(1.0)
    }

    /// Greatest share.
    #[must_use]
    pub fn max(&self) -> f64 {
        (self.distribution.max() as f64 / self.divisor).min(1.0)
    }
}
