//! Tags of the interval log: which operation, and which of its histograms.
//!
//! A tag is `OP-SERIES`. `OP` is the operation's name, `SERIES` holds no hyphen, so that the last
//! hyphen divides them. Anything but letters, digits, `.`, `_` and `-` becomes `_`: the log forbids
//! commas, blanks and line ends in a tag.

use crate::{CLASSES, Latency, OpRecord, Outcome};
use std::fmt;

/// The names of an operation of a plan and of its steps, in the order of its [`OpRecord`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpNames {
    /// As in tags, JSON keys and plots: `read`, `read_modify_write`.
    pub name: String,
    /// The steps, when there is more than one; empty otherwise.
    pub parts: Vec<String>,
}

impl OpNames {
    /// An operation of a single step.
    #[must_use]
    pub fn single(name: &str) -> Self {
        Self { name: name.to_owned(), parts: Vec::new() }
    }
}

/// One of the histograms of an operation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Series {
    /// Service time of ok and timeouts.
    Service,
    /// Response time of ok and timeouts.
    Response,
    /// Lag of all that was sent.
    Lag,
    /// Service time of the other outcomes.
    FailedService,
    /// Response time of the other outcomes.
    FailedResponse,
    /// Service time of one outcome, 2 digits.
    Class(Outcome),
    /// Service time of one step.
    Part(String),
}

/// A tag of the interval log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag {
    /// The operation.
    pub op: String,
    /// Which of its histograms.
    pub series: Series,
}

impl Tag {
    /// Reads a tag; None when it is not one of ours.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (op, series) = text.rsplit_once('-')?;
        let series = match series {
            "service" => Series::Service,
            "response" => Series::Response,
            "lag" => Series::Lag,
            "failed_service" => Series::FailedService,
            "failed_response" => Series::FailedResponse,
            other => match other.split_once('_')? {
                ("class", outcome) => Series::Class(Outcome::from_name(outcome)?),
                ("part", step) => Series::Part(step.to_owned()),
                _ => return None,
            },
        };
        Some(Self { op: op.to_owned(), series })
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-", plain(&self.op, true))?;
        match &self.series {
            Series::Service => f.write_str("service"),
            Series::Response => f.write_str("response"),
            Series::Lag => f.write_str("lag"),
            Series::FailedService => f.write_str("failed_service"),
            Series::FailedResponse => f.write_str("failed_response"),
            Series::Class(outcome) => write!(f, "class_{outcome}"),
            Series::Part(step) => write!(f, "part_{}", plain(step, false)),
        }
    }
}

/// `text` with every character that a tag cannot hold as `_`.
fn plain(text: &str, hyphen: bool) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || ".:_".contains(c) || hyphen && c == '-';
    text.chars().map(|c| if fits(c) { c } else { '_' }).collect()
}

/// The histograms of an operation that hold something, with their tags.
pub(crate) fn tagged<'a>(
    names: &'a OpNames,
    op: &'a OpRecord,
) -> impl Iterator<Item = (Tag, &'a Latency)> {
    let main = [
        (Series::Service, &op.service),
        (Series::Response, &op.response),
        (Series::Lag, &op.lag),
        (Series::FailedService, &op.failed_service),
        (Series::FailedResponse, &op.failed_response),
    ];
    let classes = CLASSES.into_iter().map(Series::Class).zip(&op.classes);
    let parts = names.parts.iter().cloned().map(Series::Part).zip(&op.parts);
    main.into_iter()
        .chain(classes)
        .chain(parts)
        .filter(|(_, latency)| !latency.is_empty())
        .map(|(series, latency)| (Tag { op: names.name.clone(), series }, latency))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_read_as_they_are_written() {
        let mut series = vec![
            Series::Service,
            Series::Response,
            Series::Lag,
            Series::FailedService,
            Series::FailedResponse,
            Series::Part("read".into()),
        ];
        series.extend(CLASSES.into_iter().map(Series::Class));
        for series in series {
            let tag = Tag { op: "read-modify.write".into(), series };
            assert_eq!(Tag::parse(&tag.to_string()), Some(tag));
        }
    }

    #[test]
    fn names_of_users_cannot_break_the_line() {
        let tag = Tag { op: "a,b c\n".into(), series: Series::Part("x-y,z".into()) };
        assert_eq!(tag.to_string(), "a_b_c_-part_x_y_z");
    }

    #[test]
    fn foreign_tags_are_not_ours() {
        for text in ["", "read", "read-", "read-p99", "read-class_what", "-part"] {
            assert_eq!(Tag::parse(text), None, "{text}");
        }
    }
}
