//! What the documentation of `sshflow::window` promises, under arbitrary
//! sequences of calls with honest and with hostile numbers.

mod window_support;

use sshflow::window::{ChannelId, Kind, LatencyMode, Link, Policy, WindowConfig, WINDOW_LIMIT};
use sshflow::Error;
use window_support::Random;

/// What the test itself knows of a channel.
#[derive(Clone)]
struct Books {
    id: ChannelId,
    granted: u64,
    received: u64,
    consumed: u64,
    /// Granted less received, never below 0.
    credit: u64,
    /// The host has granted by itself, beyond what the policy answers for.
    host_granted: bool,
}

struct Session {
    random: Random,
    config: WindowConfig,
    link: Link,
    channels: Vec<Books>,
    now: u64,
    cap: u32,
    largest_initial: u32,
}

const NUMBERS: [u32; 8] = [0, 1, 2, 32_768, 2 << 20, 1 << 30, WINDOW_LIMIT, u32::MAX];

impl Session {
    fn new(seed: u64) -> Session {
        let mut random = Random::new(seed);
        let mib = 1 << 20;
        let config = WindowConfig {
            policy: if random.once_in(5) {
                Policy::Fixed
            } else {
                Policy::Auto
            },
            window_max: [1, 4 * mib, 64 * mib, WINDOW_LIMIT][random.below(4) as usize],
            budget: [0, 3 << 20, 16 << 20, 64 << 20, u64::MAX][random.below(5) as usize],
            latency_mode: if random.once_in(3) {
                LatencyMode::Off
            } else {
                LatencyMode::Auto
            },
            fixed_window: [0, 1, 8 * mib, WINDOW_LIMIT][random.below(4) as usize],
        };
        Session {
            random,
            config,
            link: Link::new(config).unwrap(),
            channels: Vec::new(),
            now: 0,
            cap: 15 << 20,
            largest_initial: 0,
        }
    }

    fn number(&mut self) -> u32 {
        match self.random.below(4) {
            0 => NUMBERS[self.random.below(8) as usize],
            1 => self.random.next() as u32,
            _ => self.random.below(200_000) as u32,
        }
    }

    fn tick(&mut self) -> u64 {
        match self.random.below(200) {
            0 => self.random.next(),
            1 => 0,
            2 => u64::MAX,
            3..=20 => self.now.saturating_sub(self.random.below(1_000_000)),
            _ => {
                self.now = self.now.saturating_add(self.random.below(200_000));
                self.now
            }
        }
    }

    fn open(&mut self) {
        let kind = [Kind::Bulk, Kind::Interactive, Kind::X11][self.random.below(3) as usize];
        let initial = match self.random.below(4) {
            0 => self.number(),
            1 => 0,
            _ => 2 << 20,
        };
        let max_packet = self.number();
        match self.link.open(kind, initial, max_packet) {
            Ok(id) => {
                let credit = u64::from(initial);
                self.largest_initial = self.largest_initial.max(initial);
                self.channels.push(Books {
                    id,
                    granted: credit,
                    received: 0,
                    consumed: 0,
                    credit,
                    host_granted: initial > self.cap || self.config.fixed_window != 0,
                });
            }
            Err(error) => {
                assert_eq!(error, Error::InvalidArgument);
                assert!(max_packet == 0 || initial > WINDOW_LIMIT);
            }
        }
    }

    fn step(&mut self) {
        if self.channels.is_empty() || self.random.once_in(400) && self.channels.len() < 12 {
            return self.open();
        }
        let at = self.random.below(self.channels.len() as u64) as usize;
        let mut books = self.channels[at].clone();
        let now = self.tick();
        match self.random.below(1_000) {
            0..=400 => self.receive(&mut books, now),
            401..=700 => self.consume(&mut books, now),
            701..=960 => self.adjust(&mut books, now),
            961..=970 => {
                let sample = self.number();
                assert_eq!(self.link.rtt(now, sample).is_err(), sample == u32::MAX);
            }
            971..=980 => {
                let bytes = self.number();
                self.link.require(books.id, bytes).unwrap();
            }
            981..=985 => self.grant(&mut books, now),
            986..=989 => self.peer(),
            990 => {
                self.link.close(books.id).unwrap();
                assert_eq!(self.link.adjust(books.id, now), Err(Error::State));
                self.channels.remove(at);
                return self.check_all();
            }
            _ => {}
        }
        self.channels[at] = books;
        self.check_all();
    }

    fn receive(&mut self, books: &mut Books, now: u64) {
        let honest = self.random.below(books.credit.min(300_000) + 1) as u32;
        let bytes = if self.random.once_in(300) {
            self.number()
        } else {
            honest
        };
        self.link.received(books.id, now, bytes).unwrap();
        books.received += u64::from(bytes);
        books.credit = books.credit.saturating_sub(u64::from(bytes));
    }

    fn consume(&mut self, books: &mut Books, now: u64) {
        let backlog = books.received - books.consumed;
        let honest = match self.random.once_in(2) {
            true => backlog.min(u64::from(u32::MAX)) as u32,
            false => self.random.below(backlog.min(400_000) + 1) as u32,
        };
        let bytes = if self.random.once_in(300) {
            self.number()
        } else {
            honest
        };
        let before = self.link.stats(books.id).unwrap();
        let answer = self.link.consumed(books.id, now, bytes);
        if u64::from(bytes) <= backlog {
            answer.unwrap();
            books.consumed += u64::from(bytes);
        } else {
            assert_eq!(answer, Err(Error::State));
            assert_eq!(self.link.stats(books.id).unwrap(), before);
        }
    }

    fn adjust(&mut self, books: &mut Books, now: u64) {
        let increment = u64::from(self.link.adjust(books.id, now).unwrap());
        books.granted += increment;
        books.credit += increment;
        if increment > 0 {
            assert!(
                books.credit <= u64::from(self.cap),
                "an adjust stays within the peer's cap"
            );
        }
        if books.received == books.consumed {
            assert!(
                books.credit > 0,
                "an empty backlog never goes without credit"
            );
        }
    }

    fn grant(&mut self, books: &mut Books, now: u64) {
        let bytes = self.number();
        let allowed = books.credit + u64::from(bytes) <= u64::from(self.cap);
        let answer = self.link.granted(books.id, now, bytes);
        if !allowed {
            assert_eq!(answer, Err(Error::InvalidArgument));
            return;
        }
        answer.unwrap();
        books.granted += u64::from(bytes);
        books.credit += u64::from(bytes);
        books.host_granted |= bytes > 0;
    }

    fn peer(&mut self) {
        let (ident, flags, cap): (&[u8], u32, u32) = match self.random.below(3) {
            0 => (b"SSH-2.0-OpenSSH_3.8", 0, 2 << 20),
            1 => (b"SSH-2.0-OpenSSH_10.0", 0, 15 << 20),
            _ => (b"SSH-2.0-OpenSSH_10.0", 1, WINDOW_LIMIT),
        };
        self.link.peer(ident, flags).unwrap();
        self.cap = cap;
    }

    fn check_all(&self) {
        let mut excess = 0;
        for books in &self.channels {
            let stats = self.link.stats(books.id).unwrap();
            assert_eq!(u64::from(stats.credit), books.credit);
            assert_eq!(stats.granted, books.granted);
            assert_eq!(stats.backlog, books.received - books.consumed);
            assert!(stats.credit <= WINDOW_LIMIT);
            let held = u64::from(stats.credit) + stats.backlog;
            let in_force = held.min(u64::from(u32::MAX));
            assert!(
                u64::from(stats.window) >= in_force,
                "nothing above the window in force"
            );
            if books.granted >= books.received {
                assert!(books.granted - books.consumed <= u64::from(stats.window));
            }
            let target = self.link.target(books.id).unwrap();
            assert_eq!(target.window, stats.window);
            assert!(target.outstanding > 0 && target.outstanding <= target.window);
            let overrun = books.received > books.granted;
            if !books.host_granted && !overrun {
                excess += u64::from(stats.window.saturating_sub(stats.stock));
                let largest = self.config.window_max.max(stats.stock);
                assert!(stats.target <= largest);
            }
        }
        assert!(
            excess <= self.config.budget,
            "all windows stay within the budget"
        );
    }
}

#[test]
fn the_invariants_hold_whatever_is_called() {
    for seed in 0..400 {
        let mut session = Session::new(seed);
        for _ in 0..3_000 {
            session.step();
        }
    }
}

#[test]
fn the_same_calls_give_the_same_answers() {
    let run = || {
        let mut session = Session::new(77);
        (0..20_000).for_each(|_| session.step());
        session
            .channels
            .iter()
            .map(|books| (books.granted, books.received))
            .collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}

#[test]
fn windows_that_make_no_sense_are_refused() {
    let refused = |config| assert_eq!(Link::new(config).unwrap_err(), Error::InvalidArgument);
    refused(WindowConfig {
        window_max: 0,
        ..WindowConfig::default()
    });
    refused(WindowConfig {
        window_max: WINDOW_LIMIT + 1,
        ..WindowConfig::default()
    });
    refused(WindowConfig {
        fixed_window: u32::MAX,
        ..WindowConfig::default()
    });
}

#[test]
fn what_the_host_requires_is_granted_at_the_next_adjust() {
    let mut link = Link::new(WindowConfig::default()).unwrap();
    let id = link.open(Kind::Bulk, 256 << 10, 32 << 10).unwrap();
    link.require(id, 1 << 20).unwrap();
    assert_eq!(link.adjust(id, 1), Ok(768 << 10));
    assert_eq!(link.adjust(id, 1), Ok(0));
    assert_eq!(link.target(id).unwrap().window, 1 << 20);
}
