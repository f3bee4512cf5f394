//! What waits at the receiver stays bounded, and what is not needed any more
//! is given back.

use crate::congestion::Congestion;
use crate::scenario::{Consumer, Scenario, Source, MIB};
use crate::tcp::Path;

#[test]
fn a_slow_consumer_keeps_the_stock_window() {
    for rate in [100e3, 2e6, 4e6] {
        let mut scenario = Scenario::new(400.0, 100.0);
        scenario.channels[0].consumer = Consumer::Rate(rate);
        let (stock, ours) = (scenario.stock().run(), scenario.run());
        assert!(
            ours.windows[0].iter().all(|&window| window <= 2 << 20),
            "{rate}"
        );
        assert!(ours.largest_backlog[0] <= stock.largest_backlog[0]);
        assert!(ours.total() >= 0.99 * stock.total());
    }
}

#[test]
fn a_consumer_that_slows_down_gets_its_window_cut() {
    let mut scenario = Scenario::new(400.0, 100.0);
    scenario.channels[0].consumer = Consumer::Slows(5e6, 2e6);
    scenario.seconds = 60.0;
    let ours = scenario.run();
    assert!(ours.windows[0][40] > 8 << 20, "grown while it was fast");
    assert!(
        *ours.windows[0].last().unwrap() <= 3 << 20,
        "{:?}",
        ours.windows[0].last()
    );
}

#[test]
fn no_window_passes_its_maximum() {
    for (maximum, bytes) in [(4 << 20, 4.0 * MIB), (64 << 20, 64.0 * MIB)] {
        let mut scenario = Scenario::new(1000.0, 200.0);
        scenario.config.window_max = maximum;
        scenario.channels[0].consumer = Consumer::Rests(300e3, 2e6);
        let ours = scenario.run();
        assert!(ours.windows[0].iter().all(|&window| window <= maximum));
        assert!(ours.largest_backlog[0] <= bytes);
    }
}

#[test]
fn a_path_that_becomes_slow_makes_the_window_shrink() {
    for congestion in [Congestion::Cubic, Congestion::Bbr] {
        let mut scenario = Scenario::new(400.0, 100.0);
        scenario.sockets.congestion = congestion;
        let slower = Path {
            rate: scenario.path.rate / 10.0,
            ..scenario.path
        };
        scenario.changes = vec![(5e6, slower)];
        scenario.seconds = 50.0;
        let (free, ours) = (scenario.unlimited().run(), scenario.run());
        assert!(ours.windows[0][40] > 8 << 20);
        let small = ours.windows[0][200..]
            .iter()
            .filter(|&&window| window <= 3 << 20)
            .count();
        assert!(
            small > 120,
            "but for the time of a probe: {congestion:?}, {small}"
        );
        let part = ours.rate(15.0, 50.0) / free.rate(15.0, 50.0);
        assert!(part >= 0.95, "{congestion:?}: {part}");
    }
}

#[test]
fn after_a_pause_the_window_is_given_back_and_grows_again_at_once() {
    let mut scenario = Scenario::new(400.0, 100.0);
    scenario.channels[0].source = Source::Silent(5e6, 15e6);
    scenario.seconds = 22.0;
    let (free, ours) = (scenario.unlimited().run(), scenario.run());
    let part = ours.rate(15.0, 22.0) / free.rate(15.0, 22.0);
    assert!(part >= 0.97, "{part}");
    assert!(ours.longest_gap_us <= free.longest_gap_us + 1e3);
}

#[test]
fn a_trickle_after_a_pause_gives_the_window_back() {
    let mut scenario = Scenario::new(400.0, 100.0);
    scenario.channels[0].source = Source::Dries(5e6, 15e6, 500e3);
    scenario.seconds = 60.0;
    let ours = scenario.run();
    assert!(ours.windows[0][40] > 8 << 20);
    assert!(
        *ours.windows[0].last().unwrap() <= 2 << 20,
        "{:?}",
        ours.windows[0].last()
    );
}
