//! The effort controller in simulated connections: against every fixed level
//! and against the rules that others have used.

mod data;
mod grid;
mod random;
mod rules;
mod world;

use data::{fixed_choices, WireKind};
use rules::{Auto, CpuShare, Fixed, OpenVpn, ZstdAdapt};
use world::{run, Scenario};

struct Compared {
    best: f64,
    best_name: String,
    fixed: Vec<f64>,
    auto: f64,
    others: [f64; 3],
    changes: f64,
    why: String,
}

fn compare(s: &Scenario) -> Compared {
    let fixed: Vec<f64> = fixed_choices(s.wire)
        .iter()
        .map(|&e| run(s, &mut Fixed(e), 4.0).goodput)
        .collect();
    let best = fixed.iter().copied().fold(0.0, f64::max);
    let index = fixed.iter().position(|&g| g == best).unwrap();
    let mut rule = Auto::new(s.wire);
    let auto = run(s, &mut rule, 4.0);
    Compared {
        best,
        best_name: format!("{:?}", fixed_choices(s.wire)[index]),
        fixed,
        auto: auto.goodput,
        others: [
            run(s, &mut ZstdAdapt::new(s.wire), 4.0).goodput,
            run(s, &mut OpenVpn::new(s.wire), 4.0).goodput,
            run(s, &mut CpuShare::new(s.wire), 4.0).goodput,
        ],
        changes: rule.controller.summary().changes as f64,
        why: format!("{:?}", rule.controller.summary()),
    }
}

fn line(name: &str, c: &Compared) {
    let mb = |x: f64| x / 1e6;
    let fixed: Vec<String> = c.fixed.iter().map(|&g| format!("{:7.2}", mb(g))).collect();
    println!(
        "{name:28} {}  best {:10} auto {:8.2} = {:.3}  adapt {:.2} openvpn {:.2} cpu {:.2}  {} {:.1}",
        fixed.join(" "),
        c.best_name,
        mb(c.auto),
        c.auto / c.best,
        c.others[0] / c.best,
        c.others[1] / c.best,
        c.others[2] / c.best,
        c.why,
        c.changes,
    );
}

#[test]
fn laboratory_cells() {
    for wire in [WireKind::Zlib, WireKind::Zstd] {
        println!("{wire:?}");
        for (name, s) in grid::laboratory(wire) {
            line(&name, &compare(&s));
        }
    }
}

/// Follows one cell: `EFFORT_CELL="Zstd 5 Mbit Syslog full" cargo test --test effort one_cell -- --nocapture --ignored`.
#[test]
#[ignore = "for looking at one cell"]
fn one_cell() {
    let wanted = std::env::var("EFFORT_CELL").unwrap_or_default();
    for wire in [WireKind::Zlib, WireKind::Zstd] {
        for (name, s) in grid::laboratory(wire) {
            if format!("{wire:?} {name}") != wanted {
                continue;
            }
            let mut rule = Auto::new(wire);
            rule.trace = true;
            let report = run(&s, &mut rule, 4.0);
            println!(
                "measured from {:.3} s, goodput {:.2} MB/s",
                report.measured_from / 1e9,
                report.goodput / 1e6
            );
            line(&name, &compare(&s));
        }
    }
}
