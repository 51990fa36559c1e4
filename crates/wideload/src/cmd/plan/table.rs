//! Plans as text: a row for each instance, then the reasons.
//!
//! Input: plans. Output: text. Only the table may be wider than 80 columns, where cpus are many.

use crate::text::wrap;
use lab::Plan;
use machine::Machine;
use machine::layout::{Layout, Placement, Reason};
use std::fmt::Write as _;
use units::Bytes;

pub(super) fn text(machine: &Machine, plans: &[Plan]) -> String {
    let texts: Vec<String> = plans.iter().map(one).collect();
    format!("{}\n\n{}", brief(machine), texts.join("\n"))
}

/// The machine in a few words.
fn brief(machine: &Machine) -> String {
    let model = machine.settings.cpu_model.clone();
    let cpus = Some(format!("{} cpus", machine.online.len()));
    let numas = match machine.numa.len() {
        0 => None,
        1 => Some("1 NUMA node".to_owned()),
        count => Some(format!("{count} NUMA nodes")),
    };
    [model, cpus, numas].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn one(plan: &Plan) -> String {
    let layout = &plan.layout;
    let mut text = format!("{}\n", headline(layout));
    text.push_str(&table(layout));
    text.push_str("why\n");
    // Cautions first, each list in the order of the choices.
    let reasons = || layout.why.iter().chain(&plan.notes);
    let (cautions, others): (Vec<&Reason>, Vec<&Reason>) = reasons().partition(|r| r.caution);
    for reason in cautions.into_iter().chain(others) {
        let mark = if reason.caution { "  ! " } else { "    " };
        let line = format!("{}: {}", reason.about, reason.text);
        let _ = writeln!(text, "{}", wrap(&line, mark, "      "));
    }
    if !plan.files.is_empty() {
        text.push_str(&files(plan));
    }
    text
}

/// Where the files are, and what to do with them.
fn files(plan: &Plan) -> String {
    let root = plan.root.display();
    let count = plan.files.len();
    let first = format!("{}-1", plan.layout.database);
    format!(
        "files\n    {count} below {root}\n    \
         start.sh, environment, systemd/, and a directory for each instance like {first}/,\n    \
         where its data and logs go as well\n\
         next\n    {root}/start.sh\n        \
         starts all of them until Ctrl-C; needs {} on PATH\n    \
         systemctl link {root}/systemd/*.service\n        \
         then `systemctl start wideload-{first}` and so on; first look through\n        \
         {root}/environment\n",
        stage::emit::binder(&plan.layout)
    )
}

fn headline(layout: &Layout) -> String {
    let instances = layout.placements.len();
    let what = if instances == 1 { "instance" } else { "instances" };
    let numas = match layout.budget_numas.len() {
        0 => String::new(),
        1 => format!(" on NUMA node {}", layout.budget_numas),
        _ => format!(" on NUMA nodes {}", layout.budget_numas),
    };
    format!("{}: {instances} {what} of {}{numas}", layout.policy, layout.database)
}

/// A column: its title, and its cell of a placement.
type Column = (&'static str, fn(&Placement) -> String);

fn table(layout: &Layout) -> String {
    let columns: [Column; 9] = [
        ("#", |p| p.instance.to_string()),
        ("cpus", |p| p.cpus.to_string()),
        ("cores", |p| p.cores.to_string()),
        ("memory of", |p| p.memory_numas.to_string()),
        ("memory", |p| p.memory_bytes.map_or("unknown".into(), |b| Bytes(b).to_string())),
        ("heap", |p| p.heap_bytes.map_or(String::new(), |b| Bytes(b).to_string())),
        ("nic", |p| p.nic.clone().unwrap_or_default()),
        ("disk", |p| p.disk.clone().unwrap_or_default()),
        ("address", |p| {
            let port = p.ports.first().map(|port| format!(":{}", port.number));
            format!("{}{}", p.address, port.unwrap_or_default())
        }),
    ];
    let mut lines = vec![String::new(); layout.placements.len() + 1];
    for (title, cell) in columns {
        let cells: Vec<String> = layout.placements.iter().map(cell).collect();
        if cells.iter().all(String::is_empty) {
            continue;
        }
        let width = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
        let width = width.max(title.len());
        let all = std::iter::once(title.to_owned()).chain(cells);
        for (line, cell) in lines.iter_mut().zip(all) {
            let _ = write!(line, "  {cell:<width$}");
        }
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}
