//! The effort controller in simulated connections: against every fixed level
//! and against the rules that others have used.

mod data;
mod grid;
mod moving;
mod random;
mod rules;
mod world;

use data::{fixed_choices, WireKind};
use random::Random;
use rules::{Auto, CpuShare, Fixed, OpenVpn, ZstdAdapt};
use world::{run, Scenario, SECOND};

/// Links in a random grid.
/// A build without optimization is ten times slower.
const GRID: usize = if cfg!(debug_assertions) { 24 } else { 120 };

/// Seconds that a connection is measured for, once its buffers have filled.
const MEASURED: f64 = 4.0;

/// Changes of effort a second that the worst of many steady links may show: the
/// goal is 2, and the worst of nine fresh grids had 1.95.
const MOST_UNREST: f64 = 2.5;

struct Compared {
    best: f64,
    best_name: String,
    fixed: Vec<f64>,
    auto: f64,
    others: [f64; 3],
    /// Changes of effort a second, after the first second.
    unrest: f64,
    why: String,
}

fn compare(s: &Scenario) -> Compared {
    let fixed: Vec<f64> = fixed_choices(s.wire)
        .iter()
        .map(|&e| run(s, &mut Fixed(e), MEASURED).goodput)
        .collect();
    let best = fixed.iter().copied().fold(0.0, f64::max);
    let index = fixed.iter().position(|&g| g == best).unwrap();
    let mut rule = Auto::new(s.wire);
    let auto = run(s, &mut rule, MEASURED);
    Compared {
        best,
        best_name: format!("{:?}", fixed_choices(s.wire)[index]),
        fixed,
        auto: auto.goodput,
        others: [
            run(s, &mut ZstdAdapt::new(s.wire), MEASURED).goodput,
            run(s, &mut OpenVpn::new(s.wire), MEASURED).goodput,
            run(s, &mut CpuShare::new(s.wire), MEASURED).goodput,
        ],
        unrest: rule.unrest(auto.measured_from + MEASURED * SECOND),
        why: format!("{:?}", rule.controller.summary()),
    }
}

/// The 0.98 of the product's goal, over many links.
fn grid_of(name: &str, seed: u64, count: usize) -> Vec<f64> {
    let scenarios: Vec<Scenario> = {
        let mut random = Random::new(seed);
        (0..count).map(|_| grid::draw(&mut random)).collect()
    };
    let results = in_parallel(&scenarios, compare);
    let mut ratios: Vec<f64> = results.iter().map(|c| c.auto / c.best).collect();
    let below = |bound: f64| ratios.iter().filter(|&&r| r < bound).count();
    println!("{name} grid, seed {seed}, {count} links: goodput over that of the best fixed choice");
    println!("  auto     {}", spread(&ratios));
    for (i, rule) in ["adapt", "openvpn", "cpu share"].iter().enumerate() {
        let others: Vec<f64> = results.iter().map(|c| c.others[i] / c.best).collect();
        println!("  {rule:9}{}", spread(&others));
    }
    for wire in [WireKind::Zlib, WireKind::Zstd] {
        for (i, effort) in fixed_choices(wire).iter().enumerate() {
            let of_wire = scenarios
                .iter()
                .zip(&results)
                .filter(|(s, _)| s.wire == wire);
            let fixed: Vec<f64> = of_wire.map(|(_, c)| c.fixed[i] / c.best).collect();
            println!("  {wire:?} {effort:?} {}", spread(&fixed));
        }
    }
    let unrest: Vec<f64> = results.iter().map(|c| c.unrest).collect();
    println!("  changes of effort a second: {}", spread(&unrest));
    let most = unrest.iter().copied().fold(0.0, f64::max);
    assert!(most < MOST_UNREST, "{most} changes of effort a second");
    println!(
        "  below 0.98: {}, below 0.95: {}, below 0.9: {}",
        below(0.98),
        below(0.95),
        below(0.9)
    );
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| ratios[a].total_cmp(&ratios[b]));
    for &i in order.iter().take(8) {
        line(&format!("#{i}"), &results[i]);
        println!("      {:?}", scenarios[i]);
    }
    ratios.sort_by(f64::total_cmp);
    ratios
}

fn spread(values: &[f64]) -> String {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share) as usize];
    let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
    format!(
        "mean {mean:.3}, worst {:.3}, 1 % {:.3}, 5 % {:.3}, 25 % {:.3}, median {:.3}, best {:.3}",
        at(0.0),
        at(0.01),
        at(0.05),
        at(0.25),
        at(0.5),
        at(1.0),
    )
}

fn in_parallel<T: Sync, R: Send>(items: &[T], work: fn(&T) -> R) -> Vec<R> {
    let half = items.len().div_ceil(2);
    std::thread::scope(|scope| {
        let parts: Vec<_> = items
            .chunks(half.max(1))
            .map(|part| scope.spawn(move || part.iter().map(work).collect::<Vec<R>>()))
            .collect();
        parts
            .into_iter()
            .flat_map(|p| p.join().expect("no panic"))
            .collect()
    })
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
        c.unrest,
    );
}

/// What a random grid has to reach, in shares of its links.
struct Goal {
    mean: f64,
    misses_098: f64,
    misses_090: f64,
    worst: f64,
}

/// What a handful of links shows.
const FEW: Goal = Goal {
    mean: 0.9,
    misses_098: 0.5,
    misses_090: 0.3,
    worst: 0.3,
};

/// The misses are mostly links on which nothing tells a slow peer from a slow
/// path: the host did not ask the kernel, or cannot.
fn assert_goal(ratios: &[f64], goal: &Goal) {
    let count = ratios.len() as f64;
    let below = |bound: f64| ratios.iter().filter(|&&r| r < bound).count() as f64 / count;
    let mean = ratios.iter().sum::<f64>() / count;
    assert!(mean > goal.mean, "mean {mean:.3}");
    assert!(
        below(0.98) < goal.misses_098,
        "{:.3} of the links miss 0.98",
        below(0.98)
    );
    assert!(
        below(0.90) < goal.misses_090,
        "{:.3} of the links miss 0.90",
        below(0.90)
    );
    assert!(below(goal.worst) == 0.0, "one is below {}", goal.worst);
}

#[test]
fn random_links_of_a_fixed_seed_reach_the_best_fixed_choice() {
    let strict = Goal {
        mean: 1.0,
        misses_098: 0.15,
        misses_090: 0.06,
        worst: 0.6,
    };
    let goal = if cfg!(debug_assertions) { FEW } else { strict };
    assert_goal(&grid_of("fixed", 20_050_610, GRID), &goal);
}

#[test]
fn random_links_of_a_fresh_seed_reach_the_best_fixed_choice() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seed = std::env::var("EFFORT_SEED")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or_else(|| now.map_or(1, |t| t.as_nanos() as u64 % 1_000_000_000));
    let many = Goal {
        mean: 0.96,
        misses_098: 0.3,
        misses_090: 0.15,
        worst: 0.3,
    };
    let goal = if cfg!(debug_assertions) { FEW } else { many };
    assert_goal(&grid_of("fresh", seed, GRID), &goal);
}

#[test]
fn laboratory_cells() {
    for wire in [WireKind::Zlib, WireKind::Zstd] {
        println!("{wire:?}: MB/s of each fixed choice, and of auto");
        let mut cells = grid::laboratory(wire);
        if cfg!(debug_assertions) {
            cells = cells.into_iter().step_by(5).collect();
        }
        let results = in_parallel(&cells, |(_, s)| compare(s));
        for ((name, _), compared) in cells.iter().zip(&results) {
            line(name, compared);
        }
        let ratios: Vec<f64> = results.iter().map(|c| c.auto / c.best).collect();
        println!("{wire:?} auto: {}", spread(&ratios));
        // What is reached today, so that nothing is lost: on the zlib wire the
        // product's goal, on the zstd wire most of it.
        let (percent, worst) = match wire {
            WireKind::Zlib => (100, 0.98),
            WireKind::Zstd => (80, 0.91),
        };
        let reached = ratios.iter().filter(|&&r| r >= 0.98).count();
        assert!(
            reached * 100 >= ratios.len() * percent,
            "{reached} cells reach 0.98"
        );
        assert!(ratios.iter().all(|&r| r > worst), "one is below {worst}");
    }
}

/// Follows one cell: `EFFORT_CELL="Zstd 5 Mbit Syslog full"` for one of the
/// laboratory, `EFFORT_CELL="20050610 71"` for a link of a random grid.
#[test]
#[ignore = "for looking at one cell"]
fn one_cell() {
    let wanted = std::env::var("EFFORT_CELL").unwrap_or_default();
    let mut cells: Vec<(String, Scenario)> = Vec::new();
    for wire in [WireKind::Zlib, WireKind::Zstd] {
        let named = grid::laboratory(wire).into_iter();
        cells.extend(named.map(|(name, s)| (format!("{wire:?} {name}"), s)));
    }
    if let Some((Ok(seed), Ok(index))) = wanted
        .split_once(' ')
        .map(|(a, b)| (a.parse(), b.parse::<usize>()))
    {
        let mut random = Random::new(seed);
        let drawn = (0..=index).map(|_| grid::draw(&mut random)).last();
        cells.extend(drawn.map(|s| (wanted.clone(), s)));
    }
    for (name, s) in cells.iter().filter(|(name, _)| *name == wanted) {
        let mut rule = Auto::new(s.wire);
        rule.trace = true;
        let report = run(s, &mut rule, 4.0);
        let from = report.measured_from / 1e9;
        println!(
            "{s:?}\nmeasured from {from:.3} s, goodput {:.2} MB/s",
            report.goodput / 1e6
        );
        line(name, &compare(s));
    }
}
