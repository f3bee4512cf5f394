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
