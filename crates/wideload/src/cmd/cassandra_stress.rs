//! `wideload cassandra-stress`: command lines of cassandra-stress, as they are.

use crate::exit::Exit;
use crate::output;
use crate::signals::{self, Current};
use anyhow::Context as _;
use lab::stress::{self, Client, Done, Reachable};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use units::{Bytes, CpuSet, read_plain_text};
use workload::cassandra_stress::{Asked, Compat, LineError, Settings, help, parse, print};

/// Of a file for `--ddl`.
const DDL_SIZE_MAX: Bytes = Bytes(16 << 20);

const EXAMPLES: &str = "\
Examples:
  wideload cassandra-stress write n=1M -rate threads=64 -node 10.0.0.5
  wideload cassandra-stress read n=1M -rate threads=64 -node 10.0.0.5 -pop seq=1..1M
  wideload cassandra-stress 'mixed ratio(write=2,read=8) duration=5m -rate threads=400'
  wideload cassandra-stress user profile=posts.yaml 'ops(insert=1,timeline=4)' n=1M
  wideload cassandra-stress --tls --tls-ca ca.pem write n=1M -node db1
  wideload cassandra-stress help -rate
  ln -s $(command -v wideload) cassandra-stress         # called so, it is that tool

Flags of wideload come before the command. Exit status as the original's: 0 END, 1 FAILURE or a
line that means nothing; 2 what is not built here; 3 environment; 130 Ctrl-C";

/// Run a command line of cassandra-stress: the same statements on the same data, the same lines.
///
/// Tables are written to as the command says, with or without wideload's marker. A run directory
/// is written beside; what the lines leave out or say wrongly is a caveat there, and on stderr.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    client: ClientFlags,
    /// The command and its options
    // Whom TLS is spoken with stands in it.
    #[arg(
        id = "target",
        value_name = "COMMAND",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    line: Vec<String>,
}

/// What a line of cassandra-stress does not say.
#[derive(Debug, clap::Args)]
pub(crate) struct ClientFlags {
    /// The generation to follow where they differ: apache-3.11, apache-5 or scylla
    #[arg(long, value_name = "NAME", default_value = "apache-3.11")]
    compat: Compat,
    /// CQL that prepares keyspace and table beforehand; statements end with a semicolon
    #[arg(long, value_name = "FILE")]
    ddl: Option<PathBuf>,
    /// One worker thread is pinned to each of these [default: half of the cores, or one per core
    /// for hosts elsewhere]
    #[arg(long, value_name = "CPUS")]
    client_cpus: Option<CpuSet>,
    /// Of all random choices
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// The run directory: new or empty [default: runs/<utc>-cassandra-stress-<command>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    tls: super::tls::Flags,
}

pub(crate) fn main(args: &Args) -> Result<ExitCode, Exit> {
    let tls = args.client.tls()?;
    let settings = match asked(&args.line, args.client.compat, &tls) {
        Ok(Asked::Run(settings)) => settings,
        Ok(Asked::Help(topic)) => return tell_help(topic.as_deref()),
        Ok(Asked::Print(drawn)) => {
            output::print(&print(&drawn))?;
            return Ok(ExitCode::SUCCESS);
        }
        Ok(Asked::Version) => {
            output::print(concat!("Version: wideload ", env!("CARGO_PKG_VERSION"), "\n"))?;
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) => return refused(&error),
    };
    tell(&settings);
    let current = Current::default();
    let stop = signals::stop_flag(&current).map_err(Exit::environment)?;
    let client = args.client.client(&args.line, tls)?;
    let mut begun = |run_dir: &std::path::Path| current.set(run_dir.to_owned());
    let done = stress::run(&settings, &client, &mut io::stdout(), &mut begun, &stop)?;
    tell_done(&done);
    Ok(match (done.interrupted, done.success) {
        (true, _) => ExitCode::from(130),
        (_, true) => ExitCode::SUCCESS,
        (_, false) => ExitCode::from(1),
    })
}

/// Reads a line, which may also be one argument of the shell.
pub(crate) fn asked(
    line: &[String],
    compat: Compat,
    tls: &Option<drive::tls::Client>,
) -> Result<Asked, LineError> {
    parse(line, compat, &Reachable { tls: tls.clone() })
}

impl ClientFlags {
    /// Who carries the line out. `line` is shown without its passwords.
    pub(crate) fn client(
        &self,
        line: &[String],
        tls: Option<drive::tls::Client>,
    ) -> Result<Client, Exit> {
        let ddl = match &self.ddl {
            None => Vec::new(),
            Some(path) => {
                let shown = path.display();
                let text = read_plain_text(path, DDL_SIZE_MAX)
                    .with_context(|| format!("cannot read --ddl {shown}; is it there?"))
                    .map_err(Exit::usage)?;
                stress::statements(&text)
            }
        };
        let program = ["wideload".to_owned(), "cassandra-stress".to_owned()];
        Ok(Client {
            cpus: self.client_cpus.clone(),
            out: self.out.clone(),
            seed: self.seed,
            command_line: program.into_iter().chain(line.iter().map(|w| redacted(w))).collect(),
            ddl,
            tls,
            tls_words: self.tls.recorded(),
        })
    }

    /// Reads the files of TLS, if it is asked for.
    pub(crate) fn tls(&self) -> Result<Option<drive::tls::Client>, Exit> {
        self.tls.client()
    }

    /// The generation to follow.
    pub(crate) fn compat(&self) -> Compat {
        self.compat
    }
}

/// An argument with the passwords in it covered.
fn redacted(argument: &str) -> String {
    let mut text = String::new();
    for (index, word) in argument.split(' ').enumerate() {
        if index > 0 {
            text.push(' ');
        }
        match word.to_lowercase().find("password") {
            // The word may go on behind blanks around its sign.
            Some(at) => {
                text.push_str(word.get(..at).unwrap_or_default());
                text.push_str("password=***");
            }
            None => text.push_str(word),
        }
    }
    text
}

/// Says what has no effect. A closed stderr is no reason to stop.
fn tell(settings: &Settings) {
    for notice in &settings.notices {
        let _ = writeln!(io::stderr(), "notice: {}", output::tame(notice));
    }
}

/// What speaks against the numbers, and where they are.
fn tell_done(done: &Done) {
    let mut err = io::stderr();
    for caveat in &done.caveats {
        let _ = writeln!(err, "caveat: {}", output::tame(&caveat.text));
        for (head, more) in [("seen", &caveat.evidence), ("cure", &caveat.cure)] {
            if !more.is_empty() {
                let _ = writeln!(err, "  {head}: {}", output::tame(more));
            }
        }
    }
    for run_dir in &done.run_dirs {
        let _ = writeln!(err, "run: {}", run_dir.display());
    }
}

fn tell_help(topic: Option<&str>) -> Result<ExitCode, Exit> {
    match help(topic) {
        Some(text) => {
            output::print(&text)?;
            Ok(ExitCode::SUCCESS)
        }
        None => {
            output::print(&help(None).unwrap_or_default())?;
            output::print("Invalid command or option provided to command help\n")?;
            Ok(ExitCode::from(1))
        }
    }
}

/// The error on stdout, where the original has it, and the help of its group.
pub(crate) fn refused(error: &LineError) -> Result<ExitCode, Exit> {
    let text = output::tame(&error.to_string());
    if error.unbuilt {
        return Err(Exit::usage(anyhow::anyhow!(text)));
    }
    output::print(&format!("{text}\n"))?;
    if let Some(help) = error.group.as_deref().and_then(|group| help(Some(group))) {
        output::print(&help)?;
    }
    Ok(ExitCode::from(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_covered() {
        for (given, shown) in [
            ("user=a password=b", "user=a password=***"),
            ("PASSWORD=b", "password=***"),
            ("n=5", "n=5"),
            ("truststore-password=x", "truststore-password=***"),
        ] {
            assert_eq!(redacted(given), shown);
        }
    }
}
