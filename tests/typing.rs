//! What compression costs somebody who types: the bytes of a scripted session on
//! the wire, padded as a cipher pads them, with compression and without.

mod common;

use std::cell::Cell;

use common::Random;
use sshflow::compression::{compress_bound, Compressor, Flags, Method};
use sshflow::config::Config;

/// How a cipher pads (RFC 4253 section 6): its block, and whether the length
/// field is part of what is padded.
#[derive(Clone, Copy, Debug)]
struct Cipher {
    name: &'static str,
    block: usize,
    length_inside: bool,
    tag: usize,
}

const CIPHERS: [Cipher; 3] = [
    Cipher {
        name: "aes128-gcm",
        block: 16,
        length_inside: false,
        tag: 16,
    },
    Cipher {
        name: "chacha20-poly1305",
        block: 8,
        length_inside: false,
        tag: 16,
    },
    Cipher {
        name: "aes128-ctr, hmac-sha1",
        block: 16,
        length_inside: true,
        tag: 20,
    },
];

impl Cipher {
    fn on_the_wire(self, payload: usize) -> usize {
        let length = if self.length_inside { 4 } else { 0 };
        // The length of the padding, the payload, and at least four bytes.
        let inside = (length + 1 + payload + 4).next_multiple_of(self.block);
        4 - length + inside + self.tag
    }
}

/// SSH_MSG_CHANNEL_DATA (RFC 4254 section 5.2).
fn channel_data(data: &[u8]) -> Vec<u8> {
    let mut payload = vec![94, 0, 0, 0, 0];
    payload.extend_from_slice(&(data.len() as u32).to_be_bytes());
    payload.extend_from_slice(data);
    payload
}

/// Keys up, and down what a shell answers: each key's echo, then what the
/// command prints, as a terminal hands it over, and the prompt.
fn session() -> [Vec<Vec<u8>>; 2] {
    let commands = [
        ("ls -l /usr/share/doc", 6_000),
        ("cd /usr/share/doc && pwd", 20),
        ("git status -s", 180),
        ("tail -n 5 /var/log/syslog", 460),
        ("vi README", 3_100),
        ("make 2>&1 | tail -3", 240),
        (
            "echo a longer line of prose, as one writes it to say why",
            50,
        ),
        ("ps aux", 15_000),
        ("uptime", 75),
    ];
    let mut random = Random(17);
    let (mut up, mut down) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        for (command, printed) in commands {
            for key in command.bytes().chain([b'\r']) {
                up.push(channel_data(&[key]));
                down.push(channel_data(&[key]));
            }
            let len = printed + random.below(printed);
            let text = random.text(len);
            let mut left = &text[..];
            while !left.is_empty() {
                let (now, later) = left.split_at(left.len().min(1 + random.below(4_000)));
                down.push(channel_data(now));
                left = later;
            }
            down.push(channel_data(b"\x1b[01;32muser@host\x1b[00m:~/src$ "));
        }
    }
    [up, down]
}

thread_local! {
    static NOW_NS: Cell<u64> = const { Cell::new(0) };
    static PAUSE_NS: Cell<u64> = const { Cell::new(0) };
}

/// The clock is read before and after each packet: a pause, then 20 us of work.
fn clock() -> u64 {
    let step = PAUSE_NS.get();
    PAUSE_NS.set(if step == 20_000 { 50_000_000 } else { 20_000 });
    NOW_NS.set(NOW_NS.get() + step);
    NOW_NS.get()
}

/// The lengths of the packets of one direction.
fn lengths(method: Method, payloads: &[Vec<u8>]) -> Vec<usize> {
    let mut compressor = Compressor::new(method, &Config::default()).unwrap();
    compressor.set_clock(clock);
    let flags = Flags {
        interactive: true,
        ..Flags::default()
    };
    let mut out = vec![0; compress_bound(method, 16_384)];
    let mut compress = |payload: &Vec<u8>| {
        let parts = [payload.as_slice()];
        compressor.compress(parts, flags, &mut out).unwrap()
    };
    payloads.iter().map(&mut compress).collect()
}

#[test]
fn a_typing_session_grows_by_no_more_than_a_block_in_a_hundred_packets() {
    let session = session();
    for cipher in CIPHERS {
        let (mut plain, mut packed, mut packets) = (0, 0, 0);
        for payloads in &session {
            let sum = |lengths: Vec<usize>| -> usize {
                lengths.into_iter().map(|len| cipher.on_the_wire(len)).sum()
            };
            plain += sum(payloads.iter().map(Vec::len).collect());
            packed += sum(lengths(Method::Zstd, payloads));
            packets += payloads.len();
        }
        println!(
            "{}: {packets} packets, {plain} bytes without compression, {packed} with zstd",
            cipher.name
        );
        assert!(packed <= plain + cipher.block * packets / 100);
    }
}

#[test]
fn keys_and_echoes_do_not_grow_at_all() {
    let session = session();
    for cipher in CIPHERS {
        for payloads in &session {
            let keys: Vec<Vec<u8>> = payloads.iter().filter(|p| p.len() == 10).cloned().collect();
            assert!(keys.len() > 500);
            for (key, len) in keys.iter().zip(lengths(Method::Zstd, &keys)) {
                assert_eq!(cipher.on_the_wire(len), cipher.on_the_wire(key.len()));
            }
        }
    }
}
