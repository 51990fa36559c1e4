//! The front end's own tests: defaults, overrides, refusals.

use super::*;
use crate::{Action, Content, Distribution, KeyOrder, Lengths, Operation, Statement};
use proptest::prelude::*;

fn properties(pairs: &[&str]) -> Properties {
    Properties::load::<&str, _>(&[], pairs).unwrap()
}

fn compiled(name: &str, pairs: &[&str]) -> YcsbPlan {
    plan(name, &properties(pairs), None, None).unwrap()
}

#[track_caller]
fn refused(pairs: &[&str]) -> String {
    let text = plan("a", &properties(pairs), None, None).unwrap_err().to_string();
    assert!(!text.contains('\n') && text.len() < 400, "{text}");
    text
}

fn mix(plan: &YcsbPlan) -> Vec<(&str, f64)> {
    plan.plan.run.iter().map(|operation| (&operation.name[..], operation.weight)).collect()
}

fn statements<'a>(plan: &'a YcsbPlan, operation: &Operation, step: usize) -> &'a [Statement] {
    let step = &operation.steps[step];
    &plan.plan.statements[step.first_statement..step.first_statement + step.choices]
}

#[test]
fn the_six_workloads_are_those_of_the_files() {
    type Case = (&'static str, &'static [(&'static str, f64)], Distribution);
    let cases: [Case; 6] = [
        ("a", &[("read", 0.5), ("update", 0.5)], Distribution::Zipfian),
        ("b", &[("read", 0.95), ("update", 0.05)], Distribution::Zipfian),
        ("c", &[("read", 1.0)], Distribution::Zipfian),
        ("d", &[("read", 0.95), ("insert", 0.05)], Distribution::Latest),
        ("e", &[("insert", 0.05), ("scan", 0.95)], Distribution::Zipfian),
        ("f", &[("read", 0.5), ("read-modify-write", 0.5)], Distribution::Zipfian),
    ];
    for (name, wanted, distribution) in cases {
        let plan = compiled(name, &[]);
        assert_eq!(mix(&plan), wanted, "{name}");
        assert_eq!(plan.plan.workload, format!("ycsb:{name}"));
        assert_eq!(plan.plan.keys.distribution, distribution);
        assert_eq!((plan.plan.keys.start, plan.plan.keys.loaded), (0, 100_000));
        assert_eq!(plan.plan.keys.first_new_key(), 100_000);
        assert_eq!(plan.plan.keys.order, KeyOrder::Hashed);
        let schema = &plan.plan.schema;
        assert_eq!((schema.table.as_str(), schema.key_column.as_str()), ("usertable", "y_id"));
        assert_eq!(schema.columns.len(), 10);
        assert_eq!((schema.columns[0].as_str(), schema.columns[9].as_str()), ("field0", "field9"));
        assert_eq!(plan.plan.value_size_max(), 100);
        assert_eq!(plan.plan.scan_lengths.max(), if name == "e" { 100 } else { 1000 });
        assert!(plan.plan.load.len() == 1 && plan.plan.load[0].name == "insert");
        assert_eq!(
            plan.settings,
            Settings {
                records: 100_000,
                insert_start: 0,
                insert_count: 100_000,
                operations: None,
                threads: None,
                rate_ops_s: None,
                duration_s: None,
                table: None,
                insertion_retry_limit: 0,
                insertion_retry_interval_s: 3,
                upserts: None,
            }
        );
    }
    let error = plan("g", &Properties::new(), None, None).unwrap_err().to_string();
    assert!(error.contains("'g'") && error.contains("a, b, c, d, e, f"), "{error}");
}

#[test]
fn statements_follow_the_field_properties() {
    let plan = compiled("f", &["fieldcount=3"]);
    let all = vec![0, 1, 2];
    let read = &statements(&plan, &plan.plan.run[0], 0)[0];
    assert_eq!((read.action, &read.columns, read.by_name), (Action::Read, &all, false));
    let update = statements(&plan, &plan.plan.run[1], 1);
    assert_eq!(update.len(), 3);
    assert!(update.iter().enumerate().all(|(i, s)| s.columns == [i] && s.by_name));
    let insert = &statements(&plan, &plan.plan.load[0], 0)[0];
    assert_eq!((insert.action, &insert.columns), (Action::Insert, &all));
    // The plain read and the one of the read-modify-write are one statement.
    assert_eq!(plan.plan.statements.len(), 1 + 1 + 3);

    let plan = compiled("f", &["fieldcount=3", "writeallfields=true", "readallfields=false"]);
    assert_eq!(statements(&plan, &plan.plan.run[0], 0).len(), 3);
    assert_eq!(statements(&plan, &plan.plan.run[1], 1)[0].columns, all);

    for pairs in [["readallfieldsbyname=true"], ["dataintegrity=true"]] {
        let plan = compiled("f", &pairs);
        assert!(statements(&plan, &plan.plan.run[0], 0)[0].by_name);
        // The original passes no names in a read-modify-write.
        assert!(!statements(&plan, &plan.plan.run[1], 0)[0].by_name);
    }
    let plan = compiled("e", &["readallfields=false", "fieldcount=2"]);
    assert_eq!(statements(&plan, &plan.plan.run[1], 0)[1].columns, [1]);
    assert_eq!(statements(&plan, &plan.plan.run[1], 0)[1].action, Action::Scan);
}

#[test]
fn anything_can_be_overridden() {
    let plan = compiled(
        "a",
        &[
            "readproportion=0",
            "updateproportion=1",
            "writeallfields=true",
            "fieldcount=5",
            "fieldlength=34",
            "fieldnameprefix=C",
            "recordcount=1000",
            "insertstart=200",
            "insertcount=300",
            "insertorder=ordered",
            "zeropadding=12",
            "requestdistribution=hotspot",
            "hotspotdatafraction=0.5",
            "table=t",
            "operationcount=77",
            "threadcount=9",
            "target=1000",
            "maxexecutiontime=60",
            "core_workload_insertion_retry_limit=5",
            "core_workload_insertion_retry_interval=2",
            "workload=site.ycsb.workloads.CoreWorkload",
            "core_workload_insertion_keep_going_on_error=false",
        ],
    );
    assert_eq!(mix(&plan), [("update", 1.0)]);
    assert_eq!(plan.plan.schema.columns, ["C0", "C1", "C2", "C3", "C4"]);
    assert_eq!(plan.plan.value_size_max(), 34);
    let keys = &plan.plan.keys;
    assert_eq!((keys.start, keys.loaded, keys.records), (200, 300, 1000));
    assert_eq!((&keys.order, keys.zero_padding), (&KeyOrder::Ordered, 12));
    assert_eq!(keys.distribution, Distribution::Hotspot { hot_keys: 150, operation_fraction: 0.8 });
    assert_eq!(
        plan.settings,
        Settings {
            records: 1000,
            insert_start: 200,
            insert_count: 300,
            operations: Some(77),
            threads: Some(9),
            rate_ops_s: Some(1000),
            duration_s: Some(60),
            table: Some("t".to_owned()),
            insertion_retry_limit: 5,
            insertion_retry_interval_s: 2,
            upserts: None,
        }
    );
    assert_eq!(plan.plan.schema.table, "t");
    // Proportions are weights: they need not sum to 1.
    let plan = compiled("a", &["readproportion=3", "updateproportion=1", "scanproportion=4"]);
    assert_eq!(mix(&plan), [("read", 0.375), ("update", 0.125), ("scan", 0.5)]);
    // Zero means no limit in YCSB.
    let none = compiled("a", &["operationcount=0", "target=0", "maxexecutiontime=0"]).settings;
    assert_eq!((none.operations, none.rate_ops_s, none.duration_s), (None, None, None));
}

#[test]
fn flags_win_over_properties() {
    let given = properties(&["recordcount=1000", "operationcount=1000"]);
    let plan = plan("e", &given, Some(5000), Some(2000)).unwrap();
    assert_eq!(plan.settings.records, 5000);
    // 2000 operations x 0.05 x 2.
    assert_eq!(plan.plan.keys.expected_new, 200);
    assert_eq!(compiled("e", &["operationcount=1000"]).plan.keys.expected_new, 100);
    assert_eq!(compiled("e", &["recordcount=500"]).plan.keys.expected_new, 50);
    assert_eq!(compiled("d", &[]).plan.keys.expected_new, 0);
}

#[test]
fn unknown_names_get_the_nearest_and_others_the_cure() {
    for (name, wanted) in [
        ("recordcuont", "did you mean 'recordcount'?"),
        ("readProportion", "did you mean 'readproportion'?"),
        ("fieldlenght", "did you mean 'fieldlength'?"),
        ("exponential.fraction", "did you mean 'exponential.frac'?"),
        ("quite-another-thing", "see YCSB's core properties"),
    ] {
        let text = refused(&[&format!("{name}=1")]);
        assert!(text.contains(name) && text.contains(wanted), "{text}");
    }
    for (name, wanted) in [
        ("measurementtype", "histograms"),
        ("hdrhistogram.percentiles", "histograms"),
        ("status.interval", "--interval"),
        ("exportfile", "--out"),
        ("hosts", "--target"),
        ("cassandra.readconsistencylevel", "--consistency"),
        ("dotransactions", "--skip-load"),
    ] {
        let text = refused(&[&format!("{name}=1")]);
        assert!(text.contains(name) && text.contains(wanted), "{text}");
    }
    let text = refused(&[&format!("{}=1", "x\n".repeat(1000))]);
    assert!(text.len() < 300, "{text}");
}

#[test]
fn values_out_of_range_are_refused_with_name_value_and_limit() {
    for (pair, limit) in [
        ("recordcount=0", "from 1 to"),
        ("recordcount=-1", "from 1 to"),
        ("recordcount=10M", "whole number"),
        ("operationcount=-5", "from 0 to"),
        ("operationcount=1e6", "whole number"),
        ("threadcount=0", "from 1 to"),
        ("target=-1", "from 0 to"),
        ("maxexecutiontime=1.5", "whole number"),
        ("insertstart=-1", "from 0 to"),
        ("insertcount=0", "from 1 to"),
        ("readproportion=-0.1", "from 0 to"),
        ("readproportion=NaN", "from 0 to"),
        ("updateproportion=inf", "from 0 to"),
        ("scanproportion=x", "number"),
        ("fieldcount=0", "from 1 to 1000"),
        ("fieldcount=1001", "from 1 to 1000"),
        ("fieldlength=1048577", "to 1048576"),
        ("minfieldlength=-1", "from 0 to"),
        ("fieldlengthdistribution=normal", "constant, uniform, zipfian, histogram"),
        ("zeropadding=101", "from 0 to 100"),
        ("minscanlength=0", "from 1 to"),
        ("maxscanlength=4294967296", "to 2147483647"),
        ("scanlengthdistribution=latest", "uniform, zipfian"),
        ("insertorder=random", "hashed, ordered"),
        ("requestdistribution=zipf", "uniform, zipfian, latest, hotspot"),
        ("readallfields=yes", "true or false"),
        ("hotspotdatafraction=1.01", "from 0 to 1"),
        ("hotspotopnfraction=-0.01", "from 0 to 1"),
        ("exponential.percentile=100", "below 100"),
        ("exponential.frac=0", "above 0"),
        ("table=a b", "letter"),
        ("fieldnameprefix=1x", "letter"),
        ("fieldnameprefix=", "letter"),
        ("workload=site.ycsb.workloads.TimeSeriesWorkload", "CoreWorkload"),
        ("core_workload_insertion_retry_limit=-1", "from 0 to"),
        ("core_workload_insertion_keep_going_on_error=true", "retry_limit"),
    ] {
        let text = refused(&[pair]);
        let (name, value) = pair.split_once('=').unwrap();
        assert!(
            text.contains(name) && text.contains(&format!("'{value}'")) && text.contains(limit),
            "{pair}: {text}"
        );
    }
    let error = plan("a", &Properties::new(), Some(0), None).unwrap_err().to_string();
    assert!(error.contains("recordcount='0'"), "{error}");
}

#[test]
fn conflicts_are_refused() {
    let cases: [(&[&str], &[&str]); 9] = [
        (&["readproportion=0", "updateproportion=0"], &["readproportion", "zero"]),
        (&["minscanlength=9", "maxscanlength=8"], &["minscanlength=9", "maxscanlength=8"]),
        (
            &["fieldlengthdistribution=uniform", "minfieldlength=9", "fieldlength=8"],
            &["minfieldlength=9", "fieldlength=8"],
        ),
        (
            &["dataintegrity=true", "fieldlengthdistribution=zipfian"],
            &["dataintegrity", "fieldlengthdistribution", "zipfian"],
        ),
        (&["insertstart=100000"], &["insertstart=100000", "at least 100001"]),
        (&["insertstart=5", "insertcount=100000"], &["insertcount=100000", "100005"]),
        (
            &["requestdistribution=hotspot", "recordcount=4"],
            &["hotspotdatafraction=0.2", "no hot key"],
        ),
        (
            &["requestdistribution=hotspot", "hotspotdatafraction=1"],
            &["hotspotdatafraction=1", "no cold key"],
        ),
        (&["requestdistribution=latest", "recordcount=3"], &["latest", "at least 4"]),
    ];
    for (pairs, wanted) in cases {
        let text = refused(pairs);
        assert!(wanted.iter().all(|part| text.contains(part)), "{pairs:?}: {text}");
    }
    let given = properties(&["recordcount=1000", "operationcount=10000000"]);
    let text = plan("e", &given, None, None).unwrap_err().to_string();
    assert!(text.contains("1000000 new keys") && text.contains("at least 10000 "), "{text}");
    // The bound of the other side: exactly 100 new keys per loaded one.
    let given = properties(&["recordcount=10000", "operationcount=10000000"]);
    assert_eq!(plan("e", &given, None, None).unwrap().plan.keys.expected_new, 1_000_000);
}

#[test]
fn proportions_that_are_no_shares_of_one_are_told() {
    let notices = |pairs: &[&str]| compiled("a", pairs).notices;
    for shares in [&[][..], &["readproportion=0.9", "updateproportion=0.1"]] {
        assert!(notices(shares).is_empty(), "{shares:?}");
    }
    let told = notices(&["readproportion=3", "updateproportion=1"]);
    assert!(told.len() == 1 && told[0].contains("sum to 4 and not to 1"), "{told:?}");
    let plan = compiled("a", &["readproportion=3", "updateproportion=1"]).plan;
    assert_eq!(plan.run.iter().map(|o| o.weight).collect::<Vec<_>>(), [0.75, 0.25]);
}

#[test]
fn field_lengths_come_from_a_histogram_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hist.txt");
    let pair = format!("fieldlengthhistogram={}", path.display());
    let pairs = ["fieldlengthdistribution=histogram", &pair];
    assert!(refused(&pairs).contains("hist.txt"));
    std::fs::write(&path, "BlockSize\t10\n0\t1\n1\tx\n").unwrap();
    let text = refused(&pairs);
    assert!(text.contains("hist.txt") && text.contains("line 3"), "{text}");
    std::fs::write(&path, vec![b' '; (1 << 20) + 1]).unwrap();
    assert!(refused(&pairs).contains("1.0 MiB"));
    // Neither is opened: the one has no end, the other would wait for ever.
    for special in [directory.path(), std::path::Path::new("/dev/zero")] {
        let pair = format!("fieldlengthhistogram={}", special.display());
        let text = refused(&["fieldlengthdistribution=histogram", &pair]);
        assert!(text.contains("no regular file"), "{text}");
    }
    std::fs::write(&path, "BlockSize\t10\n0\t1\n1\t3\n2\t1\n").unwrap();
    let plan = compiled("a", &pairs).plan;
    assert!(matches!(plan.values.content, Content::Random(Lengths::Histogram { .. })));
    assert_eq!(plan.value_size_max(), 20);
}

proptest! {
    #[test]
    fn any_properties_give_a_plan_or_one_sentence(
        pairs in prop::collection::vec(
            (
                prop::sample::select(vec![
                    "recordcount", "insertstart", "insertcount", "operationcount", "fieldcount",
                    "fieldlength", "minfieldlength", "requestdistribution", "insertproportion",
                    "hotspotdatafraction", "exponential.frac", "maxscanlength", "zeropadding",
                    "fieldlengthdistribution", "dataintegrity", "insertorder", "readproportion",
                ]),
                prop_oneof![
                    "-?[0-9]{1,20}",
                    "[01]\\.[0-9]{1,3}",
                    prop::sample::select(vec![
                        "uniform", "zipfian", "latest", "hotspot", "exponential", "sequential",
                        "true", "ordered", "NaN", "1e400", "",
                    ]).prop_map(str::to_owned),
                ],
            ),
            0..6,
        ),
        workload in "[a-f]",
        seed: u64,
    ) {
        let pairs: Vec<String> =
            pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        let given = Properties::load::<&str, _>(&[], &pairs).unwrap();
        match plan(&workload, &given, None, None) {
            Err(error) => prop_assert!(!error.to_string().contains('\n')),
            Ok(YcsbPlan { plan, settings, .. }) => {
                // Every plan that is accepted can be drawn from, and its draws can be written.
                let plan = std::sync::Arc::new(plan);
                let mut sampler =
                    crate::Sampler::new(plan.clone(), crate::Phase::Run, seed, 1, 3);
                let mut key = vec![0; plan.key_size_max()];
                for _ in 0..50 {
                    let draw = sampler.draw().unwrap();
                    let operation = &plan.run[usize::from(draw.operation)];
                    if operation.name == "insert" {
                        prop_assert!(draw.key >= settings.records);
                    } else {
                        prop_assert!(draw.key < settings.records);
                    }
                    prop_assert!(plan.write_key(draw.key, &mut key) <= key.len());
                    for step in &operation.steps {
                        let statement = &plan.statements[step.statement(&draw)];
                        let action = format!("{:?}", statement.action).to_lowercase();
                        prop_assert_eq!(action, step.name);
                    }
                }
            }
        }
    }
}

#[test]
fn a_row_that_fits_no_frame_is_refused() {
    let text = refused(&["fieldcount=20", "fieldlength=1048576"]);
    for word in ["fieldcount=20", "1048576", "20971520", "15 MiB"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    compiled("a", &["fieldcount=15", "fieldlength=1048576"]);
}
