//! Channels beside each other on one connection.

use crate::scenario::{Channel, Outcome, Scenario, MIB};

/// Jain's index: 1 if all get the same, 1/n if one gets everything.
fn fairness(outcome: &Outcome, from: f64, to: f64) -> f64 {
    let range = (from * 10.0) as usize..(to * 10.0) as usize;
    let shares: Vec<f64> = outcome
        .samples
        .iter()
        .map(|channel| channel[range.clone()].iter().sum())
        .collect();
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    sum * sum / (shares.len() as f64 * squares)
}

fn channels(count: usize) -> Scenario {
    let mut scenario = Scenario::new(400.0, 100.0);
    scenario.channels = vec![Channel::bulk(); count];
    scenario.seconds = 20.0;
    scenario
}

#[test]
fn eight_busy_channels_and_a_terminal_share_the_path() {
    for typing in [false, true] {
        let mut scenario = channels(8);
        scenario.typing = typing;
        scenario.config.budget = 16 << 20;
        let (free, ours) = (scenario.unlimited().run(), scenario.run());
        assert!(
            fairness(&ours, 5.0, 20.0) >= 0.9,
            "{}",
            fairness(&ours, 5.0, 20.0)
        );
        assert!(ours.total() >= 0.95 * free.total());
        let floors = 8.0 * 2.0 * MIB;
        assert!(
            ours.largest_sum <= 16.0 * MIB + floors,
            "{}",
            ours.largest_sum
        );
        assert!(ours.longest_gap_us <= 1e6, "{}", ours.longest_gap_us);
    }
}

#[test]
fn a_latecomer_gets_its_share() {
    for budget in [8 << 20, 128 << 20] {
        let mut scenario = channels(2);
        scenario.channels[1].start_us = 6e6;
        scenario.config.budget = budget;
        let (free, ours) = (scenario.unlimited().run(), scenario.run());
        assert!(
            fairness(&ours, 10.0, 20.0) >= 0.9,
            "{}",
            fairness(&ours, 10.0, 20.0)
        );
        assert!(ours.rate(10.0, 20.0) >= 0.9 * free.rate(10.0, 20.0));
    }
}

#[test]
fn a_small_budget_is_shared_evenly() {
    let mut scenario = Scenario::new(1000.0, 200.0);
    scenario.channels = vec![Channel::bulk(); 4];
    scenario.channels[3].start_us = 5e6;
    scenario.config.budget = 8 << 20;
    scenario.seconds = 20.0;
    let ours = scenario.run();
    assert!(ours.largest_sum <= (8.0 + 4.0 * 2.0) * MIB);
    assert!(
        fairness(&ours, 12.0, 20.0) >= 0.9,
        "{}",
        fairness(&ours, 12.0, 20.0)
    );
    // Sixteen MiB a round trip, and half of what trials of less cost.
    assert!(
        ours.rate(12.0, 20.0) >= 0.8 * 16.0 * MIB / 0.2,
        "{}",
        ours.rate(12.0, 20.0)
    );
}
