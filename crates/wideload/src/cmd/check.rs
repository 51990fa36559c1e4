//! `wideload check`: what would falsify a result here, and the command that mends it.

mod table;

use crate::cmd::run::{CASSANDRA, check_host, credentials};
use crate::cmd::times;
use crate::exit::Exit;
use crate::output;
use analyze::check::{Source, Verdict};
use anyhow::anyhow;
use drive::Access;
use lab::{Asked, AskedTarget, Checked};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use units::{CpuSet, Nanos};

const EXAMPLES: &str = "\
Examples:
  wideload check                                   # this host
  wideload check --target 10.0.0.5,10.0.0.6:9042   # and a database that runs
  wideload check --target cassandra --strict       # and one that would be started here
  wideload check --root host-7.tar.gz --json       # a host that `wideload topo` recorded

It changes nothing. Exit status: 0 whatever it finds; with --strict 1 when a check fails.";

/// Look for what would falsify a result here, and say what mends it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A database that runs already: HOST[:PORT], several with commas; or the word cassandra, for
    /// one that would be started here [default: this host alone]
    #[arg(long, value_name = "HOST[:PORT],...|cassandra", value_delimiter = ',')]
    target: Vec<String>,
    /// The top of a recorded tree with sys and proc in it, or an archive of one
    #[arg(long, value_name = "DIR|FILE", default_value = "/", conflicts_with = "target")]
    root: PathBuf,
    /// Cpus of the client, like 0-3,8 [default: as `wideload run` takes them]
    #[arg(long, value_name = "CPUS")]
    client_cpus: Option<CpuSet>,
    /// Who to log in as, where the database asks; the password comes from --password-file or the
    /// environment variable WIDELOAD_PASSWORD
    #[arg(long, value_name = "NAME", requires = "target")]
    user: Option<String>,
    /// A file whose first line is the password of --user; for its owner's eyes only
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<PathBuf>,
    #[command(flatten)]
    tls: crate::cmd::tls::Flags,
    /// Bound of the connect and of each query
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = times::of_operation)]
    timeout: Nanos,
    /// Exit with status 1 when a check fails
    #[arg(long)]
    strict: bool,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    cassandra: crate::cmd::cassandra::Flags,
}

pub(crate) fn main(args: &Args) -> Result<ExitCode, Exit> {
    check(args).map_err(Exit::usage)?;
    let checked = lab::preflight(&asked(args)?)?;
    if args.json {
        let json = serde_json::to_string_pretty(&as_json(args, &checked));
        output::data(&format!("{}\n", json.map_err(Exit::environment)?))?;
    } else {
        let text = table::text(&brief(&args.root, &checked), &checked.findings, table::width());
        output::print(&text)?;
    }
    let failed = args.strict && checked.verdict() == Verdict::Fail;
    Ok(ExitCode::from(u8::from(failed)))
}

fn check(args: &Args) -> anyhow::Result<()> {
    let starts = args.target == [CASSANDRA];
    let given = args.cassandra.given();
    if !starts && !given.is_empty() {
        return Err(anyhow!("{} is of use with --target cassandra only", given.join(", ")));
    }
    if args.timeout < Nanos::from_millis(1) {
        return Err(anyhow!("--timeout {} is too short: give at least 1ms", args.timeout));
    }
    if args.tls.asked() && (starts || args.target.is_empty()) {
        return Err(anyhow!(
            "--tls is for a database that runs already: leave it out, or give --target HOST"
        ));
    }
    args.target.iter().try_for_each(|host| check_host(host))
}

fn asked(args: &Args) -> Result<Asked, Exit> {
    let starts = args.target == [CASSANDRA];
    let target = match (starts, args.target.is_empty()) {
        (true, _) => {
            let options = args.cassandra.options(1).map_err(Exit::usage)?;
            AskedTarget::Cassandra(Box::new(options))
        }
        (false, true) => AskedTarget::Nothing,
        (false, false) => AskedTarget::Running(args.target.clone()),
    };
    Ok(Asked {
        root: args.root.clone(),
        target,
        client_cpus: args.client_cpus.clone(),
        access: Access {
            credentials: credentials(args.user.as_ref(), args.password_file.as_deref())
                .map_err(Exit::usage)?,
            tls: args.tls.client()?,
        },
        timeout: args.timeout,
        data_dir: args.cassandra.data_dir.clone().unwrap_or_else(|| PathBuf::from("runs")),
    })
}

/// The host in a few words.
fn brief(root: &Path, checked: &Checked) -> String {
    let place = match root == Path::new("/") {
        true => "this host".to_owned(),
        false => root.display().to_string(),
    };
    let machine = &checked.facts.machine;
    let settings = &machine.settings;
    let cpus = format!("{} cpus", machine.online.len());
    let model = settings.cpu_model.clone();
    let kernel = settings.kernel_release.as_ref().map(|release| format!("Linux {release}"));
    let words: Vec<_> = [model, Some(cpus), kernel].into_iter().flatten().collect();
    format!("{place}: {}", words.join(", "))
}

/// Stable keys; held to `schema/check.schema.json` by a test.
fn as_json(args: &Args, checked: &Checked) -> Value {
    let machine = &checked.facts.machine;
    let count = |verdict: &Verdict| {
        checked.findings.iter().filter(|finding| finding.verdict == *verdict).count()
    };
    let counts: Map<_, _> =
        Verdict::ALL.iter().map(|v| (v.name().to_owned(), count(v).into())).collect();
    let sources: Map<_, _> = table::sources(&checked.findings)
        .into_iter()
        .map(|source: Source| (source.short().to_owned(), source.title().into()))
        .collect();
    json!({
        "schema": 1,
        "root": args.root.display().to_string(),
        "target": args.target,
        "host": {
            "cpu_model": machine.settings.cpu_model,
            "kernel": machine.settings.kernel_release,
            "cpus": machine.online.to_string(),
            "memory_bytes": machine.settings.memory_bytes,
        },
        "verdict": checked.verdict(),
        "counts": counts,
        "checks": checked.findings,
        "sources": sources,
    })
}
