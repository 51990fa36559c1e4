//! `wideload asbench`: command lines of asbench and of the tools before it, as they are.

use crate::exit::Exit;
use crate::output;
use crate::signals::{self, Current};
use anyhow::anyhow;
use lab::Dialect;
use lab::asbench::{self, Client, Done};
use record::Verdict;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use units::{Bytes, CpuSet, read_plain_text};
use workload::asbench::{Asked, Settings, parse};

/// Of a file of stages.
const STAGES_SIZE_MAX: Bytes = Bytes(1 << 20);

const HELP: &str = "\
Carry out a command line of asbench, or of the benchmarks of Aerospike's C and Java clients before
it. Which one it is for, its spelling tells; what it asks for and is not built is refused.

Usage: wideload asbench [OPTIONS OF ASBENCH]

Where and what:
  -h, --hosts HOST[:PORT],...   servers to begin with [127.0.0.1], -p PORT [3000]
  -n, --namespace NAME [test]   -s, --set NAME [testset]   -b, --bin NAME [testbin]
  -k, --keys N [1000000]        -K, --start-key N [1; before asbench 0]
  -o, --object-spec SPEC [I4]   I4,S32,B100,D,b,[3*I2],{S4:I2}; before asbench I, S:32, B:100, D
  -w, --workload W [RU,50]      I, RU,READ%[,ALL-BINS%[,ALL-BINS%]], RR,...
  -R, --random                  each write has values of its own
  --read-bins, --write-bins LIST        --workload-stages FILE
How hard, how long:
  -z, --threads N [16]          -a, --async   -c, --async-max-commands N [50]   -W, --event-loops N
  -g, --throughput N            a schedule of so many operations a second
  -t, --duration S [10]         before asbench: operations, and without it no end
  -T, --timeout MS [1000]       --socket-timeout MS   --max-retries N [1]
  -M, --commit-level master     writes are acknowledged by the master alone
What is shown:
  -L, --latency                 percentiles each second; before asbench COLUMNS,SHIFT: a table
  --percentiles LIST            --output-file FILE   --output-period S   --hdr-hist DIR
Of wideload:
  --compat legacy|legacy-usec|java|2|patched    whose line it is, where the spelling is not enough
  --protocol cql                over CQL: keyspace, table and columns; --create makes them
  --client-cpus CPUS   --seed N   --out DIR

Examples:
  wideload asbench -h 10.0.0.5:3000 -k 1000000 -o S:32 -w I -a -c 100 -M master
  wideload asbench -h 10.0.0.5:3000 -k 1000000 -o S:32 -w RU,100 -a -c 142 -W 12 --latency 21,4
  ln -s $(command -v wideload) asbench         # called so, it is that tool

Exit status:
  0 done; 1 ended early or more than 1 % errors; 2 usage; 3 environment; 130 Ctrl-C
";

/// Run a command line of asbench, of any generation: the same operations, the same lines.
///
/// `wideload asbench --help` lists its options.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// Options of asbench
    #[arg(value_name = "LINE", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

pub(crate) fn main(args: &Args) -> Result<ExitCode, Exit> {
    let settings = match asked(&args.words)? {
        Asked::Run(settings) => settings,
        Asked::Help => {
            output::print(HELP)?;
            return Ok(ExitCode::SUCCESS);
        }
        Asked::Version => {
            output::print(concat!("Version wideload ", env!("CARGO_PKG_VERSION"), "\n"))?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    let client = client(&settings, &args.words)?;
    output::tell(&format!("generation {} ({})", settings.generation, settings.told_by));
    settings.notices.iter().for_each(|notice| output::tell(&format!("notice: {notice}")));
    let current = Current::default();
    let stop = signals::stop_flag(&current).map_err(Exit::environment)?;
    let mut begun = |run_dir: &Path| current.set(run_dir.to_owned());
    let done = asbench::run(&settings, &client, &mut io::stdout(), &mut begun, &stop);
    // What is wrong with the line itself is said in its own words already.
    let done = done.map_err(|error| Exit::from(error).in_words_of(Dialect::Asbench))?;
    tell_done(&done);
    Ok(match done.verdict {
        Verdict::Ok => ExitCode::SUCCESS,
        Verdict::Interrupted => ExitCode::from(130),
        Verdict::Failed | Verdict::Running => ExitCode::from(1),
    })
}

/// What a line would do, stage by stage.
pub(super) fn explain(words: &[String]) -> Result<String, Exit> {
    match asked(words)? {
        Asked::Run(settings) => {
            let client = client(&settings, words)?;
            Ok(asbench::explain(&settings, &client)?)
        }
        Asked::Help | Asked::Version => Err(Exit::usage(anyhow!("help and version drive nothing"))),
    }
}

fn asked(words: &[String]) -> Result<Asked, Exit> {
    let read = |path: &str| {
        let text = read_plain_text(Path::new(path), STAGES_SIZE_MAX);
        text.map_err(|error| error.to_string())
    };
    parse(words, &read).map_err(Exit::usage)
}

/// Who carries a line out.
fn client(settings: &Settings, words: &[String]) -> Result<Client, Exit> {
    let own = &settings.own;
    let cpus = own.client_cpus.as_ref().map(|cpus| cpus.parse::<CpuSet>()).transpose();
    let cpus = cpus.map_err(|error| Exit::usage(anyhow!("--client-cpus: {error}")))?;
    let program = ["wideload".to_owned(), "asbench".to_owned()];
    Ok(Client {
        cpus,
        out: own.out.as_ref().map(Into::into),
        seed: own.seed.unwrap_or(1),
        command_line: program.into_iter().chain(words.iter().cloned()).collect(),
    })
}

/// What speaks against the numbers, and where they are.
fn tell_done(done: &Done) {
    if let Some(why) = &done.failure {
        output::tell(&format!("{}: {why}", done.verdict.name()));
    }
    for caveat in &done.caveats {
        output::tell(&format!("caveat {}: {}", caveat.code, caveat.text));
        for (head, more) in [("seen", &caveat.evidence), ("cure", &caveat.cure)] {
            if !more.is_empty() {
                output::tell(&format!("  {head}: {more}"));
            }
        }
    }
    for run_dir in &done.run_dirs {
        output::tell(&format!("run: {}", run_dir.display()));
    }
}
