//! What is sent: the bytes of the frames that a seed gives are pinned.

#![allow(clippy::unwrap_used)]

use drive::{Encoder, TableName};
use std::sync::Arc;
use wire::cql::Consistency;
use workload::ycsb::{self, Properties};
use workload::{Phase, Sampler};

/// FNV-1a over the frames of the first operations of a phase, all their steps.
fn digest(workload: &str, properties: &[&str], phase: Phase) -> u64 {
    let files: [&str; 0] = [];
    let properties = Properties::load(&files, properties).unwrap();
    let plan = Arc::new(ycsb::plan(workload, &properties, Some(5000), None).unwrap().plan);
    let table = TableName { keyspace: "ycsb".into(), table: "usertable".into() };
    let ids = vec![b"0123456789abcdef".to_vec(); plan.statements.len()];
    let encoder = Encoder::new(plan.clone(), &table, &ids, Consistency::LocalOne);
    let mut sampler = Sampler::new(plan.clone(), phase, 42, 1, 2);
    let operations = if phase == Phase::Load { &plan.load } else { &plan.run };
    let mut frame = vec![0; encoder.frame_size_max()];
    let mut key = vec![0; plan.key_size_max()];
    let mut digest = 0xCBF2_9CE4_8422_2325u64;
    for stream in 0..2000 {
        let draw = sampler.draw().unwrap();
        for step in &operations[usize::from(draw.operation)].steps {
            let key_size = plan.write_key(draw.key, &mut key);
            let key = &key[..key_size];
            let size = encoder.encode(step.statement(&draw), &draw, key, stream, &mut frame);
            for byte in &frame[..size] {
                digest = (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
            }
        }
    }
    digest
}

/// The exact bytes of one seed: a change here breaks the comparability of recorded runs.
#[test]
fn the_frames_of_a_seed_are_pinned() {
    let all = ["fieldcount=5", "fieldlength=34", "writeallfields=true"];
    let verified = ["dataintegrity=true", "fieldlength=101"];
    let drawn = ["fieldlengthdistribution=uniform", "fieldlength=77", "writeallfields=true"];
    let ordered = ["insertorder=ordered", "zeropadding=12", "fieldlength=1"];
    let padded = ["zeropadding=90", "requestdistribution=uniform", "fieldlength=8"];
    let cases: [(&str, &[&str], Phase, u64); 9] = [
        ("a", &all, Phase::Run, 0xE2C4_B204_B4F4_875B),
        ("a", &all, Phase::Load, 0xC5BD_12AC_8352_6AE0),
        ("f", &verified, Phase::Run, 0x98CC_142D_6AD5_593C),
        ("a", &verified, Phase::Load, 0xCCBC_ACF4_9264_C7F0),
        ("a", &drawn, Phase::Run, 0xAF3A_5B63_2A65_3BA1),
        ("d", &ordered, Phase::Run, 0x6F4D_4A02_D21D_3003),
        ("a", &padded, Phase::Warm, 0xC093_ED4B_6604_65B8),
        ("e", &[], Phase::Run, 0xFE09_EA31_7C2C_27D0),
        ("b", &[], Phase::Run, 0x6E13_85C8_A43F_2A43),
    ];
    for (workload, properties, phase, pinned) in cases {
        let digest = digest(workload, properties, phase);
        assert_eq!(digest, pinned, "{workload} {properties:?} {phase:?}: {digest:#018x}");
    }
}
