#![forbid(unsafe_code)]
//! Trying another window for its effect on the rate.
//!
//! The receiver cannot see why a sender is slow: whether it waits for credit,
//! for the path or for its disk looks the same (by Little's law credit is used
//! up one window after it was granted, whatever the reason). The minimum round
//! trip tells, as long as it is right; after a change of route, through a jump
//! host or on a pipe it is not. There the window is changed, and the rate of
//! the connection decides whether the change stays.

use super::rounds::Meter;
use super::view::View;

/// A larger window is kept if the rate rises by a fifth: less than half of
/// what doubling brings where the window is the limit, and more than the noise
/// of a TCP connection over several round trips.
const RISE: (u64, u64) = (6, 5);

/// A smaller window is undone if the rate falls by more than half of what the
/// window fell by. Where the window is the limit the rate falls by as much;
/// where it is not, by nothing.
const FALL: u64 = 2;

/// How many windows pass before the effect of a larger one is measured: its
/// credit takes one to arrive, and TCP some round trips to use it. Slow start
/// needs one, CUBIC after a loss far more: it would be asked in vain, but where
/// a smaller window has cost rate the answer is worth waiting for.
const SETTLING_TURNS: u64 = 2;
const PATIENT_TURNS: u64 = 10;

/// The wait after a failed trial doubles between these, in microseconds.
const FIRST_WAIT_US: u64 = 10_000_000;
const LAST_WAIT_US: u64 = 160_000_000;

/// No verdict on less time than this, in microseconds: the scheduler of a busy
/// machine alone makes gaps of 10 ms.
const LEAST_MEASURE_US: u64 = 50_000;

/// A trial in which the peer sends too little for a verdict ends after this.
const LONGEST_US: u64 = 60_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    Down,
}

/// What a finished trial says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The new window stays; the connection's rate with it, in bytes per
    /// second.
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

    /// The window grows from what it is in `view`, with which the connection
    /// had `base_rate` bytes per second. If it is `known` to be the limit, the
    /// sender is given time.
    pub fn start_up(&mut self, view: &View, base_rate: u64, known: bool) {
        let settling = if known { PATIENT_TURNS } else { SETTLING_TURNS };
        let phase = Phase::Settling(turns(view, settling, view.target));
        self.start(Direction::Up, view, base_rate, phase);
    }

    /// The window shrinks, likewise.
    pub fn start_down(&mut self, view: &View, base_rate: u64) {
        self.start(Direction::Down, view, base_rate, Phase::Swallowing);
    }

    fn start(&mut self, direction: Direction, view: &View, base_rate: u64, phase: Phase) {
        self.started = self.started.saturating_add(1);
        self.running = Some(Running {
            direction,
            previous: view.target,
            base_rate,
            start_us: view.now_us,
            phase,
        });
    }

    /// Ends a trial without a verdict.
    pub fn abandon(&mut self) {
        self.running = None;
    }

    /// Looks at a running trial, whose window is the target of `view`.
    pub fn step(&mut self, view: &View) -> Option<(Direction, Verdict)> {
        let running = self.running.as_mut()?;
        let late = view.now_us.saturating_sub(running.start_us) > LONGEST_US;
        let turn = view.target.min(running.previous);
        let rate = match running.phase {
            Phase::Swallowing => {
                if view.held <= u64::from(view.target) || late {
                    running.phase = Phase::Settling(turns(view, 1, turn));
                }
                return None;
            }
            Phase::Settling(until) => {
                if view.totals.received >= until || late {
                    let meter = Meter::start(view.now_us, view.all);
                    running.phase = Phase::Measuring(meter, turns(view, 2, turn));
                }
                return None;
            }
            Phase::Measuring(meter, until) => {
                let elapsed_us = meter.elapsed_us(view.now_us);
                let enough = view.totals.received >= until && elapsed_us >= LEAST_MEASURE_US;
                if !enough && !late {
                    return None;
                }
                meter.rate(view.now_us, view.all)
            }
        };
        let (direction, previous) = (running.direction, running.previous);
        let keep = rate >= least_rate(running, view.target);
        self.running = None;
        self.settle(direction, view.now_us, keep);
        let verdict = match keep {
            true => Verdict::Keep(rate),
            false => Verdict::Undo(previous),
        };
        Some((direction, verdict))
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

/// The rate with which the new window stays, in bytes per second.
fn least_rate(running: &Running, target: u32) -> u64 {
    let base = running.base_rate;
    match running.direction {
        Direction::Up => base / RISE.1 * RISE.0,
        Direction::Down => {
            let previous = u64::from(running.previous.max(1));
            let smaller = previous.saturating_sub(u64::from(target));
            let part = u128::from(base) * u128::from(smaller) / u128::from(previous);
            base - part as u64 / FALL
        }
    }
}

/// What will have been received after `count` more windows of this size.
fn turns(view: &View, count: u64, window: u32) -> u64 {
    view.totals
        .received
        .saturating_add(count * u64::from(window))
}
