//! Lines to settings and plans: the study's as printed, defaults, what is refused, stages, keys.

use super::*;
use crate::asbench::{Limits, Table};
use crate::{Phase, Sampler};
use proptest::prelude::*;
use std::sync::Arc;

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn no_file(_: &str) -> Result<String, String> {
    Err("there is none".to_owned())
}

fn settings(line: &str) -> Settings {
    match parse(&words(line), &no_file) {
        Ok(Asked::Run(settings)) => *settings,
        other => panic!("{line}: {other:?}"),
    }
}

fn refused(line: &str) -> String {
    parse(&words(line), &no_file).unwrap_err().to_string()
}

/// The lines of the study of device queues, as they are printed.
#[test]
fn the_lines_of_the_study_are_read_as_printed() {
    let init =
        settings("-h 192.168.40.11 -k 100000000 -o S:32 -w I -a -c 168 -W 28 --latency 10,2,us");
    let stage = &init.stages[0];
    assert_eq!(init.generation, Generation::Patched);
    assert_eq!(init.hosts, ["192.168.40.11:3000"]);
    assert_eq!((stage.workload.kind, stage.keys, stage.key_start), (Kind::Insert, 100_000_000, 0));
    assert_eq!((stage.asynchronous, init.commands, init.event_loops), (true, 168, 28));
    assert_eq!(stage.objects, [Value::Text(32)]);
    assert_eq!((stage.duration_s, stage.ops), (None, None));
    let shifted = Limits::Shifted { shift: 2, micros: true };
    let LatencyShown::Table(table) = init.latency else { panic!("{:?}", init.latency) };
    assert_eq!((table.columns, table.limits), (10, shifted));

    let replicated = settings(
        "-h 192.168.40.11:3000 -k 1000000000 -o S:32 -w I -a -c 168 -W 28 --latency 10,2,u -M \
         master",
    );
    assert!(replicated.master_commits && replicated.latency == init.latency);

    let before = settings(
        "-h 192.168.40.11:3000 -k 1000000 -o S:32 -w I -a -c 100 -W 10 -M master --maxRetries 10 \
         -T 10000",
    );
    assert_eq!((before.retries, before.timeout_ms, before.commands), (10, 10_000, 100));
    assert_eq!(before.latency, LatencyShown::Nothing);

    for columns in [16, 21] {
        let run = settings(&format!(
            "-h 192.168.40.11 -k 100000000 -o S:32 -w RU,100 -a -c 142 -W 12 --latency {columns},4"
        ));
        assert_eq!(run.generation, Generation::Patched);
        let linear = Limits::Linear { width_us: 40 };
        let table = Table { columns, limits: linear, decimals: 1, summary: false };
        assert_eq!(run.latency, LatencyShown::Table(table));
        assert_eq!((run.stages[0].workload.read, run.stages[0].duration_s), (100.0, None));
        assert!(run.notices.iter().any(|notice| notice.contains("inferred")), "{:?}", run.notices);
    }
}

#[test]
fn defaults_are_those_of_the_code() {
    let two = settings("-L");
    assert_eq!(two.generation, Generation::Two);
    let stage = &two.stages[0];
    assert_eq!((stage.key_start, stage.keys, stage.duration_s), (1, 1_000_000, Some(10)));
    assert_eq!((stage.workload.kind, stage.workload.read), (Kind::ReadUpdate, 50.0));
    assert_eq!((&two.namespace[..], &two.set[..], &two.bin[..]), ("test", "testset", "testbin"));
    assert_eq!((two.threads, two.commands, two.event_loops), (16, 50, 1));
    assert_eq!((two.timeout_ms, two.retries), (1000, 1));
    assert_eq!(two.percentiles, [50.0, 90.0, 99.0, 99.9, 99.99]);
    assert_eq!(two.latency, LatencyShown::Percentiles);
    assert_eq!(settings("-w I").stages[0].duration_s, None, "until all keys are written");
    let legacy = settings("-o I -b 3 -t 500");
    assert_eq!((legacy.stages[0].key_start, legacy.stages[0].ops), (0, Some(500)));
    assert_eq!(legacy.stages[0].objects.len(), 3);
    assert_eq!(settings("-w I,60 -k 1000").stages[0].inserted(), 600);
    assert_eq!(settings("-t 3 -w RU,80,50,100").stages[0].duration_s, Some(3));
    let java = settings("-async -asyncMaxCommands 7 -o S:5,I -b 3 -latency 7,1,us");
    assert_eq!((java.commands, java.stages[0].objects.len()), (7, 3));
    assert_eq!(settings("--compat legacy-usec -L 7,1").told_by, "--compat legacy-usec");
    assert_eq!(settings("-T 0 --socket-timeout 500").timeout_ms, 500);
}

#[test]
fn nothing_is_ignored() {
    for (line, told) in [
        ("-e 5", "-e is not built: leave it out"),
        ("-Upeter", "-U is not built"),
        ("--tls-enable", "--tls-enable is not built"),
        ("-w DB", "workload 'DB': is not built"),
        ("-w X", "workload 'X': means nothing"),
        ("-w RU,101", "workload 'RU,101': has a share"),
        ("--compat legacy -w RU,50,50", "workload 'RU,50,50': has more than a share of reads"),
        ("-k 0", "-k 0 is out of range"),
        ("-k ten", "-k ten is out of range"),
        ("-o S:0", "the object specification 'S:0' means nothing at character 2"),
        ("--read-timeout 5", "reads that time out after 5 ms and writes after 1000 ms"),
        ("-N all", "-N all is not built"),
        ("-N none", "-N none is not known"),
        ("-L 7", "'7' belongs to no option"),
        ("--compat legacy -L 17,1", "--latency 17,1: has a number of columns"),
        ("--compat legacy -L 7,6", "--latency 7,6: has a shift"),
        ("--compat legacy -L 7,1,us", "--latency 7,1,us: has a unit"),
        ("--compat 3", "--compat 3 is no generation"),
        ("-h :5", "':5' is no host"),
        ("-h a:cert:3000", "'a:cert:3000' is no host"),
        ("--percentiles 50,101", "'101' is no percentile"),
        ("--protocol http", "--protocol http is not known"),
        ("--workload-stages x.yml", "cannot read 'x.yml': there is none"),
        ("-b name_of_a_bin_too_long", "'name_of_a_bin_too_long' is no name of a bin"),
        ("--read-bins 2", "'2' is no list of bins"),
        ("-K 4611686018427387904", "keys 1000000 from 4611686018427387904 on"),
    ] {
        let error = refused(line);
        assert!(error.starts_with(told), "{line}: {error}");
    }
    for (line, told) in [
        ("-S", "-S has no effect"),
        ("-d", "-d has no effect"),
        ("-a -z 5", "-z has no effect on asynchronous stages"),
        ("-C sequence", "-C has no effect"),
        ("--max-retries 2 --maxRetries 3", "--maxRetries is written --max-retries today"),
        ("-a -W 5", "-W is the most workers"),
        ("--compat legacy -L 7,1", "Limits hold exactly"),
        ("--protocol cql -M master", "-M has no effect over CQL"),
        ("--protocol cql -w RR,50", "Over CQL a write of RR"),
        ("--create", "--create has no effect"),
        ("-w I -t 5", "-t has no effect on a stage that writes each key"),
    ] {
        let notices = settings(line).notices;
        assert!(notices.iter().any(|notice| notice.starts_with(told)), "{line}: {notices:?}");
    }
    assert_eq!(parse(&words("--help"), &no_file), Ok(Asked::Help));
    assert_eq!(parse(&words("-V"), &no_file), Ok(Asked::Version));
}

#[test]
fn stages_take_what_they_leave_out_from_the_line() {
    let text = "- stage: 1\n  desc: fill\n  workload: I\n  key-end: 101\n  async: true\n\
                - stage: 2\n  workload: RU,80\n  duration: 5\n  tps: 100\n  object-spec: I4,S5\n  \
                read-bins: 1,2\n  write-bins: 2\n  pause: 1\n  random: true\n";
    let read = |path: &str| match path {
        "stages.yml" => Ok(text.to_owned()),
        _ => Err("no".to_owned()),
    };
    let line = words("-o S32 -K 1 --workload-stages stages.yml");
    let Ok(Asked::Run(settings)) = parse(&line, &read) else { panic!("it is read") };
    let [fill, run] = &settings.stages[..] else { panic!("{:?}", settings.stages) };
    assert_eq!((fill.keys, fill.duration_s, fill.asynchronous), (100, None, true));
    assert_eq!(fill.objects, [Value::Text(32)]);
    assert_eq!((run.duration_s, run.ops_per_s, run.pause_s), (Some(5), 100, 1));
    assert_eq!((&run.read_bins[..], &run.write_bins[..]), (&[0, 1][..], &[1][..]));
    assert!(run.random && !run.asynchronous);
    for (text, told) in [
        ("- stage: 2\n", "stage 1: it is called stage 2"),
        ("- stage: 1\n  batch-size: 5\n", "stage 1: batches are not built"),
        ("- stage: 1\n  key-start: 5\n  key-end: 5\n", "stage 1: key-end 5"),
        ("- stage: 1\n  workload: DB\n", "stage 1: workload 'DB'"),
        ("- stage: 1\n  colour: red\n", "the stages cannot be read"),
        ("[]", "the stages cannot be read: there are 0 stages"),
        ("- stage: 1\n  write-bins: 2\n", "stage 1: '2' is no list of bins"),
    ] {
        let read = |_: &str| Ok(text.to_owned());
        let error = parse(&line, &read).unwrap_err().to_string();
        assert!(error.starts_with(told), "{error}");
    }
}

#[test]
fn each_key_is_written_once_and_random_keys_are_uniform() {
    let insert = settings("-w I -k 1000 -K 5 -o I4,S3");
    let plan = Arc::new(insert.plan(&insert.stages[0]));
    let mut keys: Vec<u64> = Vec::new();
    for worker in 0..3 {
        let mut sampler = Sampler::new(plan.clone(), Phase::Load, 1, worker, 3);
        keys.extend(std::iter::from_fn(|| sampler.draw()).map(|draw| draw.key));
    }
    keys.sort_unstable();
    assert_eq!(keys, (5..1005).collect::<Vec<_>>());
    assert_eq!(plan.schema.columns, ["testbin", "testbin_2"]);

    let random = settings("-w RU,80,50 -k 10 -K 5 -o I4,S3 -R");
    let plan = Arc::new(random.plan(&random.stages[0]));
    let names: Vec<_> = plan.run.iter().map(|op| (&op.name[..], op.weight)).collect();
    let expected = [("read", 0.4), ("read_first", 0.4), ("write", 0.2)];
    for ((name, weight), (named, share)) in names.iter().zip(expected) {
        assert!(*name == named && (weight - share).abs() < 1e-9, "{names:?}");
    }
    let mut sampler = Sampler::new(plan.clone(), Phase::Run, 1, 0, 1);
    let mut counts = [0u32; 10];
    let mut values = std::collections::HashSet::new();
    for draw in std::iter::from_fn(|| sampler.draw()).take(20_000) {
        counts[usize::try_from(draw.key - 5).unwrap()] += 1;
        let mut out = vec![0; plan.value_room()];
        let size = plan.write_value(&draw, &[], 0, &mut out);
        values.insert(out[..size].to_vec());
    }
    // Six standard deviations of 2000 of 20 000.
    assert!(counts.iter().all(|count| (1740..2260).contains(count)), "{counts:?}");
    assert!(values.len() > 19_000, "values are drawn anew: {}", values.len());
    let mut key = [0; 8];
    assert_eq!(plan.write_key(258, &mut key), 8);
    assert_eq!(key, [0, 0, 0, 0, 0, 0, 1, 2]);
}

#[test]
fn without_random_values_every_record_is_the_same() {
    let fixed = settings("-w RU,0 -k 10 -o I4,S9,[2*I1]");
    let plan = Arc::new(fixed.plan(&fixed.stages[0]));
    let mut sampler = Sampler::new(plan.clone(), Phase::Run, 1, 0, 1);
    let mut out = vec![0; plan.value_room()];
    for column in 0..3 {
        let mut value = |draw| plan.write_value(&draw, &[], column, &mut out);
        let sizes = [value(sampler.draw().unwrap()), value(sampler.draw().unwrap())];
        assert_eq!(sizes[0], sizes[1]);
    }
    let mut text = || {
        let draw = sampler.draw().unwrap();
        let size = plan.write_value(&draw, &[], 1, &mut out);
        out[..size].to_vec()
    };
    assert_eq!(text(), text());
}

proptest! {
    #[test]
    fn any_line_is_read_or_refused(line in "(-[a-zA-Z]{1,3} ?[0-9A-Z:,.]{0,6} ){0,6}") {
        let _ = parse(&words(&line), &no_file);
    }

    #[test]
    fn any_stages_are_read_or_refused(text in "(- )?[a-z: \\n0-9,\\[\\]-]{0,60}") {
        let read = |_: &str| Ok(text.clone());
        let _ = parse(&words("--workload-stages x"), &read);
    }
}
