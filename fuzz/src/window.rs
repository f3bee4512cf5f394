//! The window's state machine: the invariants of `sshflow::window` for any
//! sequence of calls.

use sshflow::window::{ChannelId, Kind, LatencyMode, Link, Policy, WindowConfig, WINDOW_LIMIT};
use sshflow::Error;

use super::input::Input;

const MIB: u32 = 1 << 20;
const NUMBERS: [u32; 8] = [
    0,
    1,
    32_768,
    2 * MIB,
    1 << 30,
    WINDOW_LIMIT,
    WINDOW_LIMIT + 1,
    u32::MAX,
];

struct Books {
    id: ChannelId,
    granted: u64,
    received: u64,
    consumed: u64,
    credit: u64,
    /// Outside the budget: the host granted by itself, or the peer overran.
    aside: bool,
}

struct Session<'a> {
    input: Input<'a>,
    config: WindowConfig,
    link: Link,
    channels: Vec<Books>,
    now: u64,
    cap: u32,
}

/// Four bytes for the configuration; then steps.
pub fn window(data: &[u8]) {
    let mut input = Input::new(data);
    let config = WindowConfig {
        policy: input.pick(&[Policy::Auto, Policy::Fixed]),
        window_max: input.pick(&[4 * MIB, 64 * MIB, 1, WINDOW_LIMIT]),
        budget: input.pick(&[64 << 20, 0, 3 << 20, u64::MAX]),
        latency_mode: input.pick(&[LatencyMode::Auto, LatencyMode::Off]),
        fixed_window: 0,
    };
    let mut session = Session {
        input,
        config,
        link: Link::new(config).unwrap(),
        channels: Vec::new(),
        now: 0,
        cap: 15 * MIB,
    };
    while !session.input.is_empty() {
        session.step();
        session.check();
    }
}

impl Session<'_> {
    fn number(&mut self) -> u32 {
        match self.input.byte() {
            odd @ 0..=31 => NUMBERS[usize::from(odd) % NUMBERS.len()],
            32..=63 => self.input.u32(),
            _ => u32::from(self.input.u16()),
        }
    }

    fn tick(&mut self) -> u64 {
        match self.input.byte() {
            255 => return self.input.u64(),
            254 => return self.now.saturating_sub(u64::from(self.input.u32())),
            steps => self.now = self.now.saturating_add(u64::from(steps) * 500),
        }
        self.now
    }

    fn step(&mut self) {
        let what = self.input.byte();
        if self.channels.is_empty() || what >= 250 {
            return self.open();
        }
        let at = usize::from(what) % self.channels.len();
        let now = self.tick();
        match what / 10 {
            0..=6 => self.receive(at, now),
            7..=12 => self.consume(at, now),
            13..=19 => self.adjust(at, now),
            20 => {
                let sample = self.number();
                assert_eq!(self.link.rtt(now, sample).is_err(), sample == u32::MAX);
            }
            21 => {
                let bytes = self.number();
                self.link.require(self.channels[at].id, bytes).unwrap();
            }
            22 => self.grant(at, now),
            23 => self.peer(),
            _ => {
                let id = self.channels.swap_remove(at).id;
                self.link.close(id).unwrap();
                assert_eq!(self.link.adjust(id, now), Err(Error::State));
            }
        }
    }

    fn open(&mut self) {
        let kind = self.input.pick(&[Kind::Bulk, Kind::Interactive, Kind::X11]);
        let initial = self.number();
        let max_packet = self.number();
        if self.channels.len() == 20 {
            return;
        }
        match self.link.open(kind, initial, max_packet) {
            Ok(id) => self.channels.push(Books {
                id,
                granted: initial.into(),
                received: 0,
                consumed: 0,
                credit: initial.into(),
                aside: initial > self.cap,
            }),
            Err(error) => {
                assert_eq!(error, Error::InvalidArgument);
                assert!(max_packet == 0 || initial > WINDOW_LIMIT);
            }
        }
    }

    fn receive(&mut self, at: usize, now: u64) {
        let bytes = self.number();
        let books = &mut self.channels[at];
        self.link.received(books.id, now, bytes).unwrap();
        books.received += u64::from(bytes);
        books.aside |= u64::from(bytes) > books.credit;
        books.credit = books.credit.saturating_sub(bytes.into());
    }

    fn consume(&mut self, at: usize, now: u64) {
        let any = self.number();
        let books = &mut self.channels[at];
        let backlog = books.received - books.consumed;
        let bytes = match any {
            0 => u32::try_from(backlog).unwrap_or(u32::MAX),
            bytes => bytes,
        };
        let answer = self.link.consumed(books.id, now, bytes);
        if u64::from(bytes) <= backlog {
            answer.unwrap();
            books.consumed += u64::from(bytes);
        } else {
            assert_eq!(answer, Err(Error::State));
        }
    }

    fn adjust(&mut self, at: usize, now: u64) {
        let books = &mut self.channels[at];
        let increment = u64::from(self.link.adjust(books.id, now).unwrap());
        books.granted += increment;
        books.credit += increment;
        assert!(increment == 0 || books.credit <= self.cap.into());
        assert!(books.credit > 0 || books.received > books.consumed);
    }

    fn grant(&mut self, at: usize, now: u64) {
        let bytes = self.number();
        let books = &mut self.channels[at];
        let answer = self.link.granted(books.id, now, bytes);
        if books.credit + u64::from(bytes) > self.cap.into() {
            assert_eq!(answer, Err(Error::InvalidArgument));
            return;
        }
        answer.unwrap();
        books.granted += u64::from(bytes);
        books.credit += u64::from(bytes);
        books.aside |= bytes > 0;
    }

    fn peer(&mut self) {
        let len = usize::from(self.input.byte());
        let known: [(&[u8], u32, u32); 3] = [
            (b"SSH-2.0-OpenSSH_3.8", 0, 2 * MIB),
            (b"SSH-2.0-OpenSSH_10.0", 0, 15 * MIB),
            (b"SSH-2.0-OpenSSH_10.0", 1, WINDOW_LIMIT),
        ];
        match known.get(len) {
            Some(&(ident, flags, cap)) => {
                self.link.peer(ident, flags).unwrap();
                self.cap = cap;
            }
            None => {
                // Any text: what it does is seen in the statistics only.
                let ident = self.input.bytes(len);
                let _ = self.link.peer(ident, 0);
                let (ident, flags, cap) = known[1];
                self.link.peer(ident, flags).unwrap();
                self.cap = cap;
            }
        }
    }

    fn check(&self) {
        let mut excess = 0;
        for books in &self.channels {
            let stats = self.link.stats(books.id).unwrap();
            assert_eq!(u64::from(stats.credit), books.credit);
            assert_eq!(stats.granted, books.granted);
            assert_eq!(stats.backlog, books.received - books.consumed);
            assert!(stats.credit <= WINDOW_LIMIT);
            let held = u64::from(stats.credit) + stats.backlog;
            assert!(u64::from(stats.window) >= held.min(u32::MAX.into()));
            let target = self.link.target(books.id).unwrap();
            assert_eq!(target.window, stats.window);
            assert!(target.outstanding > 0 && target.outstanding <= target.window);
            if !books.aside {
                excess += u64::from(stats.window.saturating_sub(stats.stock));
            }
        }
        assert!(excess <= self.config.budget, "{excess} bytes");
    }
}
