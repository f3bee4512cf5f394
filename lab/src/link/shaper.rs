//! One direction of the path as a pure machine: a queue of limited size, a transmitter of a set
//! rate, a delay, random loss. The clock is an argument.
#![forbid(unsafe_code)]

use super::packet::Packet;
use super::params::{Counters, Params};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

/// Packets are put on the wire at most this long before their turn, so that small packets at a
/// high rate do not cost a timer each.
const HORIZON_NS: u64 = 100_000;
/// A piece that takes longer than this to transmit is cut, as the wire would.
const MAX_SERIALIZATION_NS: u64 = 1_000_000;
/// Memory for packets on their way; beyond it they are dropped, and counted as such.
const MAX_FLYING_BYTES: u64 = 1 << 30;

/// The state of one direction.
pub struct Shaper {
    waiting: VecDeque<Packet>,
    waiting_bytes: u64,
    flying: VecDeque<(u64, Packet)>,
    flying_bytes: u64,
    /// When the transmitter has sent what was given to it.
    free_at: u64,
    last_due: u64,
    rng: ChaCha8Rng,
    /// Segments until the next one that is lost, for `loss_of`.
    until_loss: u64,
    loss_of: f64,
}

impl Shaper {
    pub fn new(seed: u64) -> Self {
        Self {
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            flying: VecDeque::new(),
            flying_bytes: 0,
            free_at: 0,
            last_due: 0,
            rng: ChaCha8Rng::seed_from_u64(seed),
            until_loss: u64::MAX,
            loss_of: 0.0,
        }
    }

    /// A packet arrives at the queue.
    pub fn offer(&mut self, mut packet: Packet, params: &mut Params, counters: &mut Counters) {
        counters.packets_in += u64::from(packet.segments());
        counters.bytes_in += u64::from(packet.wire_bytes());
        if params.blackhole || self.flying_bytes > MAX_FLYING_BYTES {
            return drop_tail(&packet, counters);
        }
        if params.corrupt > 0 && packet.corrupt(self.rng.gen()) {
            params.corrupt -= 1;
            counters.packets_corrupted += 1;
        }
        self.renew_loss(params.loss);
        loop {
            let rest = self.next_piece(&mut packet, params);
            let Some(packet_rest) = self.lose_or_queue(packet, rest, params, counters) else {
                return;
            };
            packet = packet_rest;
        }
    }

    /// Cuts what is one step of the transmitter off the front; the remainder is returned.
    fn next_piece(&mut self, packet: &mut Packet, params: &Params) -> Option<Packet> {
        let mut count = u64::from(packet.segments());
        if params.rate > 0 {
            let each = u64::from(packet.wire_bytes()) / count.max(1);
            let per_step = params.rate / 8 * MAX_SERIALIZATION_NS / 1_000_000_000;
            count = count.min((per_step / each.max(1)).max(1));
        }
        if self.until_loss > 0 {
            count = count.min(self.until_loss);
        } else {
            count = 1;
        }
        packet.split_off(count as u32)
    }

    fn lose_or_queue(
        &mut self,
        mut packet: Packet,
        rest: Option<Packet>,
        params: &Params,
        counters: &mut Counters,
    ) -> Option<Packet> {
        if self.until_loss == 0 {
            self.until_loss = self.draw_loss();
            counters.packets_lost += u64::from(packet.segments());
            return rest;
        }
        self.until_loss -= u64::from(packet.segments()).min(self.until_loss);
        let room = match (params.rate, params.queue) {
            (0, _) | (_, 0) => u64::MAX,
            (_, queue) => queue.saturating_sub(self.waiting_bytes),
        };
        if u64::from(packet.wire_bytes()) > room {
            let each = u64::from(packet.wire_bytes() / packet.segments());
            let Some(tail) = packet.split_off((room / each) as u32) else {
                drop_tail(&packet, counters);
                return rest;
            };
            drop_tail(&tail, counters);
        }
        self.waiting_bytes += u64::from(packet.wire_bytes());
        counters.queue_bytes = self.waiting_bytes;
        counters.queue_bytes_max = counters.queue_bytes_max.max(self.waiting_bytes);
        self.waiting.push_back(packet);
        rest
    }

    fn renew_loss(&mut self, loss: f64) {
        if loss != self.loss_of {
            self.loss_of = loss;
            self.until_loss = self.draw_loss();
        }
    }

    /// Geometric distribution: how many segments pass before the next is lost.
    fn draw_loss(&mut self) -> u64 {
        if self.loss_of <= 0.0 {
            return u64::MAX;
        }
        let u: f64 = 1.0 - self.rng.gen::<f64>();
        (u.ln() / (1.0 - self.loss_of).ln()) as u64
    }

    /// Moves packets whose turn has come from the queue to the wire.
    pub fn advance(&mut self, now: u64, params: &Params, counters: &mut Counters) {
        while let Some(packet) = self.waiting.front() {
            if params.rate > 0 && self.free_at > now + HORIZON_NS {
                break;
            }
            let start = self.free_at.max(packet.arrived);
            let bits = u64::from(packet.wire_bytes()) * 8;
            let takes = match params.rate {
                0 => 0,
                rate => (u128::from(bits) * 1_000_000_000 / u128::from(rate)) as u64,
            };
            self.free_at = start + takes;
            // In order, also when the delay has just become shorter.
            let due = (self.free_at + params.delay_ns).max(self.last_due);
            self.last_due = due;
            counters.waited(start - packet.arrived);
            let packet = self.waiting.pop_front().expect("there is a front");
            self.waiting_bytes -= u64::from(packet.wire_bytes());
            self.flying_bytes += packet.data().len() as u64;
            self.flying.push_back((due, packet));
        }
        counters.queue_bytes = self.waiting_bytes;
    }

    /// The next packet that has arrived at the far end.
    pub fn pop_due(&mut self, now: u64, counters: &mut Counters) -> Option<Packet> {
        if self.flying.front()?.0 > now {
            return None;
        }
        let (due, packet) = self.flying.pop_front()?;
        counters.late(now - due);
        self.flying_bytes -= packet.data().len() as u64;
        counters.packets_out += u64::from(packet.segments());
        counters.bytes_out += u64::from(packet.wire_bytes());
        Some(packet)
    }

    /// When something is to be done next.
    pub fn next_event(&self) -> Option<u64> {
        let wire = self
            .waiting
            .front()
            .map(|_| self.free_at.saturating_sub(HORIZON_NS / 2));
        let far = self.flying.front().map(|(due, _)| *due);
        match (wire, far) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

fn drop_tail(packet: &Packet, counters: &mut Counters) {
    counters.packets_dropped += u64::from(packet.segments());
    counters.bytes_dropped += u64::from(packet.wire_bytes());
}

#[cfg(test)]
mod tests {
    use super::super::packet::tests::offloaded;
    use super::*;

    const MS: u64 = 1_000_000;

    fn run(params: &mut Params, packets: usize, gap_ns: u64) -> (Counters, Vec<(u64, u32)>) {
        let mut s = Shaper::new(7);
        let mut c = Counters::default();
        let mut out = Vec::new();
        let mut now = 0;
        for i in 0..packets + 200_000 {
            if i < packets {
                let mut p = offloaded(14_480, 1448);
                p.arrived = now;
                s.offer(p, params, &mut c);
            }
            s.advance(now, params, &mut c);
            while let Some(p) = s.pop_due(now, &mut c) {
                out.push((now, p.wire_bytes()));
            }
            now += gap_ns;
            if i >= packets && s.next_event().is_none() {
                break;
            }
        }
        (c, out)
    }

    #[test]
    fn a_rate_is_held_and_a_delay_is_added() {
        let mut p = Params {
            rate: 400_000_000,
            delay_ns: 50 * MS,
            queue: 0,
            ..Params::default()
        };
        let (c, out) = run(&mut p, 1000, 100_000);
        assert_eq!((c.packets_dropped, c.bytes_in), (0, c.bytes_out));
        let first = out.first().unwrap().0;
        assert!((50 * MS..52 * MS).contains(&first), "{first}");
        let seconds = (out.last().unwrap().0 - first) as f64 / 1e9;
        let rate = c.bytes_out as f64 * 8.0 / seconds;
        assert!((rate / 400e6 - 1.0).abs() < 0.01, "{rate}");
    }

    #[test]
    fn a_full_queue_drops_its_tail_by_segments() {
        let mut p = Params {
            rate: 8_000_000,
            queue: 30_000,
            ..Params::default()
        };
        let (c, _) = run(&mut p, 3, 1000);
        assert_eq!(c.packets_in, 30);
        assert_eq!(
            c.packets_out, 21,
            "20 fit into 30,000 bytes, one is being transmitted"
        );
        assert_eq!(c.packets_dropped, 9);
        assert!(c.queue_bytes_max <= 30_000);
    }

    #[test]
    fn loss_is_by_segment_and_near_what_was_set() {
        let mut p = Params {
            loss: 0.01,
            ..Params::default()
        };
        let (c, _) = run(&mut p, 20_000, 1000);
        assert_eq!(c.packets_lost + c.packets_out, 200_000);
        assert!(
            (1_800..2_200).contains(&c.packets_lost),
            "{}",
            c.packets_lost
        );
    }

    #[test]
    fn a_shorter_delay_does_not_reorder() {
        let mut s = Shaper::new(1);
        let mut c = Counters::default();
        let mut params = Params {
            delay_ns: 100 * MS,
            ..Params::default()
        };
        s.offer(offloaded(100, 1448), &mut params, &mut c);
        s.advance(0, &params, &mut c);
        params.delay_ns = 10 * MS;
        let mut second = offloaded(200, 1448);
        second.arrived = MS;
        s.offer(second, &mut params, &mut c);
        s.advance(MS, &params, &mut c);
        assert!(s.pop_due(50 * MS, &mut c).is_none());
        assert_eq!(s.pop_due(100 * MS, &mut c).unwrap().wire_bytes(), 152);
        assert_eq!(s.pop_due(100 * MS, &mut c).unwrap().wire_bytes(), 252);
    }

    #[test]
    fn faults_are_counted() {
        let mut p = Params {
            corrupt: 2,
            ..Params::default()
        };
        let (c, _) = run(&mut p, 5, 1000);
        assert_eq!((c.packets_corrupted, p.corrupt), (2, 0));
        let mut p = Params {
            blackhole: true,
            ..Params::default()
        };
        let (c, _) = run(&mut p, 5, 1000);
        assert_eq!((c.packets_out, c.packets_dropped), (0, 50));
    }
}
