#![forbid(unsafe_code)]
//! Where the time between packets went.
//!
//! The only evidence is the clock at each packet and, on some hosts, the
//! length of the output queue. A gap is the host's own work, or waiting for
//! room in the socket, or something that has nothing to do with the effort.

/// A queue that held this much when the sender paused says: the socket was
/// full. OpenSSH stops at 128 KiB.
const FULL_QUEUE: usize = 48 * 1024;
/// A gap contains waiting when it exceeds the host's usual work by this factor
/// and this much: behind a full queue, and where the queue is not known.
const LONG_GAP: (f32, f32) = (1.4, 30_000.0);
const LONG_GAP_UNKNOWN: (f32, f32) = (3.0, 150_000.0);
/// Nobody computes for this long between two packets; it was idle.
const IDLE_NS: f32 = 150e6;

/// How fast the memory of the shortest gap fades, per packet.
const SHORTEST_FADE: f32 = 1.02;

/// What a gap between two packets was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gap {
    /// The host's own work: reading, cipher, writing.
    Work,
    /// The socket was full: the network or the peer is slower than we are.
    Blocked,
    /// No input, or the peer's channel window was closed.
    Idle,
}

/// Totals over some stretch of time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub elapsed: f32,
    pub blocked: f32,
    pub idle: f32,
    /// For how long the peer's channel window was closed with nothing left in
    /// the kernel.
    pub closed: f32,
    pub raw: f32,
    pub wire: f32,
    /// Bytes that the peer's kernel has acknowledged, where the host tells.
    pub acked: f32,
    /// Time in the engine; that and the host's as the model expects them, for
    /// the same packets.
    pub engine: f32,
    pub expected_engine: f32,
    pub expected_host: f32,
    /// Bytes on the wire as the model expects them.
    pub expected_wire: f32,
    /// What the peer would need for them if it were a machine like ours.
    pub peer_like_us: f32,
    pub packets: u32,
}

impl Tally {
    /// The host's work between the packets.
    pub fn host(&self) -> f32 {
        (self.elapsed - self.blocked - self.idle - self.engine).max(0.0)
    }
}

/// Follows the clock from packet to packet.
#[derive(Clone, Debug)]
pub struct Flow {
    left_ns: Option<u64>,
    queue_left: Option<usize>,
    queued: Option<usize>,
    /// The peer's channel window was said to be full since the last packet.
    window_limited: bool,
    /// That was said last, so it is meant of the packet to come.
    filling: bool,
    /// The window was full behind the packet that left last, or while nothing
    /// was sent; and in the last gap.
    closed: bool,
    gap_closed: bool,
    /// The shortest gap of late, nanoseconds per payload byte: the host's own
    /// work where sends block and the queue is not known.
    shortest: f32,
}

impl Flow {
    pub fn new() -> Self {
        Flow {
            left_ns: None,
            queue_left: None,
            queued: None,
            window_limited: false,
            filling: false,
            closed: false,
            gap_closed: false,
            shortest: f32::INFINITY,
        }
    }

    pub fn feedback(&mut self, queued: Option<usize>, window_limited: bool) {
        self.queued = queued;
        self.window_limited |= window_limited;
        self.closed |= std::mem::replace(&mut self.filling, window_limited);
    }

    /// A packet comes in at `now_ns`, where `usual` nanoseconds of host work
    /// were to be expected since the last one, of `len` bytes, left. `at_ease`:
    /// nobody waits for us, because the kernel still has something to send, or
    /// because what left last was small, and likely waited for an answer.
    pub fn enter(&mut self, now_ns: u64, usual: f32, len: f32, at_ease: bool) -> (Gap, f32) {
        let Some(left) = self.left_ns else {
            return (Gap::Idle, 0.0);
        };
        let gap = now_ns.saturating_sub(left) as f32;
        let usual = if self.queue_left.is_none() {
            self.shortest = (self.shortest * SHORTEST_FADE).min(gap / len);
            usual.max(self.shortest * len)
        } else {
            usual
        };
        let longer_than = |(factor, more): (f32, f32)| gap > factor * usual + more;
        self.gap_closed = std::mem::take(&mut self.closed);
        let limited = std::mem::take(&mut self.window_limited);
        let kind = match self.queue_left {
            _ if limited => Gap::Idle,
            Some(queue) if queue >= FULL_QUEUE && longer_than(LONG_GAP) => Gap::Blocked,
            _ if (at_ease || self.gap_closed) && longer_than(LONG_GAP) => Gap::Idle,
            Some(_) if gap > IDLE_NS => Gap::Idle,
            Some(_) => Gap::Work,
            None if longer_than(LONG_GAP_UNKNOWN) => Gap::Blocked,
            None => Gap::Work,
        };
        (kind, gap)
    }

    /// The packet left the engine at `now_ns` with `wire_len` bytes.
    pub fn leave(&mut self, now_ns: u64, wire_len: usize) {
        self.left_ns = Some(now_ns);
        self.queue_left = self.queued.map(|q| q.saturating_add(wire_len));
        self.closed = std::mem::take(&mut self.filling);
    }

    /// Whether the peer's channel window was closed in the last gap. A peer or a
    /// path that is slow closes it as well, so this only tells what is seen.
    pub fn window_closed(&self) -> bool {
        self.gap_closed
    }

    /// Bytes in the host's queue behind the packet that left last.
    pub fn queue_left(&self) -> f32 {
        self.queue_left.unwrap_or(0) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet after `gap_ms`, before which the host says `closed`.
    fn packet(flow: &mut Flow, now_ns: &mut u64, gap_ms: u64, closed: bool) -> bool {
        *now_ns += gap_ms * 1_000_000;
        flow.feedback(Some(0), closed);
        flow.enter(*now_ns, 10e3, 32768.0, false);
        flow.leave(*now_ns, 32768);
        flow.window_closed()
    }

    #[test]
    fn a_window_that_a_packet_filled_is_closed_behind_it() {
        let (mut flow, mut now) = (Flow::new(), 0);
        packet(&mut flow, &mut now, 0, false);
        assert!(!packet(&mut flow, &mut now, 1, true));
        assert!(packet(&mut flow, &mut now, 50, false));
        assert!(!packet(&mut flow, &mut now, 1, false));
    }

    #[test]
    fn waiting_for_the_peers_window_is_not_work() {
        let (mut flow, mut now) = (Flow::new(), 0);
        packet(&mut flow, &mut now, 0, false);
        packet(&mut flow, &mut now, 1, true);
        let (kind, _) = flow.enter(now + 50_000_000, 10e3, 32768.0, false);
        assert_eq!(kind, Gap::Idle);
    }

    #[test]
    fn a_host_may_also_say_so_while_it_waits() {
        let (mut flow, mut now) = (Flow::new(), 0);
        packet(&mut flow, &mut now, 0, false);
        flow.feedback(Some(0), true);
        assert!(packet(&mut flow, &mut now, 50, false));
    }
}
