//! Data and helpers that several tests share.
#![allow(dead_code)] // not every test binary uses all of them

use sshflow::compression::{compress_bound, Compressor, Decompressor, Flags, Method};
use sshflow::config::Config;

/// A small seeded generator (splitmix64): the tests must repeat exactly.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }

    /// Text like a log: words of a small vocabulary and numbers.
    pub fn text(&mut self, len: usize) -> Vec<u8> {
        const WORDS: [&str; 8] = [
            "session",
            "opened",
            "for",
            "user",
            "sshd",
            "connection",
            "closed",
            "port",
        ];
        let mut text = Vec::with_capacity(len + 16);
        while text.len() < len {
            text.extend_from_slice(WORDS[self.below(8)].as_bytes());
            text.push(b' ');
            if self.below(4) == 0 {
                text.extend_from_slice(format!("{}\n", self.below(100_000)).as_bytes());
            }
        }
        text.truncate(len);
        text
    }

    /// A payload of one of the kinds that change within a connection.
    pub fn payload(&mut self, max: usize) -> Vec<u8> {
        let len = 1 + match self.below(3) {
            0 => self.below(64),
            1 => self.below(max.min(4096)),
            _ => self.below(max),
        };
        match self.below(4) {
            0 => self.bytes(len),
            1 => vec![self.next() as u8; len],
            _ => self.text(len),
        }
    }
}

pub fn config(settings: &[(&str, &str)]) -> Config {
    let mut config = Config::new();
    for (key, value) in settings {
        config.set(key, value).unwrap();
    }
    config
}

pub fn compress(compressor: &mut Compressor, payload: &[u8], flags: Flags) -> Vec<u8> {
    let mut out = vec![0; compress_bound(compressor.method(), payload.len())];
    let len = compressor.compress([payload], flags, &mut out).unwrap();
    out.truncate(len);
    out
}

/// Decodes one packet with a room of `chunk` bytes at a time.
pub fn decompress(
    decoder: &mut Decompressor,
    packet: &[u8],
    chunk: usize,
) -> sshflow::Result<Vec<u8>> {
    let (mut payload, mut room, mut at) = (Vec::new(), vec![0; chunk], 0);
    loop {
        let progress = decoder.decompress(&packet[at..], &mut room)?;
        at += progress.used;
        payload.extend_from_slice(&room[..progress.written]);
        if !progress.more {
            assert_eq!(at, packet.len(), "OK means that all input is used");
            return Ok(payload);
        }
        assert_eq!(
            progress.written,
            room.len(),
            "MORE means that the room is full"
        );
    }
}

pub fn pair(method: Method, config: &Config) -> (Compressor, Decompressor) {
    (
        Compressor::new(method, config).unwrap(),
        Decompressor::new(method, config).unwrap(),
    )
}
