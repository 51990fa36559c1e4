//! A command of cassandra-stress as a workload of wideload's own.
//!
//! In: a command with its words and the groups `-pop`, `-col`, `-errors`; how many rows there are.
//! Out: the plan, and what has no effect. How hard it is driven, for how long and at what is said
//! by wideload's flags, and rows are loaded first where they are not there.

use super::line::{Line, LineError, Word};
use super::settings::{Asked, Compat, Files, parse};
use crate::plan::Plan;

/// Groups that say what is done.
const GROUPS: [&str; 5] = ["-pop", "-col", "-errors", "-insert", "-tokenrange"];
/// Words of a command that say for how long, at which level, or what comes before.
const ELSEWHERE: [&str; 8] =
    ["n=", "n<", "n>", "duration=", "err<", "cl=", "no-warmup", "truncate="];

/// The plan of a command over `records` rows, for so many threads, and notices.
///
/// # Errors
/// [`LineError`]: of the line itself, or of a word that a flag of wideload stands for.
pub fn native(
    text: &str,
    records: u64,
    threads: usize,
    files: Files<'_>,
) -> Result<(Plan, Vec<String>), LineError> {
    let line = Line::of(&[text.to_owned()])?;
    let (command, groups) =
        line.groups.split_first().map_or((None, &[][..]), |(c, g)| (Some(c), g));
    let cure = "Say that with wideload's flags: --records --ops --duration --threads --target.";
    if let Some(group) = groups.iter().find(|group| !GROUPS.contains(&&group.name[..])) {
        let word = Word { text: group.name.clone(), column: group.column };
        let what = format!("{} is not part of a workload", group.name);
        return Err(LineError::at(&word, what, cure));
    }
    let words = command.map_or(&[][..], |command| &command.words[..]);
    for word in words {
        let lower = word.text.to_lowercase();
        if ELSEWHERE.iter().any(|prefix| lower.starts_with(prefix)) {
            let what = format!("{} is not part of a workload", word.text);
            return Err(LineError::at(word, what, cure));
        }
    }
    let mut arguments: Vec<String> = line.text.split(' ').map(str::to_owned).collect();
    arguments.retain(|word| !word.is_empty());
    arguments.insert(1.min(arguments.len()), format!("n={records}"));
    match parse(&arguments, Compat::default(), files)? {
        Asked::Run(settings) => Ok((settings.plan(threads), settings.notices)),
        Asked::Help(_) | Asked::Print(_) | Asked::Version => {
            let what = "help, print and version drive nothing";
            Err(LineError::anywhere(what, "Write write, read, mixed, user or a counter's command."))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(text: &str, records: u64, threads: usize) -> Result<(Plan, Vec<String>), LineError> {
        native(text, records, threads, &|_: &str| Err("no file".to_owned()))
    }

    #[test]
    fn a_workload_is_a_command_and_what_it_touches() {
        let (plan, notices) = with("read -col n=fixed(2)", 500, 8).unwrap();
        assert_eq!((plan.keys.start, plan.keys.loaded), (1, 500));
        assert_eq!((plan.schema.columns.len(), notices.len()), (2, 0));
        assert_eq!(&plan.workload, "cassandra-stress:read");
        let (plan, _) = with("mixed ratio(read=3,write=1) -pop seq=11..20", 500, 8).unwrap();
        assert_eq!((plan.keys.start, plan.keys.loaded, plan.run.len()), (11, 10, 2));
        for (line, word) in [
            ("write n=5", "n=5"),
            ("write cl=one", "cl=one"),
            ("write -rate threads=5", "-rate"),
            ("write -node a", "-node"),
        ] {
            let error = with(line, 5, 1).unwrap_err();
            assert!(error.what.starts_with(word), "{line}: {error}");
        }
        assert!(with("help", 5, 1).is_err());
    }
}
