//! How a trial went over time, for people and for the manifest: its warm-up and whether its window
//! was steady.
//!
//! In: the series of a run and where its window was. Out: caveats, and the manifest's `phases`.

use crate::recording::Recorded;
use crate::series;
use analyze::steady::{self, BLOCKS_MIN, State, Steadiness, not_steady, steadiness};
use drive::Driven;
use record::Caveat;
use serde_json::{Value, json};
use units::Nanos;

/// What a trial's time was spent on.
#[derive(Debug)]
pub(crate) struct Course {
    warm: Nanos,
    window: Nanos,
    became_steady: Option<bool>,
    /// The second half of the warm-up.
    warm_tail: Steadiness,
    /// By how much it may have changed there, as a share.
    warm_left: Option<f64>,
    steadiness: Steadiness,
    /// The text of `blocks.csv`.
    pub(crate) csv: String,
}

impl Course {
    pub(crate) fn of(recorded: &Recorded, driven: &Driven) -> Self {
        let (begin, start) = (driven.window.begin, driven.window.start);
        // With an amount the window ends for each worker when its share is done.
        let first_done = driven.usage.iter().map(|u| u.last_done).min().unwrap_or_default();
        let end = driven.window.end.map_or(first_done, |end| end.min(start + driven.elapsed));
        let warm = start.since(begin);
        let warm_blocks = recorded.warm.blocks();
        Self {
            warm,
            window: end.since(start),
            // A run that was stopped before the window was not asked for long enough.
            became_steady: recorded
                .became_steady
                .filter(|_| driven.usage.iter().any(|u| u.first_scheduled != Nanos::MAX)),
            warm_tail: steadiness(&warm_blocks[warm_blocks.len() / 2..]),
            warm_left: steady::change_left(warm_blocks),
            steadiness: steadiness(recorded.window.until(end.since(start).as_secs_f64())),
            csv: series::csv(warm_blocks, warm.as_secs_f64(), recorded.window.blocks()),
        }
    }

    /// Time that was driven and is not in the figures, of all that was driven.
    fn discarded_share(&self) -> f64 {
        let (warm_s, window_s) = (self.warm.as_secs_f64(), self.window.as_secs_f64());
        warm_s / (warm_s + window_s).max(1e-9)
    }

    /// How the warm-up ended; None where that was not a question.
    pub(crate) fn notice(&self) -> Option<String> {
        let (warm_s, percent) = (self.warm.as_secs_f64(), self.discarded_share() * 100.0);
        self.became_steady.map(|steady| {
            let until = if steady { "until it was steady" } else { "and was not steady by then" };
            format!(
                "warmed up for {warm_s:.1} s {until}; {percent:.0} % of the time driven is not in \
                 the figures"
            )
        })
    }

    /// Why nothing is said about steadiness, where nothing is.
    pub(crate) fn too_short(&self) -> Option<String> {
        let blocks = self.steadiness.blocks;
        (self.steadiness.state == State::TooShortToTell).then(|| {
            format!("too short to tell: the window has {blocks} blocks, {BLOCKS_MIN} are needed")
        })
    }

    pub(crate) fn caveats(&self) -> impl Iterator<Item = Caveat> {
        let unsteady = (self.became_steady == Some(false)).then(|| {
            let warm_s = self.warm.as_secs_f64();
            let noise = self.warm_left.filter(|_| self.warm_tail.state == State::Steady);
            let (text, cure) = match noise {
                Some(left) => (
                    format!(
                        "The warm-up of {warm_s:.0} s scatters too much to tell whether it was \
                         over: its second half may have changed by up to {:.0} %.",
                        left * 100.0
                    ),
                    "Keep other work off its cpus, or give it longer with --warm-max.",
                ),
                None => (
                    format!(
                        "The warm-up did not become steady within {warm_s:.0} s, so that the \
                         window began where it may still have been warming up."
                    ),
                    "Give it longer with --warm-max; what runs beside it may be the cause.",
                ),
            };
            let evidence = steady::evidence(&self.warm_tail);
            Caveat::new("warm-up-unsteady", text)
                .evidence(format!("second half of the warm-up: {evidence}"))
                .cure(cure)
        });
        unsteady.into_iter().chain(not_steady(&self.steadiness))
    }

    /// For the manifest of the trial.
    pub(crate) fn phases(&self) -> [(&'static str, Value); 2] {
        let movements = self.steadiness.movements.iter().map(|m| {
            let value = json!({
                "change_share": m.change_share,
                "step_share": m.step_share,
                "step_at_s": m.step_at_s,
                "variation_share": m.variation_share,
                "autocorrelation_s": m.correlation_s,
                "blocks_effective": m.blocks_effective,
                "steady": m.steady,
            });
            (m.name.to_owned(), value)
        });
        let warm = json!({
            "took_s": self.warm.as_secs_f64(),
            "discarded_share": self.discarded_share(),
            "became_steady": self.became_steady,
        });
        let window = json!({
            "took_s": self.window.as_secs_f64(),
            "state": self.steadiness.state.name(),
            "blocks": self.steadiness.blocks,
            "blocks_needed": BLOCKS_MIN,
            "steady_since_s": self.steadiness.since_s,
            "movements": movements.collect::<serde_json::Map<_, _>>(),
        });
        [("warm", warm), ("window", window)]
    }
}
