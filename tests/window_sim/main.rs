//! The windows against a simulated path: rate, round trip, queue, send buffer,
//! consumer, congestion control and loss. Deterministic; the references are
//! measured on the same path with a window that is never the limit.

mod congestion;
mod session;
mod tcp;
#[path = "../window_support/mod.rs"]
mod window_support;

use congestion::Congestion;
use session::*;
use tcp::Path;

#[test]
#[ignore]
fn explore() {
    for (mbit, rtt) in [
        (100.0, 50.0),
        (400.0, 50.0),
        (400.0, 100.0),
        (400.0, 200.0),
        (1000.0, 100.0),
    ] {
        for cc in [Congestion::Reno, Congestion::Cubic, Congestion::Bbr] {
            for (queue, loss) in [(0.25, 0.0), (1.0, 0.0), (4.0, 0.0), (1.0, 1e-5)] {
                let mut s = Scenario::new(mbit, rtt);
                s.path.queue = (s.path.queue * queue).max(64_000.0);
                s.path.loss = loss;
                s.sockets.congestion = cc;
                let free = s.unlimited().run();
                let ours = s.run();
                let stock = s.stock().run();
                let w: Vec<u32> = ours.windows[0]
                    .iter()
                    .step_by(10)
                    .map(|w| w >> 10)
                    .collect();
                let sum = |o: &Outcome, to: f64| o.rate(0.0, to) * to;
                println!(
                    "{mbit:5} {rtt:4} {cc:?} q{queue} l{loss}: free {:.2} ours {:.3} stock {:.3} late {:.3} lag {:.2} s blocked {:.3} late {:.3} gap {:.0}/{:.0} ms adj {} probes {} {w:?}",
                    free.total() / 10.0 / 1e6, ours.total() / free.total(), stock.total() / free.total(),
                    ours.rate(3.0, 10.0) / free.rate(3.0, 10.0),
                    (sum(&free, 4.0) - sum(&ours, 4.0)) / free.rate(3.0, 10.0),
                    ours.blocked(0.0, 3.0), ours.blocked(3.0, 10.0),
                    ours.longest_gap_us / 1e3, free.longest_gap_us / 1e3, ours.adjusts, ours.probes,
                );
            }
        }
    }
}

fn show(name: &str, o: &Outcome) {
    for (at, windows) in o.windows.iter().enumerate() {
        let step = (windows.len() / 20).max(1);
        let w: Vec<u32> = windows.iter().step_by(step).map(|w| w >> 10).collect();
        let r: Vec<u32> = o.samples[at]
            .chunks(step)
            .map(|c| (c.iter().sum::<f64>() / c.len() as f64 / 1e5) as u32)
            .collect();
        println!(
            "{name} ch{at}: W {w:?} rate MB/s {r:?} backlog {:.1} MB probes {} gap {:.0}",
            o.largest_backlog[at] / 1e6,
            o.probes,
            o.longest_gap_us / 1e3
        );
    }
    if !o.echoes.is_empty() {
        println!("{name}: echo median {:.0} ms", o.median_echo_ms());
    }
}

#[test]
#[ignore]
fn explore2() {
    // latency mode
    for (mbit, rtt) in [
        (20.0, 30.0),
        (100.0, 30.0),
        (20.0, 100.0),
        (400.0, 100.0),
        (5.0, 50.0),
    ] {
        for cc in [Congestion::Cubic, Congestion::Bbr] {
            let mut s = Scenario::new(mbit, rtt);
            s.path.queue = 4.0 * MIB;
            s.sockets.congestion = cc;
            s.sockets.send_buffer = 4.0 * MIB;
            s.typing = true;
            let ours = s.run();
            let stock = s.stock().run();
            s.config.latency_mode = sshflow::window::LatencyMode::Off;
            let off = s.run();
            println!("latency {mbit} {rtt} {cc:?}: ours {:.0} ms {:.2} MB/s, off {:.0} ms {:.2}, stock {:.0} ms {:.2}",
                ours.median_echo_ms(), ours.rate(2.0, 10.0) / 1e6, off.median_echo_ms(), off.rate(2.0, 10.0) / 1e6,
                stock.median_echo_ms(), stock.rate(2.0, 10.0) / 1e6);
            show("  ours", &ours);
        }
    }
    // slow consumer
    let mut s = Scenario::new(400.0, 100.0);
    s.channels[0].consumer = Consumer::Rate(2e6);
    show("slow", &s.run());
    show("slow stock", &s.stock().run());
    s.channels[0].consumer = Consumer::Rate(30e6);
    show("30MB/s", &s.run());
    s.channels[0].consumer = Consumer::Rests(500e3, 1e6);
    show("rests", &s.run());
    show("rests free", &s.unlimited().run());
    // rtt step
    for cc in [Congestion::Cubic, Congestion::Bbr] {
        for typing in [false, true] {
            let mut s = Scenario::new(400.0, 20.0);
            s.path.queue = 4.0 * MIB;
            s.sockets.congestion = cc;
            s.typing = typing;
            s.seconds = 60.0;
            s.changes = vec![
                (
                    5e6,
                    Path {
                        rtt_us: 120e3,
                        ..s.path
                    },
                ),
                (40e6, s.path),
            ];
            show(&format!("step {cc:?} typing {typing}"), &s.run());
            show(&format!("step {cc:?} free"), &s.unlimited().run());
        }
    }
    // no rtt
    for (mbit, rtt) in [(400.0, 100.0), (1000.0, 1.0), (20.0, 30.0)] {
        let mut s = Scenario::new(mbit, rtt);
        s.knows_rtt = false;
        show(&format!("pipe {mbit} {rtt}"), &s.run());
    }
    // fairness
    let mut s = Scenario::new(400.0, 100.0);
    s.channels = vec![Channel::bulk(); 8];
    s.typing = true;
    let o = s.run();
    show("8", &o);
    println!("sum {} of free {}", o.total(), s.unlimited().run().total());
}
