//! Somebody types beside a download.

use crate::congestion::Congestion;
use crate::scenario::{Scenario, MIB};
use crate::tcp::Path;
use sshflow::window::LatencyMode;

fn typing(mbit: f64, rtt_ms: f64, congestion: Congestion) -> Scenario {
    let mut scenario = Scenario::new(mbit, rtt_ms);
    scenario.path.queue = 4.0 * MIB;
    scenario.sockets.congestion = congestion;
    scenario.sockets.send_buffer = 4.0 * MIB;
    scenario.typing = true;
    scenario.seconds = 20.0;
    scenario
}

#[test]
fn the_echo_comes_soon_and_the_download_loses_nothing() {
    for congestion in [Congestion::Reno, Congestion::Cubic, Congestion::Bbr] {
        for (mbit, rtt_ms) in [(20.0, 30.0), (20.0, 100.0), (100.0, 30.0), (5.0, 50.0)] {
            let scenario = typing(mbit, rtt_ms, congestion);
            let ours = scenario.run();
            let mut off = scenario.clone();
            off.config.latency_mode = LatencyMode::Off;
            let off = off.run();
            let case = format!("{mbit} Mbit/s, {rtt_ms} ms, {congestion:?}");
            // Half a round trip of queue, and what 64 KiB more take.
            let slack_ms = 2.0 * 65_536.0 / scenario.path.rate * 1_000.0;
            let echo_ms = ours.median_echo_ms();
            assert!(echo_ms <= 1.6 * rtt_ms + slack_ms, "{case}: {echo_ms} ms");
            assert!(echo_ms < off.median_echo_ms(), "{case}");
            let part = ours.rate(2.0, 20.0) / off.rate(2.0, 20.0);
            assert!(part >= 0.97, "{case}: {part}");
        }
    }
}

#[test]
fn at_20_mbit_and_30_ms_the_median_echo_is_under_100_ms() {
    let ours = typing(20.0, 30.0, Congestion::Cubic).run();
    assert!(ours.median_echo_ms() <= 100.0, "{}", ours.median_echo_ms());
    assert!(ours.windows[0][100..]
        .iter()
        .all(|&window| window < 512 << 10));
}

#[test]
fn a_fat_path_is_filled_beside_a_terminal() {
    let mut scenario = typing(400.0, 100.0, Congestion::Cubic);
    scenario.sockets.send_buffer = 64.0 * MIB;
    let (free, ours) = (scenario.unlimited().run(), scenario.run());
    let part = ours.rate(3.0, 20.0) / free.rate(3.0, 20.0);
    assert!(part >= 0.95, "{part}");
    assert!(ours.median_echo_ms() <= 170.0, "{}", ours.median_echo_ms());
}

/// The window is then smaller than the stock one; on a path that got six times
/// as long without anybody noticing it must not stay so.
#[test]
fn a_change_of_route_does_not_trap_a_window_that_was_cut() {
    let mut scenario = typing(400.0, 20.0, Congestion::Cubic);
    scenario.sockets.send_buffer = 64.0 * MIB;
    scenario.changes = vec![(
        5e6,
        Path {
            rtt_us: 120e3,
            ..scenario.path
        },
    )];
    scenario.seconds = 60.0;
    let (free, ours) = (scenario.unlimited().run(), scenario.run());
    let after = ours.rate(30.0, 60.0) / free.rate(30.0, 60.0);
    assert!(after >= 0.7, "{after}");
}
