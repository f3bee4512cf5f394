//! Congestion control: the window in bytes that a sender may have under way.
//! Simplified from RFC 5681 (Reno), RFC 9438 (CUBIC) with HyStart, and BBR
//! version 1.

/// Bytes in a full segment.
pub const SEGMENT: f64 = 1448.0;

/// Segments that may be sent before the first acknowledgement (RFC 6928).
const INITIAL_SEGMENTS: f64 = 10.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Congestion {
    Reno,
    Cubic,
    Bbr,
}

/// What one acknowledgement says.
pub struct Ack {
    pub now_us: f64,
    pub bytes: f64,
    pub rtt_us: Option<f64>,
    /// Bytes per second over the time the acknowledged segment was under way.
    pub delivery_rate: f64,
    /// The sender had nothing more to send when it sent it.
    pub app_limited: bool,
    /// The congestion window was in use.
    pub cwnd_limited: bool,
}

pub enum Control {
    Loss(LossBased),
    Bbr(Bbr),
}

impl Control {
    pub fn new(kind: Congestion) -> Control {
        match kind {
            Congestion::Bbr => Control::Bbr(Bbr::new()),
            Congestion::Reno => Control::Loss(LossBased::new(false)),
            Congestion::Cubic => Control::Loss(LossBased::new(true)),
        }
    }

    pub fn cwnd(&self) -> f64 {
        match self {
            Control::Loss(control) => control.cwnd,
            Control::Bbr(control) => control.cwnd(),
        }
    }

    /// Bytes per second, where the sender paces itself.
    pub fn pacing(&self) -> Option<f64> {
        match self {
            Control::Loss(_) => None,
            Control::Bbr(control) => control.pacing(),
        }
    }

    /// How many congestion windows the kernel lets a socket buffer
    /// (`sndbuf_expand` of the Linux controls).
    pub fn buffer_factor(&self) -> f64 {
        match self {
            Control::Loss(_) => 2.0,
            Control::Bbr(_) => 3.0,
        }
    }

    pub fn acknowledged(&mut self, ack: &Ack) {
        match self {
            Control::Loss(control) => control.acknowledged(ack),
            Control::Bbr(control) => control.acknowledged(ack),
        }
    }

    pub fn lost(&mut self, now_us: f64) {
        if let Control::Loss(control) = self {
            control.lost(now_us);
        }
    }

    pub fn timed_out(&mut self) {
        if let Control::Loss(control) = self {
            control.timed_out();
        }
    }
}

pub struct LossBased {
    cubic: bool,
    cwnd: f64,
    ssthresh: f64,
    min_rtt_us: f64,
    hystart: HyStart,
    /// CUBIC: segments at the last loss, and when growth began again.
    largest: f64,
    epoch_us: Option<f64>,
    start_of_epoch: f64,
}

const CUBIC_C: f64 = 0.4;
const CUBIC_BETA: f64 = 0.7;

/// HyStart's delay test: slow start ends when the first samples of a round
/// trip are all longer than the minimum.
#[derive(Default)]
struct HyStart {
    round_end_us: f64,
    samples: u32,
    least_us: f64,
}

const HYSTART_SAMPLES: u32 = 8;

impl HyStart {
    fn sample(&mut self, now_us: f64, rtt_us: f64, min_rtt_us: f64) -> bool {
        if now_us >= self.round_end_us {
            *self = HyStart {
                round_end_us: now_us + rtt_us,
                samples: 0,
                least_us: f64::INFINITY,
            };
        }
        self.samples += 1;
        if self.samples <= HYSTART_SAMPLES {
            self.least_us = self.least_us.min(rtt_us);
        }
        let delay_us = (min_rtt_us / 8.0).clamp(4_000.0, 16_000.0);
        self.samples == HYSTART_SAMPLES && self.least_us > min_rtt_us + delay_us
    }
}

impl LossBased {
    fn new(cubic: bool) -> LossBased {
        LossBased {
            cubic,
            cwnd: INITIAL_SEGMENTS * SEGMENT,
            ssthresh: f64::INFINITY,
            min_rtt_us: f64::INFINITY,
            hystart: HyStart::default(),
            largest: 0.0,
            epoch_us: None,
            start_of_epoch: 0.0,
        }
    }

    fn acknowledged(&mut self, ack: &Ack) {
        if let Some(rtt_us) = ack.rtt_us {
            self.min_rtt_us = self.min_rtt_us.min(rtt_us);
            let queue_seen = self.hystart.sample(ack.now_us, rtt_us, self.min_rtt_us);
            if self.cubic && queue_seen && self.cwnd < self.ssthresh {
                self.ssthresh = self.cwnd;
            }
        }
        if !ack.cwnd_limited {
            self.epoch_us = None;
            return;
        }
        if self.cwnd < self.ssthresh {
            self.cwnd += ack.bytes;
        } else if self.cubic {
            self.cwnd += self.cubic_step(ack);
        } else {
            self.cwnd += SEGMENT * ack.bytes / self.cwnd;
        }
    }

    fn cubic_step(&mut self, ack: &Ack) -> f64 {
        let segments = self.cwnd / SEGMENT;
        let epoch_us = *self.epoch_us.get_or_insert_with(|| {
            self.start_of_epoch = segments;
            self.largest = self.largest.max(segments);
            ack.now_us
        });
        let seconds = (ack.now_us - epoch_us + self.min_rtt_us) / 1e6;
        let k = ((self.largest - self.start_of_epoch) / CUBIC_C).cbrt();
        let target = self.largest + CUBIC_C * (seconds - k).powi(3);
        let rounds = seconds * 1e6 / self.min_rtt_us;
        let friendly = self.start_of_epoch + 0.53 * rounds;
        let gain = (target.max(friendly) - segments).clamp(0.01, segments / 2.0);
        SEGMENT * gain * ack.bytes / self.cwnd
    }

    fn lost(&mut self, _now_us: f64) {
        let beta = if self.cubic { CUBIC_BETA } else { 0.5 };
        let segments = self.cwnd / SEGMENT;
        // Fast convergence: leave room for a newcomer.
        self.largest = match segments < self.largest {
            true => segments * (1.0 + beta) / 2.0,
            false => segments,
        };
        self.epoch_us = None;
        self.cwnd = (self.cwnd * beta).max(2.0 * SEGMENT);
        self.ssthresh = self.cwnd;
    }

    fn timed_out(&mut self) {
        self.ssthresh = (self.cwnd / 2.0).max(2.0 * SEGMENT);
        self.largest = self.cwnd / SEGMENT;
        self.epoch_us = None;
        self.cwnd = SEGMENT;
    }
}

const STARTUP_GAIN: f64 = 2.885;
const PROBE_GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const BANDWIDTH_ROUNDS: usize = 10;

#[derive(PartialEq)]
enum Phase {
    Startup,
    Drain,
    Probe(usize),
}

pub struct Bbr {
    phase: Phase,
    /// The best delivery rate of each of the last round trips.
    rates: [f64; BANDWIDTH_ROUNDS],
    round: usize,
    round_end_us: f64,
    full_rate: f64,
    flat_rounds: u32,
    min_rtt_us: f64,
    min_rtt_seen_us: f64,
}

impl Bbr {
    fn new() -> Bbr {
        Bbr {
            phase: Phase::Startup,
            rates: [0.0; BANDWIDTH_ROUNDS],
            round: 0,
            round_end_us: 0.0,
            full_rate: 0.0,
            flat_rounds: 0,
            min_rtt_us: f64::INFINITY,
            min_rtt_seen_us: 0.0,
        }
    }

    fn rate(&self) -> f64 {
        self.rates.iter().copied().fold(0.0, f64::max)
    }

    fn gain(&self) -> f64 {
        match self.phase {
            Phase::Startup => STARTUP_GAIN,
            Phase::Drain => 1.0 / STARTUP_GAIN,
            Phase::Probe(step) => PROBE_GAINS[step],
        }
    }

    fn cwnd(&self) -> f64 {
        let least = INITIAL_SEGMENTS * SEGMENT;
        if self.rate() == 0.0 {
            return least;
        }
        let gain = if self.phase == Phase::Startup {
            STARTUP_GAIN
        } else {
            2.0
        };
        (gain * self.rate() * self.min_rtt_us / 1e6 + 3.0 * SEGMENT).max(least)
    }

    fn pacing(&self) -> Option<f64> {
        (self.rate() > 0.0).then(|| (self.gain() * self.rate()).max(SEGMENT * 10.0))
    }

    fn acknowledged(&mut self, ack: &Ack) {
        if let Some(rtt_us) = ack.rtt_us {
            let stale = ack.now_us - self.min_rtt_seen_us > 10e6;
            if rtt_us <= self.min_rtt_us || stale {
                self.min_rtt_us = rtt_us;
                self.min_rtt_seen_us = ack.now_us;
            }
        }
        if ack.now_us >= self.round_end_us {
            self.round_end_us = ack.now_us + self.min_rtt_us;
            self.next_round(ack.app_limited);
        }
        let rate = &mut self.rates[self.round % BANDWIDTH_ROUNDS];
        if !ack.app_limited || ack.delivery_rate > *rate {
            *rate = rate.max(ack.delivery_rate);
        }
    }

    fn next_round(&mut self, app_limited: bool) {
        if app_limited && self.round > 0 {
            // Without enough to send nothing is learned about the path.
            let kept = self.rates[self.round % BANDWIDTH_ROUNDS];
            self.round += 1;
            self.rates[self.round % BANDWIDTH_ROUNDS] = kept.max(self.rate());
            return;
        }
        let rate = self.rate();
        self.round += 1;
        self.rates[self.round % BANDWIDTH_ROUNDS] = 0.0;
        match self.phase {
            Phase::Startup if rate > self.full_rate * 1.25 => {
                self.full_rate = rate;
                self.flat_rounds = 0;
            }
            Phase::Startup => {
                self.flat_rounds += 1;
                if self.flat_rounds >= 3 {
                    self.phase = Phase::Drain;
                }
            }
            Phase::Drain => self.phase = Phase::Probe(0),
            Phase::Probe(step) => self.phase = Phase::Probe((step + 1) % PROBE_GAINS.len()),
        }
    }
}
