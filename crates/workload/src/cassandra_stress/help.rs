//! `help`, `help OPTION` and `print dist=`: texts for people.

use super::options::{Opt, Pattern};
use super::settings::Drawn;
use super::table;
use std::fmt::Write as _;

/// Shares that `print` shows.
const SHARES: [f64; 12] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0];

/// The text of `help`, with a topic that of a command or a group; None of what is neither.
#[must_use]
pub fn help(topic: Option<&str>) -> Option<String> {
    let Some(topic) = topic else { return Some(overview()) };
    match topic {
        "read" | "write" | "insert" | "counter_write" | "counter_add" | "counter_read"
        | "counter_get" => return Some(forms(topic, &table::COMMAND)),
        "mixed" => return Some(forms(topic, &table::MIXED)),
        "user" => return Some(forms(topic, &table::PROFILES)),
        "help" | "-?" => return Some("Usage: cassandra-stress help <command|option>\n".to_owned()),
        "print" => return Some("Usage: print dist=DIST(?)\n".to_owned()),
        _ => {}
    }
    let name = if topic.starts_with('-') { topic.to_owned() } else { format!("-{topic}") };
    let group = table::GROUPS.iter().find(|(group, ..)| *group == name);
    if let Some((name, groupings, _)) = group {
        return Some(forms(name, groupings));
    }
    let command =
        table::COMMANDS.iter().find(|(name, others, _)| *name == topic || others.contains(&topic));
    command.map(|(name, _, about)| format!("{name}: {about}; not built here.\n"))
}

fn overview() -> String {
    let mut text = "Usage:      cassandra-stress <command> [options]\n\
                    Help usage: cassandra-stress help <command>\n\n---Commands---\n"
        .to_owned();
    for (name, _, about) in table::COMMANDS {
        let _ = writeln!(text, "{name:<20} : {about}");
    }
    text.push_str("\n---Options---\n");
    for (name, _, about) in table::GROUPS {
        let _ = writeln!(text, "{name:<20} : {about}");
    }
    text
}

/// What a word looks like: `threads=?`.
fn shown(option: &Opt) -> String {
    let name = match option.pattern {
        Pattern::Several(..) => format!("{}(?)", option.prefix),
        Pattern::Distribution => format!("{}DIST(?)", option.prefix),
        _ if option.prefix.is_empty() => "LIST".to_owned(),
        _ if option.prefix.ends_with(['=', '<', '>']) => format!("{}?", option.prefix),
        _ => option.prefix.to_owned(),
    };
    if option.required { name } else { format!("[{name}]") }
}

fn forms(name: &str, groupings: &[&[Opt]]) -> String {
    let mut text = "\n".to_owned();
    for (index, options) in groupings.iter().enumerate() {
        if index > 0 {
            text.push_str(" OR \n");
        }
        let words: Vec<_> = options.iter().map(shown).collect();
        let _ = writeln!(text, "Usage: {name} {}", words.join(" "));
    }
    text.push('\n');
    let mut listed: Vec<&Opt> = Vec::new();
    for option in groupings.iter().flat_map(|options| options.iter()) {
        if listed.contains(&option) {
            continue;
        }
        listed.push(option);
        let default = option.default.map_or(String::new(), |d| format!(" (default={d})"));
        let word = shown(option);
        let word = format!("{}{default}", word.trim_matches(['[', ']']));
        let _ = writeln!(text, "  {word:<40} {}", option.about);
        if let Pattern::Several(inner, others) = option.pattern {
            for option in inner {
                let _ = writeln!(text, "      {:<36} {}", shown(option), option.about);
            }
            if others {
                let _ = writeln!(text, "      {:<36} of the class", "[NAME=VALUE]");
            }
        }
    }
    text
}

/// The text of `print dist=`.
#[must_use]
pub fn print(drawn: &Drawn) -> String {
    let distribution = &drawn.distribution;
    let mut text = "% of samples    Range       % of total\n".to_owned();
    let all = distribution.quantile(1.0) as f64 / 100.0;
    for share in SHARES {
        let most = distribution.quantile(share);
        let part = most as f64 / all;
        let _ = writeln!(text, "{:<16.1}{most:<12}{part:12.1}", share * 100.0);
    }
    text
}
