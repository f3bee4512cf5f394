//! One channel fills the path.

use crate::congestion::Congestion;
use crate::scenario::{Outcome, Scenario, MIB};
use crate::tcp::Path;

const CONTROLS: [Congestion; 3] = [Congestion::Reno, Congestion::Cubic, Congestion::Bbr];

/// No window makes a sender pause: a gap is a loss, a queue or a round trip,
/// and no longer than without a window but for one of each.
fn never_stalls(scenario: &Scenario, ours: &Outcome, free: &Outcome) {
    let allowed_us = free.longest_gap_us + 2.0 * scenario.path.rtt_us + 250_000.0;
    assert!(
        ours.longest_gap_us <= allowed_us,
        "a stall: {}",
        ours.longest_gap_us
    );
}

#[test]
fn a_long_fat_path_is_filled_from_the_start() {
    for (mbit, rtt_ms) in [
        (100.0, 50.0),
        (400.0, 50.0),
        (400.0, 100.0),
        (400.0, 200.0),
        (1000.0, 100.0),
    ] {
        for congestion in CONTROLS {
            for queue in [1.0, 4.0] {
                let mut scenario = Scenario::new(mbit, rtt_ms);
                scenario.path.queue *= queue;
                scenario.sockets.congestion = congestion;
                scenario.seconds = 6.0;
                let (free, ours) = (scenario.unlimited().run(), scenario.run());
                let part = ours.total() / free.total();
                let case = format!("{mbit} Mbit/s, {rtt_ms} ms, {congestion:?}, queue {queue}");
                assert!(part >= 0.97, "{case}: {part}");
                never_stalls(&scenario, &ours, &free);
            }
        }
    }
}

#[test]
fn nine_tenths_of_the_final_rate_come_within_three_seconds_at_100_ms() {
    for congestion in CONTROLS {
        let mut scenario = Scenario::new(400.0, 100.0);
        scenario.sockets.congestion = congestion;
        let ours = scenario.run();
        assert!(
            ours.rate(2.0, 3.0) >= 0.9 * ours.rate(8.0, 10.0),
            "{congestion:?}"
        );
    }
}

/// Where segments get lost TCP is the limit. What it makes of its luck differs
/// from run to run, so this asks for the time in which only the window kept
/// the sender from sending.
#[test]
fn under_loss_the_window_is_not_what_holds_the_sender() {
    for congestion in CONTROLS {
        for (queue, loss) in [(0.25, 0.0), (1.0, 1e-5), (1.0, 1e-3), (4.0, 1e-2)] {
            for rtt_ms in [20.0, 100.0] {
                let mut scenario = Scenario::new(400.0, rtt_ms);
                scenario.path.queue *= queue;
                scenario.path.loss = loss;
                scenario.sockets.congestion = congestion;
                let (free, ours) = (scenario.unlimited().run(), scenario.run());
                let case = format!("{congestion:?}, {rtt_ms} ms, queue {queue}, loss {loss}");
                let blocked = ours.blocked(2.0, 10.0);
                assert!(blocked <= 0.05, "{case}: {blocked}");
                never_stalls(&scenario, &ours, &free);
            }
        }
    }
}

#[test]
fn with_the_kernels_usual_buffers_it_is_no_worse_than_the_best_fixed_window() {
    for rtt_ms in [20.0, 100.0, 200.0] {
        let mut scenario = Scenario::new(400.0, rtt_ms);
        scenario.sockets.send_buffer = 2.6 * MIB;
        scenario.sockets.receive_buffer = 3.0 * MIB;
        let best = [2, 4, 8, 16].into_iter().map(|mib| {
            let mut fixed = scenario.stock();
            fixed.channels[0].initial = mib << 20;
            fixed.run().total()
        });
        let best = best.fold(0.0, f64::max);
        let part = scenario.run().total() / best;
        assert!(part >= 0.97, "{rtt_ms} ms: {part}");
    }
}

/// With the usual send buffer a long window is not carried but kept, and moved
/// again and again. (Reno is left out: at 50 ms with large buffers it has 0.72 of
/// the free rate, and 0.79 with OpenSSH's own window.)
#[test]
fn a_sender_that_reads_ahead_keeps_little_more_than_with_its_own_window() {
    for congestion in [Congestion::Cubic, Congestion::Bbr] {
        for (rtt_ms, send_buffer) in [(50.0, 2.6), (200.0, 2.6), (50.0, 64.0), (100.0, 64.0)] {
            let mut scenario = Scenario::new(400.0, rtt_ms);
            scenario.reads_ahead = true;
            scenario.sockets.congestion = congestion;
            scenario.sockets.send_buffer = send_buffer * MIB;
            scenario.seconds = 30.0;
            let (free, ours) = (scenario.unlimited().run(), scenario.run());
            let case = format!("{congestion:?}, {rtt_ms} ms, {send_buffer} MiB");
            let carried = free.rate(10.0, 30.0) * scenario.path.rtt_us / 1e6;
            let largest = ours.windows[0].iter().copied().max().unwrap();
            let most = 1.25 * carried + 2.0 * MIB;
            assert!(
                f64::from(largest) <= 1.2 * most,
                "{case}: {largest} of {most}"
            );
            let part = ours.total() / free.total();
            assert!(part >= 0.97, "{case}: {part}");
        }
    }
}

#[test]
fn without_a_round_trip_the_window_finds_its_size_by_trying() {
    let mut scenario = Scenario::new(400.0, 100.0);
    scenario.knows_rtt = false;
    let (stock, ours) = (scenario.stock().run(), scenario.run());
    assert!(
        ours.rate(0.0, 6.0) >= 1.8 * stock.rate(0.0, 6.0),
        "200 MB are worth it"
    );
    assert!(ours.rate(5.0, 10.0) >= 0.9 * scenario.unlimited().run().rate(5.0, 10.0));
}

#[test]
fn where_a_larger_window_brings_nothing_it_is_given_up_again() {
    for (mbit, rtt_ms) in [(1000.0, 1.0), (100.0, 10.0)] {
        let mut scenario = Scenario::new(mbit, rtt_ms);
        scenario.knows_rtt = false;
        let (stock, ours) = (scenario.stock().run(), scenario.run());
        assert!(ours.total() >= 0.99 * stock.total());
        let larger = ours.windows[0]
            .iter()
            .filter(|&&window| window > 2 << 20)
            .count();
        assert!(larger <= 10, "larger for {larger} tenths of a second");
        assert_eq!(ours.probes, 1);
    }
}

#[test]
fn a_change_of_route_is_noticed_though_the_minimum_round_trip_is_out_of_date() {
    for congestion in [Congestion::Reno, Congestion::Cubic] {
        let mut scenario = Scenario::new(400.0, 20.0);
        scenario.path.queue = 4.0 * MIB;
        scenario.sockets.congestion = congestion;
        let longer = Path {
            rtt_us: 120e3,
            ..scenario.path
        };
        scenario.changes = vec![(5e6, longer), (60e6, scenario.path)];
        scenario.seconds = 75.0;
        let (free, ours) = (scenario.unlimited().run(), scenario.run());
        let after = ours.rate(30.0, 60.0) / free.rate(30.0, 60.0);
        assert!(after >= 0.8, "{congestion:?}: {after}");
        let back = ours.rate(65.0, 75.0) / free.rate(65.0, 75.0);
        assert!(back >= 0.95, "{congestion:?}: {back}");
        never_stalls(&scenario, &ours, &free);
    }
}

#[test]
fn on_a_lan_the_adjusts_are_stocks() {
    let scenario = Scenario::new(1000.0, 0.5);
    let (stock, ours) = (scenario.stock().run(), scenario.run());
    assert_eq!(ours.adjusts, stock.adjusts);
    assert_eq!(ours.samples, stock.samples);
    assert!(ours.windows[0].iter().all(|&window| window == 2 << 20));
}
