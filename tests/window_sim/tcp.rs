//! One direction of a TCP connection over one bottleneck: a sender's buffer,
//! a queue that drops what it cannot hold, loss, selective acknowledgement,
//! delivery in order.

use super::congestion::{Ack, Congestion, Control, SEGMENT};
use super::window_support::Random;
use std::collections::VecDeque;

/// A path at one time.
#[derive(Debug, Clone, Copy)]
pub struct Path {
    /// Bytes per second.
    pub rate: f64,
    /// Round trip without any queue, in microseconds.
    pub rtt_us: f64,
    /// Bytes that the bottleneck holds.
    pub queue: f64,
    /// The part of the segments that vanishes.
    pub loss: f64,
}

#[derive(Debug, Clone, Copy)]
pub struct Sockets {
    pub congestion: Congestion,
    /// The largest send buffer and receive buffer, in bytes.
    pub send_buffer: f64,
    pub receive_buffer: f64,
}

#[derive(Clone, Copy, PartialEq)]
enum Fate {
    UnderWay,
    Lost,
    Acknowledged,
}

struct Segment {
    bytes: f64,
    sent_us: f64,
    fate: Fate,
    again: bool,
    delivered_then: f64,
    delivered_then_us: f64,
    app_limited: bool,
}

pub struct Tcp {
    path: Path,
    sockets: Sockets,
    control: Control,
    random: Random,
    /// How much is sent at a time: several full segments on fast paths, so
    /// that a run stays short.
    unit: f64,
    unsent: f64,
    in_flight: f64,
    segments: VecDeque<Segment>,
    /// The number of the first segment in `segments`.
    first: usize,
    buffered: f64,
    busy_until_us: f64,
    next_pace_us: f64,
    /// (time, segment, bytes) on their way, in order.
    data: VecDeque<(f64, usize, f64)>,
    acks: VecDeque<(f64, usize)>,
    /// Arrived out of order, from `next_in_order` on.
    arrived: VecDeque<Option<f64>>,
    next_in_order: usize,
    delivered: f64,
    delivered_us: f64,
    srtt_us: f64,
    pub min_rtt_us: f64,
    last_progress_us: f64,
    reduced_us: f64,
    largest_in_flight: f64,
}

impl Tcp {
    pub fn new(path: Path, sockets: Sockets, seed: u64) -> Tcp {
        let per_round = path.rate * path.rtt_us / 1e6;
        let unit = (per_round / 200.0 / SEGMENT).ceil().clamp(1.0, 12.0) * SEGMENT;
        Tcp {
            path,
            sockets,
            control: Control::new(sockets.congestion),
            random: Random::new(seed),
            unit,
            unsent: 0.0,
            in_flight: 0.0,
            segments: VecDeque::new(),
            first: 0,
            buffered: 0.0,
            busy_until_us: 0.0,
            next_pace_us: 0.0,
            data: VecDeque::new(),
            acks: VecDeque::new(),
            arrived: VecDeque::new(),
            next_in_order: 0,
            delivered: 0.0,
            delivered_us: 0.0,
            srtt_us: path.rtt_us,
            min_rtt_us: f64::INFINITY,
            last_progress_us: 0.0,
            reduced_us: -1.0,
            largest_in_flight: 0.0,
        }
    }

    pub fn change(&mut self, path: Path) {
        self.path = path;
    }

    pub fn one_way_us(&self) -> f64 {
        self.path.rtt_us / 2.0
    }

    /// Bytes the application may write now.
    pub fn space(&self) -> f64 {
        let grown = self.control.buffer_factor() * self.control.cwnd();
        let limit = self.sockets.send_buffer.min(grown.max(87_380.0));
        (limit - self.buffered).max(0.0)
    }

    /// Whether the congestion window would let more go than there is to send.
    pub fn starved(&self) -> bool {
        let limit = self.control.cwnd().min(self.sockets.receive_buffer);
        self.unsent == 0.0 && self.in_flight + SEGMENT <= limit
    }

    pub fn write(&mut self, bytes: f64) {
        self.unsent += bytes;
        self.buffered += bytes;
    }

    /// Lets time pass; returns the bytes that arrive in order.
    pub fn advance(&mut self, now_us: f64) -> f64 {
        self.acknowledge(now_us);
        self.check_timeout(now_us);
        self.send(now_us);
        self.arrive(now_us)
    }

    fn arrive(&mut self, now_us: f64) -> f64 {
        while let Some(&(time_us, number, bytes)) = self.data.front() {
            if time_us > now_us {
                break;
            }
            self.data.pop_front();
            let at = number.wrapping_sub(self.next_in_order);
            if number >= self.next_in_order {
                if self.arrived.len() <= at {
                    self.arrived.resize(at + 1, None);
                }
                self.arrived[at] = Some(bytes);
            }
            let back_us = time_us + self.one_way_us();
            let ordered_us = self.acks.back().map_or(back_us, |last| last.0.max(back_us));
            self.acks.push_back((ordered_us, number));
        }
        let mut in_order = 0.0;
        while let Some(&Some(bytes)) = self.arrived.front() {
            self.arrived.pop_front();
            self.next_in_order += 1;
            in_order += bytes;
        }
        in_order
    }

    fn acknowledge(&mut self, now_us: f64) {
        while let Some(&(time_us, number)) = self.acks.front() {
            if time_us > now_us {
                break;
            }
            self.acks.pop_front();
            if number >= self.first && self.segments[number - self.first].fate != Fate::Acknowledged
            {
                self.acknowledge_one(time_us, number - self.first);
            }
        }
        while self
            .segments
            .front()
            .is_some_and(|segment| segment.fate == Fate::Acknowledged)
        {
            let segment = self.segments.pop_front().unwrap();
            self.buffered -= segment.bytes;
            self.first += 1;
        }
    }

    fn acknowledge_one(&mut self, now_us: f64, at: usize) {
        let cwnd_limited = self.cwnd_limited();
        let segment = &mut self.segments[at];
        if segment.fate == Fate::UnderWay {
            self.in_flight -= segment.bytes;
        }
        segment.fate = Fate::Acknowledged;
        let (bytes, sent_us) = (segment.bytes, segment.sent_us);
        self.delivered += bytes;
        self.delivered_us = now_us;
        self.last_progress_us = now_us;
        let rtt_us = (!segment.again).then_some(now_us - sent_us);
        let span_us = (now_us - segment.delivered_then_us).max(1.0);
        let ack = Ack {
            now_us,
            bytes,
            rtt_us,
            delivery_rate: (self.delivered - segment.delivered_then) * 1e6 / span_us,
            app_limited: segment.app_limited,
            cwnd_limited,
        };
        if let Some(rtt_us) = rtt_us {
            self.min_rtt_us = self.min_rtt_us.min(rtt_us);
            self.srtt_us += (rtt_us - self.srtt_us) / 8.0;
        }
        self.control.acknowledged(&ack);
        self.mark_lost(now_us, sent_us);
    }

    fn cwnd_limited(&self) -> bool {
        let cwnd = self.control.cwnd();
        self.in_flight + self.unit >= cwnd
            || cwnd < 2.0 * self.largest_in_flight && self.reduced_us < 0.0
    }

    /// What was sent before something that has been acknowledged is lost: the
    /// path keeps the order.
    fn mark_lost(&mut self, now_us: f64, sent_us: f64) {
        let mut newest_lost = -1.0_f64;
        for segment in &mut self.segments {
            if segment.fate == Fate::UnderWay && segment.sent_us < sent_us {
                segment.fate = Fate::Lost;
                self.in_flight -= segment.bytes;
                newest_lost = newest_lost.max(segment.sent_us);
            } else if segment.sent_us > sent_us && !segment.again {
                break;
            }
        }
        if newest_lost > self.reduced_us {
            self.reduced_us = now_us;
            self.largest_in_flight = 0.0;
            self.control.lost(now_us);
        }
    }

    fn check_timeout(&mut self, now_us: f64) {
        let timeout_us = (3.0 * self.srtt_us).max(200_000.0);
        if self.segments.is_empty() {
            self.last_progress_us = now_us;
        } else if now_us - self.last_progress_us > timeout_us {
            self.last_progress_us = now_us;
            self.reduced_us = now_us;
            self.control.timed_out();
            for segment in &mut self.segments {
                if segment.fate == Fate::UnderWay {
                    segment.fate = Fate::Lost;
                    self.in_flight -= segment.bytes;
                }
            }
        }
    }

    fn send(&mut self, now_us: f64) {
        let limit = self.control.cwnd().min(self.sockets.receive_buffer);
        let mut lost = 0;
        while self.in_flight + SEGMENT <= limit.max(SEGMENT) {
            if self.control.pacing().is_some() && self.next_pace_us > now_us {
                return;
            }
            while lost < self.segments.len() && self.segments[lost].fate != Fate::Lost {
                lost += 1;
            }
            if lost < self.segments.len() {
                self.transmit(now_us, lost, true);
                lost += 1;
            } else if self.unsent > 0.0 {
                let bytes = self.unsent.min(self.unit);
                self.unsent -= bytes;
                self.segments.push_back(self.segment(bytes, now_us));
                self.transmit(now_us, self.segments.len() - 1, false);
            } else {
                return;
            }
        }
    }

    fn segment(&self, bytes: f64, now_us: f64) -> Segment {
        Segment {
            bytes,
            sent_us: now_us,
            fate: Fate::UnderWay,
            again: false,
            delivered_then: self.delivered,
            delivered_then_us: if self.in_flight == 0.0 {
                now_us
            } else {
                self.delivered_us
            },
            app_limited: self.unsent == 0.0,
        }
    }

    fn transmit(&mut self, now_us: f64, at: usize, again: bool) {
        let delivered = (self.delivered, self.delivered_us);
        let segment = &mut self.segments[at];
        segment.fate = Fate::UnderWay;
        segment.again = again;
        // Later than everything else of this moment, so that order is known.
        segment.sent_us = now_us + at as f64 * 1e-6;
        if again {
            (segment.delivered_then, segment.delivered_then_us) = delivered;
        }
        let bytes = segment.bytes;
        self.in_flight += bytes;
        self.largest_in_flight = self.largest_in_flight.max(self.in_flight);
        if let Some(rate) = self.control.pacing() {
            self.next_pace_us = self.next_pace_us.max(now_us - 1_000.0) + bytes * 1e6 / rate;
        }
        let waiting = (self.busy_until_us - now_us).max(0.0) * self.path.rate / 1e6;
        let segments = (bytes / SEGMENT).ceil();
        let kept = (1.0 - self.path.loss).powf(segments);
        let survives = (self.random.below(1 << 30) as f64) < kept * (1u64 << 30) as f64;
        if waiting > 0.0 && waiting + bytes > self.path.queue {
            return;
        }
        self.busy_until_us = self.busy_until_us.max(now_us) + bytes * 1e6 / self.path.rate;
        if survives {
            let there_us = self.busy_until_us + self.one_way_us();
            let ordered_us = self
                .data
                .back()
                .map_or(there_us, |last| last.0.max(there_us));
            self.data.push_back((ordered_us, self.first + at, bytes));
        }
    }
}
