//! What a forwarded channel tells of the session beside it.
//!
//! An attacker chooses the bytes of a forwarded channel, a secret is shown in
//! the session, and the lengths of packets are seen on the wire (as with CRIME
//! and BREACH in TLS). With isolation the attacker's packets have the same
//! lengths whatever the secret is; without it a right guess is shorter.

mod common;

use std::cell::Cell;
use std::collections::HashSet;

use common::{compress, config, pair, Random};
use sshflow::compression::{Flags, Method};

const SECRETS: usize = 1_000;
const FORWARD: u16 = 3;

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(0) };
}

/// A clock that knows nothing of the machine: a microsecond per look.
fn clock() -> u64 {
    NOW.set(NOW.get() + 1_000);
    NOW.get()
}

fn in_group(group: u16) -> Flags {
    Flags {
        group,
        ..Flags::default()
    }
}

/// The page that the session shows again and again: the same but for the
/// secret, whose digits are all different so that it does not pack by itself.
fn page(random: &mut Random, filler: &[u8]) -> Vec<u8> {
    let mut digits = *b"0123456789abcdef";
    for i in (1..digits.len()).rev() {
        digits.swap(i, random.below(i + 1));
    }
    let mut page = filler[..1_000].to_vec();
    page.extend_from_slice(b"Set-Cookie: token=");
    page.extend_from_slice(&digits[..8]);
    page.extend_from_slice(&filler[1_000..]);
    page
}

/// One guess for each first digit, padded so that all have the same length.
fn guesses(filler: &[u8]) -> Vec<Vec<u8>> {
    (0..16)
        .map(|digit| {
            let mut guess = format!("Set-Cookie: token={digit:x}").into_bytes();
            guess.extend_from_slice(&filler[..300]);
            guess
        })
        .collect()
}

/// The lengths of the attacker's packets, and payload and wire bytes in all.
fn observe(method: Method, isolation: &str, level: &str, seed: u64) -> (Vec<usize>, usize, usize) {
    NOW.set(0);
    // Small engines, because thousands of them are made.
    let config = config(&[
        ("isolation", isolation),
        ("level", level),
        ("memory_limit", "2M"),
    ]);
    let (mut compressor, _) = pair(method, &config);
    compressor.set_clock(clock);
    let filler = Random(1).text(2_000);
    let noise = Random(2).text(600);
    let page = page(&mut Random(seed), &filler);
    let mut seen = Vec::new();
    let (mut raw, mut wire) = (0, 0);
    for guess in guesses(&noise) {
        let shown = compress(&mut compressor, &page, in_group(0));
        let guessed = compress(&mut compressor, &guess, in_group(FORWARD));
        raw += page.len() + guess.len();
        wire += shown.len() + guessed.len();
        seen.push(guessed.len());
    }
    (seen, raw, wire)
}

fn different_views(method: Method, isolation: &str, level: &str) -> usize {
    let views: HashSet<Vec<usize>> = (0..SECRETS as u64)
        .map(|secret| observe(method, isolation, level, 1_000 + secret).0)
        .collect();
    views.len()
}

#[test]
fn with_isolation_packet_lengths_tell_nothing_of_the_secret() {
    for method in [Method::ZlibDelayed, Method::Zstd] {
        for level in ["auto", "6"] {
            let views = different_views(method, "on", level);
            assert_eq!(views, 1, "{method:?}, level {level}");
        }
    }
}

#[test]
fn without_it_they_tell_the_first_digit() {
    for method in [Method::ZlibDelayed, Method::Zstd] {
        let views = different_views(method, "off", "6");
        assert!(
            views > 1,
            "{method:?}: the attack works on a shared history"
        );
    }
}

#[test]
fn with_isolation_the_session_is_still_compressed() {
    for method in [Method::ZlibDelayed, Method::Zstd] {
        let (_, raw, wire) = observe(method, "on", "6", 1_000);
        assert!(wire * 2 < raw, "{method:?}: {raw} bytes became {wire}");
    }
}
