//! Where nothing may change, nothing does: the same increments at the same
//! calls as OpenSSH's own rule.

mod window_support;

use sshflow::window::{Kind, Link, Policy, WindowConfig};
use window_support::Random;

/// OpenSSH's accounting, from its description: a channel knows its window, the
/// window's full size, what was consumed since the last adjust and the largest
/// packet. `channel_check_window` returns all that was consumed as soon as
/// more than three packets or more than half are missing.
struct Stock {
    window: u32,
    full: u32,
    consumed: u32,
    max_packet: u32,
}

impl Stock {
    fn adjust(&mut self) -> u32 {
        let three_packets = self.full - self.window > self.max_packet * 3;
        if (three_packets || self.window < self.full / 2) && self.consumed > 0 {
            self.window += self.consumed;
            return std::mem::take(&mut self.consumed);
        }
        0
    }
}

#[derive(Clone, Copy)]
struct Case {
    kind: Kind,
    full: u32,
    max_packet: u32,
    rtt_us: Option<u32>,
    policy: Policy,
}

/// The sizes that OpenSSH opens channels with: session and forward, terminal,
/// X11; and one that nobody uses.
const SIZES: [(Kind, u32, u32); 4] = [
    (Kind::Bulk, 2_097_152, 32_768),
    (Kind::Interactive, 1_048_576, 16_384),
    (Kind::X11, 65_536, 16_384),
    (Kind::Bulk, 1_000_003, 35_001),
];

/// Plays random traffic through both rules and returns how many adjusts there
/// were.
fn play(case: Case, seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let config = WindowConfig {
        policy: case.policy,
        ..WindowConfig::default()
    };
    let mut link = Link::new(config).unwrap();
    let id = link.open(case.kind, case.full, case.max_packet).unwrap();
    let mut stock = Stock {
        window: case.full,
        full: case.full,
        consumed: 0,
        max_packet: case.max_packet,
    };
    let (mut now, mut backlog, mut adjusts) = (1_000_000, 0_u32, 0);
    let consumer = 1 + random.below(4);
    for step in 0..20_000 {
        now += random.below(300);
        if let Some(rtt) = case.rtt_us.filter(|_| step % 50 == 0) {
            link.rtt(now, rtt).unwrap();
        }
        if random.once_in(3_000) {
            now += random.below(30_000_000);
        }
        let packet = (1 + random.below(u64::from(case.max_packet))) as u32;
        let arrived = packet.min(stock.window);
        link.received(id, now, arrived).unwrap();
        stock.window -= arrived;
        backlog += arrived;
        if random.below(4) < consumer {
            let taken = backlog - random.below(u64::from(backlog) + 1) as u32;
            link.consumed(id, now, taken).unwrap();
            stock.consumed += taken;
            backlog -= taken;
        }
        let expected = stock.adjust();
        assert_eq!(
            link.adjust(id, now).unwrap(),
            expected,
            "seed {seed}, step {step}"
        );
        adjusts += u64::from(expected > 0);
    }
    adjusts
}

fn play_all(rtt_us: Option<u32>, policy: Policy) {
    for (index, (kind, full, max_packet)) in SIZES.into_iter().enumerate() {
        let case = Case {
            kind,
            full,
            max_packet,
            rtt_us,
            policy,
        };
        for seed in 0..10 {
            let adjusts = play(case, seed * 8 + index as u64);
            assert!(adjusts > 50, "the trace exercises the rule: {adjusts}");
        }
    }
}

#[test]
fn a_lan_gets_stocks_adjusts() {
    play_all(Some(999), Policy::Auto);
    play_all(Some(30), Policy::Auto);
}

/// What a real client received, handed on and granted over loopback, fed to
/// ours, event by event.
#[test]
fn a_recorded_transfer_over_a_lan_gets_the_same_adjusts() {
    let mut link = Link::new(WindowConfig::default()).unwrap();
    let id = link.open(Kind::Bulk, 2_097_152, 32_768).unwrap();
    let mut now_us = 1_000_000;
    link.rtt(now_us, 40).unwrap();
    let (mut looks, mut adjusts) = (0, 0);
    for line in include_str!("vectors/window-lan.txt").lines() {
        let (what, bytes) = line.split_once(' ').unwrap();
        if what == "#" {
            continue;
        }
        let bytes = bytes.parse().unwrap();
        now_us += 20;
        match what {
            "r" => link.received(id, now_us, bytes).unwrap(),
            "c" => link.consumed(id, now_us, bytes).unwrap(),
            "a" => {
                looks += 1;
                adjusts += u64::from(bytes > 0);
                assert_eq!(link.adjust(id, now_us), Ok(bytes), "look {looks}");
            }
            _ => panic!("{line}"),
        }
    }
    assert!(adjusts > 400 && looks > 3 * adjusts, "{adjusts} of {looks}");
}

#[test]
fn a_fixed_window_gets_stocks_adjusts_on_any_path() {
    play_all(Some(100_000), Policy::Fixed);
    play_all(None, Policy::Fixed);
}

#[test]
fn a_server_session_is_granted_the_stock_window_first() {
    for (kind, expected) in [
        (Kind::Bulk, 2_097_152),
        (Kind::Interactive, 2_097_152),
        (Kind::X11, 65_536),
    ] {
        let mut link = Link::new(WindowConfig::default()).unwrap();
        let id = link.open(kind, 0, 32_768).unwrap();
        assert_eq!(link.adjust(id, 5), Ok(expected));
        assert_eq!(link.adjust(id, 5), Ok(0));
    }
}

#[test]
fn a_fixed_size_replaces_the_initial_window() {
    let fixed = 8 << 20;
    let config = WindowConfig {
        policy: Policy::Fixed,
        fixed_window: fixed,
        ..WindowConfig::default()
    };
    let mut link = Link::new(config).unwrap();
    let session = link.open(Kind::Bulk, 0, 32_768).unwrap();
    assert_eq!(link.adjust(session, 1), Ok(fixed));
    let forward = link.open(Kind::Bulk, 2 << 20, 32_768).unwrap();
    assert_eq!(link.adjust(forward, 1), Ok(6 << 20));
    let x11 = link.open(Kind::X11, 64 << 10, 16_384).unwrap();
    assert_eq!(link.adjust(x11, 1), Ok(fixed - (64 << 10)));
}
