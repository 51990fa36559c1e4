//! The planner on all recorded machines: whatever they are, a layout is sound or refused in words.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use machine::Machine;
use machine::layout::{Database, Devices, Layout, LayoutError, Request, Smt, plan};
use std::path::{Path, PathBuf};

/// Beside the project, where they are at hand.
fn recorded() -> Vec<PathBuf> {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let archives = |dir: &str| {
        let dir = std::fs::read_dir(shared.join(dir)).into_iter().flatten();
        dir.filter_map(|entry| Some(entry.ok()?.path()))
    };
    let is_archive = |path: &PathBuf| {
        let name = path.to_string_lossy();
        name.ends_with(".tar.bz2") || name.ends_with(".tgz")
    };
    let mut all: Vec<_> = archives("machines").chain(archives("rigs")).filter(is_archive).collect();
    all.sort();
    all
}

fn sound(machine: &Machine, layout: &Layout) {
    let all: usize = layout.placements.iter().map(|placement| placement.cpus.len()).sum();
    assert_eq!(layout.cpus().len(), all, "no cpu twice");
    assert!(layout.cpus().difference(&machine.allowed).is_empty());
    for placement in &layout.placements {
        assert!(!placement.cpus.is_empty());
        for numa in machine.numa.iter().filter(|n| placement.memory_numas.contains(n.id)) {
            assert_ne!(numa.memory_bytes, Some(0), "memory of {:?}", numa.id);
        }
        for other in layout.placements.iter().filter(|other| other.instance != placement.instance) {
            let siblings = placement.cpus.iter().filter_map(|cpu| machine.cpu(cpu));
            for cpu in siblings {
                assert!(cpu.siblings.intersection(&other.cpus).is_empty(), "core of {cpu:?}");
            }
        }
    }
}

#[test]
fn every_recorded_machine_gets_sound_layouts_or_a_refusal() {
    let archives = recorded();
    if archives.is_empty() {
        println!("SKIP: no recorded machines beside the project");
        return;
    }
    let mut planned = 0;
    for archive in archives {
        let machine = Machine::read(&archive).unwrap();
        for policy in ["single", "per-package", "per-numa", "per-llc", "2"] {
            for smt in [Smt::All, Smt::One] {
                let request = Request {
                    policy: policy.parse().unwrap(),
                    smt,
                    database: Database::Reference,
                    devices: Devices::of(&machine),
                    ..Request::default()
                };
                match plan(&machine, &request) {
                    Ok(layout) => {
                        sound(&machine, &layout);
                        planned += 1;
                    }
                    Err(LayoutError::NoLlc | LayoutError::Instances { .. }) => {}
                    Err(error) => panic!("{} {policy}: {error}", archive.display()),
                }
            }
        }
    }
    assert!(planned > 100, "{planned}");
}
