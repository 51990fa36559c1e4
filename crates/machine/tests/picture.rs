//! Trees and pictures of machines: what must be on them, on small and on large ones.

#![allow(clippy::unwrap_used, clippy::panic)]

use machine::{Machine, picture};
use proptest::prelude::*;

fn tree(description: &str) -> String {
    picture::tree(&Machine::synthetic(description).unwrap())
}

#[test]
fn a_small_machine_has_a_line_a_core() {
    let text = tree("package:1 numa:1(memory=24GiB) llc:1(size=32MiB) core:2 cpu:2");
    let expected = "\
24 GiB
1 package, 1 NUMA node, 1 L3, 2 cores, 4 cpus

package 0 · numa 0 24 GiB · L3 32 MiB
├─ core  cpus 0,2
└─ core  cpus 1,3

memory        1 NUMA node a package
";
    assert_eq!(text, expected);
}

#[test]
fn equal_parts_of_a_large_machine_are_drawn_together() {
    let text = tree("package:2 numa:4(memory=64GiB) llc:4(size=32MiB) core:4 cpu:2");
    let head = "\
512 GiB
2 packages, 8 NUMA nodes, 32 L3, 128 cores, 256 cpus

package 0  cpus 0-63,128-191
├─ numa 0 64 GiB  cpus 0-15,128-143
│  └─ 4 x L3 32 MiB  cpus 0-3,128-131 | 4-7,132-135 | 8-11,136-139 | 12-15,140-143
│     └─ 4 x core  2 cpus each
├─ numa 1 64 GiB  cpus 16-31,144-159
";
    assert!(text.starts_with(head), "{text}");
    let distances = "10 within a NUMA node, 16 within a package, 32 between packages";
    assert!(text.contains(distances), "{text}");
    assert!(text.contains("4 NUMA nodes a package (NPS4, SNC4)"), "{text}");
    for (description, line) in [
        ("package:64 numa:2 core:32", "64 x package 0-63"),
        ("package:2 numa:32(memory=1GiB) llc:1 core:2", "└─ 32 x numa 0-31 1 GiB · L3"),
        ("numa:1 package:2 core:32 cpu:2", "numa 0 32 GiB"),
        ("package:1 core:1024 cpu:2", "└─ 1024 x core  2 cpus each"),
    ] {
        let text = tree(description);
        assert!(text.lines().any(|found| found.starts_with(line)), "{description}: {text}");
        assert!(text.lines().count() < 60, "{description}: {text}");
    }
}

#[test]
fn a_picture_has_every_core_and_every_part_once() {
    let description = "package:2 die:2 numa:1(memory=64GiB) llc:2(size=8MiB) core:4 cpu:2";
    let machine = Machine::synthetic(description).unwrap();
    let svg = picture::svg(&machine);
    for (class, count) in [("package", 2), ("die", 4), ("numa", 4), ("llc", 8), ("core", 32)] {
        let found = svg.matches(&format!("<rect class=\"{class}\"")).count();
        assert_eq!(found, count, "{class}");
    }
    for cpu in machine.online.iter() {
        assert_eq!(svg.matches(&format!(">{}</text>", cpu.0)).count(), 1, "cpu {}", cpu.0);
    }
    assert!(svg.contains(">numa 3  64 GiB</text>"), "{svg}");
    assert_eq!(svg.matches("<g>").count(), svg.matches("</g>").count());
}

#[test]
fn boxes_lie_in_the_box_around_them() {
    for description in [
        "package:2 die:4 numa:1 llc:2 core:4 cpu:2",
        "package:1 core:7 cpu:4",
        "package:3 numa:5 core:13",
    ] {
        let svg = picture::svg(&Machine::synthetic(description).unwrap());
        let mut around: Vec<[f64; 4]> = Vec::new();
        for line in svg.lines() {
            if line.starts_with("</g>") {
                around.pop();
            }
            let Some(rect) = line.strip_prefix("<g>") else { continue };
            let number = |key: &str| -> f64 {
                let text = rect.split(&format!(" {key}=\"")).nth(1).unwrap();
                text.split('"').next().unwrap().parse().unwrap()
            };
            let (x, y) = (number("x"), number("y"));
            let own = [x, y, x + number("width"), y + number("height")];
            if let Some(outer) = around.last() {
                let inside = own[0] > outer[0] && own[1] > outer[1];
                let inside = inside && own[2] < outer[2] && own[3] < outer[3];
                assert!(inside, "{description}: {own:?} in {outer:?}");
            }
            around.push(own);
        }
        assert!(around.is_empty(), "{description}");
    }
}

#[test]
fn names_do_not_break_out_of_a_picture() {
    let mut machine = Machine::synthetic("core:1").unwrap();
    machine.settings.cpu_model = Some("<script>&\"\u{1b}".into());
    let svg = picture::svg(&machine);
    assert!(svg.contains("&lt;script&gt;&amp;&quot; "), "{svg}");
    assert!(!svg.contains("<script>") && !svg.contains('\u{1b}'));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn every_machine_can_be_drawn(
        package in 1usize..5, numa in 1usize..5, llc in 1usize..4, core in 1usize..9,
        cpu in 1usize..5, outside in any::<bool>(),
    ) {
        let parts = match outside {
            true => format!("numa:{numa} package:{package} llc:{llc} core:{core} cpu:{cpu}"),
            false => format!("package:{package} llc:{llc} numa:{numa} core:{core} cpu:{cpu}"),
        };
        let machine = Machine::synthetic(&parts).unwrap();
        let text = picture::tree(&machine);
        prop_assert!(text.lines().count() < 80, "{}", text);
        let svg = picture::svg(&machine);
        prop_assert_eq!(svg.matches("<rect class=\"core\"").count(), machine.cores().len());
    }
}
