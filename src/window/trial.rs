#![forbid(unsafe_code)]
//! Trying another window for its effect on the rate.
//!
//! The receiver cannot see why a sender is slow: whether it waits for credit,
//! for the path or for its disk looks the same (by Little's law credit is used
//! up one window after it was granted, whatever the reason). The minimum round
//! trip tells, as long as it is right; after a change of route, through a jump
//! host or on a pipe it is not. There the window is changed and the rate
//! decides whether the change stays.

use super::rounds::{Meter, Totals};

/// A larger window is kept if the rate rises by a fifth: half of what doubling
/// could bring where the window was the limit for part of the time, and more
/// than the noise of a TCP connection over several round trips.
const RISE: (u64, u64) = (6, 5);

/// A smaller window is kept if no more than a twentieth of the rate is lost.
const FALL: (u64, u64) = (19, 20);

/// The wait after a failed trial doubles between these, in microseconds.
const FIRST_WAIT_US: u64 = 10_000_000;
const LAST_WAIT_US: u64 = 160_000_000;

/// No verdict on less time than this, in microseconds: the scheduler of a busy
/// machine alone makes gaps of 10 ms.
const LEAST_MEASURE_US: u64 = 50_000;

/// A trial is given up after this long without a verdict.
const LONGEST_US: u64 = 60_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    Down,
}

/// What a finished trial says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The new window stays; its rate in bytes per second.
    Keep(u64),
    /// Back to this window.
    Undo(u32),
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// The peer still has credit of the larger window.
    Swallowing,
    /// Until this much was received, what comes was sent under the old window.
    Settling(u64),
    /// Until this much was received, what comes tells.
    Measuring(Meter, u64),
}

#[derive(Debug)]
struct Running {
    direction: Direction,
    previous: u32,
    base_rate: u64,
    start_us: u64,
    phase: Phase,
}

/// The trials of one channel, at most one at a time.
#[derive(Debug, Default)]
pub(super) struct Trials {
    running: Option<Running>,
    waits: [Wait; 2],
    pub started: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Wait {
    next_us: u64,
    wait_us: u64,
}

impl Trials {
    pub fn running(&self) -> Option<Direction> {
        self.running.as_ref().map(|running| running.direction)
    }

    pub fn may_start(&self, direction: Direction, now_us: u64) -> bool {
        self.running.is_none() && now_us >= self.waits[direction as usize].next_us
    }

    /// No trial in this direction before the first wait is over.
    pub fn postpone(&mut self, direction: Direction, now_us: u64) {
        self.waits[direction as usize].next_us = now_us.saturating_add(FIRST_WAIT_US);
    }

    /// The window changed from `previous`, at which `base_rate` bytes per
    /// second came.
    pub fn start(
        &mut self,
        direction: Direction,
        now_us: u64,
        previous: u32,
        base_rate: u64,
        totals: Totals,
    ) {
        self.started = self.started.saturating_add(1);
        let phase = match direction {
            // Two turns: the new credit takes one to have an effect, and TCP
            // some round trips to use it.
            Direction::Up => Phase::Settling(turns(totals, 2, previous)),
            Direction::Down => Phase::Swallowing,
        };
        self.running = Some(Running {
            direction,
            previous,
            base_rate,
            start_us: now_us,
            phase,
        });
    }

    /// Ends a trial without a verdict; the window it would go back to.
    pub fn abandon(&mut self) -> Option<(Direction, u32)> {
        self.running
            .take()
            .map(|running| (running.direction, running.previous))
    }

    /// Looks at a running trial. `target` is the window being tried, `held`
    /// what the peer still has or has sent of the old one.
    pub fn step(&mut self, now_us: u64, target: u32, held: u64, totals: Totals) -> Option<Verdict> {
        let running = self.running.as_mut()?;
        let late = now_us.saturating_sub(running.start_us) > LONGEST_US;
        let turn = target.min(running.previous);
        let rate = match running.phase {
            Phase::Swallowing => {
                if held <= u64::from(target) || late {
                    running.phase = Phase::Settling(turns(totals, 1, turn));
                }
                return None;
            }
            Phase::Settling(until) => {
                if totals.received >= until || late {
                    let meter = Meter::start(now_us, totals);
                    running.phase = Phase::Measuring(meter, turns(totals, 2, turn));
                }
                return None;
            }
            Phase::Measuring(meter, until) => {
                let measured =
                    totals.received >= until && meter.elapsed_us(now_us) >= LEAST_MEASURE_US;
                if !measured && !late {
                    return None;
                }
                meter.rate(now_us, totals)
            }
        };
        let (direction, previous) = (running.direction, running.previous);
        let (enough, of) = match direction {
            Direction::Up => RISE,
            Direction::Down => FALL,
        };
        let keep = rate.saturating_mul(of) >= running.base_rate.saturating_mul(enough);
        self.running = None;
        self.settle(direction, now_us, keep);
        Some(if keep {
            Verdict::Keep(rate)
        } else {
            Verdict::Undo(previous)
        })
    }

    fn settle(&mut self, direction: Direction, now_us: u64, kept: bool) {
        let wait = &mut self.waits[direction as usize];
        wait.wait_us = match (kept, wait.wait_us) {
            (true, _) => 0,
            (false, 0) => FIRST_WAIT_US,
            (false, before) => (before * 2).min(LAST_WAIT_US),
        };
        wait.next_us = now_us.saturating_add(wait.wait_us);
    }
}

/// What will have been received after `count` more windows of this size.
fn turns(totals: Totals, count: u64, window: u32) -> u64 {
    totals.received.saturating_add(count * u64::from(window))
}
