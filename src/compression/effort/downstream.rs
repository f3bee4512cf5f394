#![forbid(unsafe_code)]
//! What happens to the bytes after the socket: how fast they drain, and
//! whether the link or the peer's CPU sets that pace.
//!
//! A full queue looks the same in both cases. The link carries bytes; the peer
//! works on payload. So the two part when the effort changes: on a link, half
//! the bytes take half the time. A change of plan is therefore also a trial,
//! and the beliefs rest until its bytes have reached the peer.

use super::flow::Tally;

/// Taken for the link's pace before anything is known, bytes per second.
const FIRST_GUESS: f32 = 12e6;
/// No pace beyond this matters.
const FASTEST: f32 = 20e9;
/// A forecast that misses by less is confirmed.
const TOLERANCE: f32 = 0.04;
/// Bytes that may lie between our socket and the peer's engine: what a change
/// of effort needs to reach the peer. Send and receive buffer as Linux sizes
/// them for a busy connection.
const PIPE: f32 = 4e6;
/// What lies there is remembered as means over about so many bytes; where
/// they differ, nobody knows what drains at present.
const PIPE_MEMORY: [f32; 2] = [0.4e6, 4e6];
const PIPE_AGREES: f32 = 0.15;
/// The first time the socket is full, most of what it took is still in it.
const FIRST_SHARE: f32 = 0.3;
/// When the peer sets the pace, the link is taken for this much faster, until
/// more is known.
const LINK_BEHIND_PEER: f32 = 3.0;
/// For so long a measured pace of the link is remembered in that case.
const LINK_MEMORY_NS: f32 = 10e9;
/// Less than this cannot have reached the peer.
const REACHES_PEER: f32 = 256e3;
/// A peer may be this much slower than the machine that the wire's figures
/// come from, and than we are; beyond that it is the link.
const SLOWEST_MACHINE: f32 = 20.0;
const SLOWEST_PEER: f32 = 9.0;
/// Where the belief about the peer begins: half our own cost.
const FIRST_PEER: f32 = 0.5;
/// A socket that has not been full for this many cycles, and this long, is not
/// the bottleneck.
const QUIET_CYCLES: f32 = 4.0;
const QUIET_NS: f32 = 60e6;
/// Once it has shown that, the next look may follow so soon.
const QUIET_AGAIN_NS: f32 = 20e6;
/// Share of the believed pace that has to be used for that.
const BUSY_LINK: f32 = 0.6;
/// The same where the kernel counts what has arrived, and what of that may come
/// at once.
const CARRIED_LINK: f32 = 0.9;
const ACKED_AT_ONCE: f32 = 32e3;
/// For so long a higher belief may go without being borne out.
const UNPROVEN_NS: f32 = 200e6;
const LONGEST_QUIET_NS: f32 = 8e9;
/// The first step of doubt; each next one is a quarter larger, up to doubling.
const FIRST_GROWTH: f32 = 1.1;
const GUESS_GROWTH: f32 = 1.5;
/// What the socket and the host's queue take at first.
const FIRST_SLACK: f32 = 256.0 * 1024.0;
/// How long a stretch of the kernel's counts for half.
const DRAIN_MEMORY_NS: f32 = 50e6;
/// What a trial may cost if it turns out that the peer is the bottleneck.
const TRIAL_LOSS: f32 = 0.08;

/// A stretch of time with the socket full at both ends.
#[derive(Clone, Copy, Debug)]
pub struct Full {
    /// Nanoseconds per payload byte, idle time taken out.
    pub time: f32,
    /// Bytes on the wire per payload byte.
    pub wire: f32,
    /// Nanoseconds per payload byte that a peer like us would need.
    pub like_us: f32,
    /// Share of the time spent waiting for the socket.
    pub blocked: f32,
    /// Bytes on the wire, and nanoseconds, of the whole stretch.
    pub sent: f32,
    pub elapsed: f32,
}

/// What a change of plan tries out.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Trial {
    /// Bytes sent since.
    sent: f32,
    /// Fewer bytes on the wire than before.
    packs_more: bool,
    /// Time per payload byte before, and what a peer like us needed of it.
    time_before: f32,
    like_us_before: f32,
}

/// What was sent lately.
#[derive(Clone, Copy, Debug, Default)]
struct Pipe {
    wire: f32,
    like_us: f32,
}

#[derive(Clone, Copy, Debug)]
pub struct Downstream {
    /// Bytes per nanosecond that the link carries.
    link: f32,
    /// Whether that was measured with the socket full, or is a guess.
    measured: bool,
    /// Whether the socket was ever full at all.
    bounded: bool,
    /// The peer's slowness, as a multiple of our own.
    peer: f32,
    trial: Option<Trial>,
    /// A trial has shown that the link, not the peer, sets the pace.
    link_confirmed: bool,
    time: f32,
    like_us: f32,
    slowness: f32,
    /// How long a stretch with the socket full at both ends lasts.
    cycle_ns: f32,
    growth: f32,
    quiet_ns: f32,
    raised: bool,
    /// The belief before it was raised without proof.
    sure: f32,
    /// Bytes that the socket takes after it became writable again.
    slack: f32,
    /// The last stretch was much slower than believed.
    slower_before: bool,
    /// Or much faster.
    faster_before: bool,
    /// What is on its way to the peer: bytes, and a peer's work if like us.
    pipe: [Pipe; 2],
    /// The link's pace when it was last known to be the bottleneck, and how
    /// long ago that is.
    link_seen: f32,
    link_age_ns: f32,
    /// How long a belief in a slow peer holds before it is put to the test.
    hold_ns: f32,
    held_ns: f32,
}

impl Downstream {
    pub fn new() -> Self {
        Downstream {
            link: FIRST_GUESS / 1e9,
            measured: false,
            bounded: false,
            peer: FIRST_PEER,
            trial: None,
            link_confirmed: false,
            time: 0.0,
            like_us: 1.0,
            slowness: 1.0,
            cycle_ns: 0.0,
            growth: 2.0,
            quiet_ns: QUIET_NS,
            raised: false,
            sure: FIRST_GUESS / 1e9,
            slack: FIRST_SLACK,
            slower_before: false,
            faster_before: false,
            pipe: [Pipe::default(); 2],
            link_seen: 0.0,
            link_age_ns: 0.0,
            hold_ns: 1e9,
            held_ns: 0.0,
        }
    }

    /// Nanoseconds per byte on the wire.
    pub fn link_ns(&self) -> f32 {
        1.0 / self.link
    }

    /// The peer's time as a multiple of our own for the same work.
    pub fn peer(&self) -> f32 {
        self.peer
    }

    /// Whether the socket was ever full.
    pub fn measured(&self) -> bool {
        self.measured
    }

    /// Whether there is any evidence of how fast the link is.
    pub fn bounded(&self) -> bool {
        self.bounded
    }

    /// How many times slower than the wire's figures we are ourselves.
    pub fn set_slowness(&mut self, slowness: f32) {
        self.slowness = slowness;
    }

    /// The peer might be what holds the queue, as far as one can tell.
    fn peer_possible(&self, time: f32, like_us: f32) -> bool {
        time < (SLOWEST_MACHINE / self.slowness).clamp(2.0, SLOWEST_PEER) * like_us
    }

    /// A trial is under way whose outcome is not clear yet.
    pub fn settling(&self) -> bool {
        self.trial.is_some() && self.measured && self.peer_possible(self.time, self.like_us)
    }

    /// How far to go at once from a plan whose peer time is `from` to one where
    /// it is `to`, as long as the peer may be the bottleneck: 0 to 1.
    pub fn stride(&self, from: f32, to: f32) -> f32 {
        let risky = self.measured
            && !self.link_confirmed
            && to > 1.05 * from
            && self.peer_possible(self.time, self.like_us);
        if risky {
            (TRIAL_LOSS / (to / from - 1.0)).min(1.0)
        } else {
            1.0
        }
    }

    /// The plan changed: `before` and `after` bytes on the wire per byte.
    pub fn plan_changed(&mut self, before: f32, after: f32) {
        if (before - after).abs() > 0.03 * before && self.measured {
            self.trial = Some(Trial {
                sent: 0.0,
                packs_more: after < before,
                time_before: self.time,
                like_us_before: self.like_us,
            });
        }
    }

    /// The socket became full for the first time since it was seen empty: the
    /// link carries no more than this, bytes per nanosecond.
    pub fn at_most(&mut self, pace: f32) {
        let pace = if self.bounded {
            pace
        } else {
            FIRST_SHARE * pace
        };
        self.link = self.link.min(pace);
        self.bounded = true;
        self.growth = if self.measured {
            FIRST_GROWTH
        } else {
            GUESS_GROWTH
        };
    }

    /// A packet of `wire` bytes went out for which a peer like us would need
    /// `like_us` nanoseconds.
    pub fn sent(&mut self, wire: f32, like_us: f32) {
        for (pipe, memory) in self.pipe.iter_mut().zip(PIPE_MEMORY) {
            let keep = (1.0 - wire / memory).max(0.0);
            pipe.wire = pipe.wire * keep + wire;
            pipe.like_us = pipe.like_us * keep + like_us;
        }
    }

    /// How much slower than we the peer is if it is what sets this pace.
    fn peer_at(&self, pace: f32) -> Option<f32> {
        let [recent, longer] = self.pipe.map(|p| p.wire / p.like_us.max(1e-3));
        let agree = (recent / longer - 1.0).abs() < PIPE_AGREES;
        agree.then_some(recent / pace)
    }

    /// The kernel's queue drained at this pace and was never empty.
    pub fn drained(&mut self, pace: f32, elapsed: f32, receiver_full: bool) {
        if !self.measured {
            self.measured = true;
            self.bounded = true;
            self.link = pace;
        }
        self.was_wrong(pace);
        self.sure = 0.0;
        self.link_age_ns += elapsed;
        let gain = (elapsed / DRAIN_MEMORY_NS).min(0.5);
        self.told(receiver_full, pace, 1.0, gain);
    }

    /// Learns from a stretch with the socket full at both ends. `told`: the
    /// host knows whether the peer's receive buffer is full.
    pub fn full(&mut self, seen: &Full, told: Option<bool>) {
        let pace = seen.wire / seen.time;
        self.was_wrong(pace);
        self.sure = 0.0;
        if !self.measured {
            self.measured = true;
            self.link = pace;
        }
        let gain = (seen.blocked * 8.0).min(1.0) * 0.5;
        self.link_age_ns += seen.elapsed;
        match told {
            Some(receiver_full) => self.told(receiver_full, pace, seen.blocked, gain),
            None => self.infer(seen, gain),
        }
        self.time = seen.time;
        self.like_us = seen.like_us;
        self.proceed(seen.sent);
    }

    /// Learns from a pace whose cause is known.
    fn told(&mut self, receiver_full: bool, pace: f32, blocked: f32, gain: f32) {
        let peer = self.peer_at(pace);
        if receiver_full {
            if let Some(peer) = peer {
                let first = self.peer <= FIRST_PEER;
                self.peer += (peer - self.peer) * if first { 1.0 } else { gain };
            }
            self.blame_peer(pace);
            return;
        }
        if let Some(peer) = peer {
            self.peer = self.peer.min(peer);
        }
        self.follow_link(pace, blocked, gain);
        self.link_seen = self.link;
        self.link_age_ns = 0.0;
        self.link_confirmed = true;
        self.trial = None;
    }

    /// The peer sets the pace, so nothing is known of the link but that it
    /// carries more than this.
    fn blame_peer(&mut self, pace: f32) {
        let seen = self.link_seen > 0.0 && self.link_age_ns < LINK_MEMORY_NS;
        let hoped = if seen {
            self.link_seen
        } else {
            LINK_BEHIND_PEER * pace
        };
        self.link = self.link.max(hoped).max(pace);
        self.link_confirmed = false;
        self.trial = None;
    }

    fn follow_link(&mut self, pace: f32, blocked: f32, gain: f32) {
        let faster = pace > 1.25 * self.link;
        let slower = pace < 0.8 * self.link && blocked > 0.03;
        // A stall of ours, while the socket ran empty, looks like a slow link
        // once; a slow link does so again.
        // Once, acknowledgements that were held up look like a fast one.
        let sure = (faster && self.faster_before) || (slower && self.slower_before);
        self.slower_before = slower;
        self.faster_before = faster;
        if (slower || faster) && !sure {
            return;
        }
        self.link += (pace - self.link) * if sure { 1.0 } else { gain };
    }

    /// Nobody told: judge by what changes of plan have brought.
    fn infer(&mut self, seen: &Full, gain: f32) {
        let Full {
            time,
            wire,
            like_us,
            ..
        } = *seen;
        let pace = wire / time;
        let link_time = wire / self.link;
        let peer_time = self.peer * like_us;
        let expected = link_time.max(peer_time);
        if time < expected * (1.0 - TOLERANCE) {
            // Faster than believed: whatever forbade it was wrong.
            if link_time > time {
                self.follow_link(pace, seen.blocked, gain);
            }
            self.peer = self.peer.min(time / like_us);
        } else if time > expected * (1.0 + TOLERANCE) && seen.blocked > 0.03 {
            if self.suspect_peer(seen, link_time, peer_time) {
                self.peer = time / like_us;
                self.held_ns = 0.0;
                if self.trial.is_some() {
                    self.hold_ns = (self.hold_ns * 2.0).min(64e9);
                    self.blame_peer(pace);
                }
            } else {
                self.follow_link(pace, seen.blocked, gain);
            }
        } else if link_time >= peer_time {
            self.link += (pace - self.link) * 0.5 * gain;
        } else {
            self.peer += (time / like_us - self.peer) * 0.5 * gain;
        }
        if peer_time < 0.9 * link_time {
            self.forgive(seen.elapsed);
        }
    }

    /// Things take longer than believed. Is it the peer?
    fn suspect_peer(&self, seen: &Full, link_time: f32, peer_time: f32) -> bool {
        let Some(trial) = self.trial else {
            return peer_time >= link_time;
        };
        // A peer that was not the slowest before is not slower now than its
        // own work tells.
        let most = 1.15 * trial.time_before * seen.like_us / trial.like_us_before;
        trial.packs_more
            && !self.link_confirmed
            && trial.sent > REACHES_PEER
            && seen.time <= most
            && self.peer_possible(seen.time, seen.like_us)
    }

    /// `sent` more bytes went out since the plan changed.
    fn proceed(&mut self, sent: f32) {
        let Some(trial) = &mut self.trial else { return };
        trial.sent += sent;
        if trial.sent > PIPE {
            if trial.packs_more && self.peer * self.like_us < self.time * (1.0 - TOLERANCE) {
                self.link_confirmed = true;
            }
            self.trial = None;
        }
    }

    /// A belief in a slow peer that no longer binds fades, to be tried again.
    fn forgive(&mut self, elapsed: f32) {
        self.held_ns += elapsed;
        if self.held_ns > self.hold_ns && self.peer > FIRST_PEER {
            self.peer *= 0.8;
            self.held_ns = 0.9 * self.hold_ns;
        }
    }

    /// What the socket took between becoming writable and being full again,
    /// and how long a whole cycle lasts.
    pub fn burst(&mut self, wire: f32, elapsed: f32, cycle_ns: f32) {
        self.cycle_ns += (cycle_ns - self.cycle_ns) * 0.3;
        let slack = (wire - self.link * elapsed).max(0.0);
        self.slack = slack.max(self.slack * 0.9);
    }

    /// What happened `since` the socket was last full (or since this last said
    /// yes), and it is not full. `matters`: a faster link would change the plan.
    /// Returns whether the belief in the link's pace had to be raised; the
    /// caller then starts counting anew.
    pub fn not_full(&mut self, since: &Tally, told: bool, matters: bool) -> bool {
        if self.link * 1e9 >= FASTEST {
            return false;
        }
        let Tally { wire, elapsed, .. } = *since;
        let slack = if self.raised { 0.25 } else { 1.15 } * self.slack + 32e3;
        // What the link has shown to carry: where only the socket tells, it may
        // hold some of that still.
        let (least, enough) = if told {
            (since.acked - ACKED_AT_ONCE, CARRIED_LINK)
        } else {
            (wire - slack, BUSY_LINK)
        };
        let too_much = least > self.link * elapsed && (!told || elapsed > QUIET_NS);
        // While little is sent, nothing is learned of what could be sent.
        let carried = if told { since.acked } else { wire };
        let busy = carried > enough * self.link * elapsed;
        let too_long = matters && self.quiet_for(since, busy, slack);
        if too_much {
            self.sure = self.sure.max(least / elapsed);
        } else if !too_long {
            return told && self.unproven(since);
        }
        if !self.raised {
            self.sure = self.sure.max(self.link);
        }
        self.link = (self.link * self.growth).max(least / elapsed);
        self.growth = (self.growth * 1.25).min(2.0);
        self.raised = true;
        true
    }

    /// A belief that was raised and that nothing bears out is given up.
    fn unproven(&mut self, since: &Tally) -> bool {
        let carried = since.acked / since.elapsed;
        if !self.raised || since.elapsed < UNPROVEN_NS || carried > CARRIED_LINK * self.link {
            return false;
        }
        let sure = self.sure.max(carried);
        self.was_wrong(sure);
        self.link = sure;
        true
    }

    /// Whether it has not been full for so long that we must be what is slow.
    fn quiet_for(&self, since: &Tally, busy: bool, slack: f32) -> bool {
        if self.bounded {
            let quiet = if self.raised {
                self.quiet_ns.min(QUIET_AGAIN_NS)
            } else {
                (QUIET_CYCLES * self.cycle_ns).max(self.quiet_ns)
            };
            busy && since.elapsed > quiet && (!self.raised || since.wire > slack)
        } else {
            // At the start the kernel's buffer hides the link: only bytes
            // tell then, and time only once they have.
            since.wire > slack || (self.raised && since.elapsed > QUIET_NS)
        }
    }

    /// A belief in a faster link was wrong; wait longer next time.
    fn was_wrong(&mut self, pace: f32) {
        if self.raised && pace < 0.7 * self.link {
            self.quiet_ns = (self.quiet_ns * 2.0).min(LONGEST_QUIET_NS);
        }
        self.raised = false;
        self.growth = FIRST_GROWTH;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: f32 = 12.5e6 / 1e9;

    fn since(ms: f32, wire: f32, acked: f32) -> Tally {
        Tally {
            elapsed: ms * 1e6,
            wire,
            acked,
            ..Tally::default()
        }
    }

    fn measured() -> Downstream {
        let mut downstream = Downstream::new();
        downstream.drained(LINK, 100e6, false);
        downstream
    }

    #[test]
    fn what_the_socket_took_is_no_proof_where_the_kernel_tells() {
        let mut downstream = measured();
        assert!(!downstream.not_full(&since(600.0, 60e6, 1e6), true, true));
        assert_eq!(downstream.link, LINK);
        assert!(downstream.not_full(&since(600.0, 60e6, 1e6), false, true));
    }

    #[test]
    fn a_higher_belief_that_nothing_bears_out_is_given_up() {
        let mut downstream = measured();
        assert!(downstream.not_full(&since(600.0, 7e6, 7e6), true, true));
        assert!(downstream.link > LINK);
        assert!(!downstream.not_full(&since(100.0, 1e6, 1e6), true, true));
        assert!(downstream.not_full(&since(250.0, 1e6, 1e6), true, true));
        assert_eq!(downstream.link, LINK);
    }

    #[test]
    fn held_up_acknowledgements_are_no_faster_link() {
        let mut downstream = measured();
        downstream.drained(2.0 * LINK, 20e6, false);
        assert_eq!(downstream.link, LINK);
        downstream.drained(2.0 * LINK, 20e6, false);
        assert_eq!(downstream.link, 2.0 * LINK);
    }
}
