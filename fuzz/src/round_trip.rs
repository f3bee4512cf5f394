//! Whatever is sent arrives, and grows by no more than the wire allows.

use std::cell::Cell;

use sshflow::compression::{compress_bound, Compressor, Decompressor, Flags, Method};
use sshflow::config::Config;
use sshflow::Error;

use super::input::Input;

const METHODS: [Method; 4] = [
    Method::ZlibDelayed,
    Method::Zstd,
    Method::Zlib,
    Method::None,
];
const LEVELS: [i64; 10] = [i64::MIN, 1, 3, 6, -1, 9, 0, -7, 12, 19];
const LIMITS: [i64; 4] = [32 << 20, 1 << 30, 1 << 20, 0];
const MAX_LEN: usize = 70_000;

thread_local! {
    static CLOCK: Cell<u64> = const { Cell::new(0) };
    static STEP: Cell<u64> = const { Cell::new(0) };
}

/// A clock that runs as fast as the input says: the choice of effort repeats.
fn clock() -> u64 {
    CLOCK.set(CLOCK.get().wrapping_add(STEP.get()));
    CLOCK.get()
}

struct Session<'a> {
    input: Input<'a>,
    config: Config,
    writer: Compressor,
    reader: Decompressor,
    first: bool,
    /// The payload before, for matches in the history.
    last: Vec<u8>,
    packets: u64,
}

/// A byte each for method, level and memory limit; then steps.
pub fn round_trip(data: &[u8]) {
    let mut input = Input::new(data);
    let method = input.pick(&METHODS);
    let mut config = Config::new();
    let level = input.pick(&LEVELS);
    config.set_int("level", level).unwrap();
    let limit = input.pick(&LIMITS);
    config.set_int("memory_limit", limit).unwrap();
    CLOCK.set(0);
    STEP.set(1000);
    let mut writer = Compressor::new(method, &config).unwrap();
    writer.set_clock(clock);
    let mut session = Session {
        input,
        reader: Decompressor::new(method, &config).unwrap(),
        writer,
        config,
        first: true,
        last: vec![0],
        packets: 0,
    };
    // Enough for everything, and a bound on the time of one input.
    for _ in 0..200 {
        if session.input.is_empty() {
            break;
        }
        session.step();
    }
}

impl Session<'_> {
    fn step(&mut self) {
        match self.input.byte() % 16 {
            0 => self.rekey(),
            1 => {
                let queued = self.input.u32() as usize;
                let known = self.input.byte();
                self.writer
                    .feedback((known & 1 == 0).then_some(queued), known & 2 != 0);
            }
            2 => STEP.set(u64::from(self.input.u32())),
            _ => self.packet(),
        }
    }

    fn rekey(&mut self) {
        let method = self.input.pick(&METHODS);
        self.writer.rekey(method);
        self.reader = Decompressor::new(method, &self.config).unwrap();
        self.first = true;
    }

    fn packet(&mut self) {
        let flags = self.flags();
        let payload = self.payload();
        let method = self.writer.method();
        let mut out = vec![0; compress_bound(method, payload.len())];
        let parts = split(&payload, usize::from(self.input.u16()));
        if self.input.byte() % 4 == 0 {
            let short = usize::from(self.input.u16()) % out.len();
            let refused = self.writer.compress(parts, flags, &mut out[..short]);
            assert_eq!(refused, Err(Error::BufferTooSmall));
        }
        let len = self.writer.compress(parts, flags, &mut out).unwrap();
        let growth = allowed_growth(method, payload.len(), self.first);
        assert!(
            len <= payload.len() + growth,
            "{} became {len}",
            payload.len()
        );
        self.first = false;
        self.packets += 1;
        assert_eq!(self.writer.stats().packets, self.packets);
        self.receive(&out[..len], &payload);
        self.last = payload;
    }

    fn flags(&mut self) -> Flags {
        let bits = self.input.byte();
        Flags {
            interactive: bits & 1 != 0,
            secret: bits & 6 == 6,
            group: u16::from(bits >> 3 & 7) * u16::from(bits >> 6),
        }
    }

    fn payload(&mut self) -> Vec<u8> {
        let kind = self.input.byte();
        let len = match kind >> 4 {
            0..=7 => usize::from(self.input.byte()),
            8..=13 => usize::from(self.input.u16()) % 4096,
            _ => usize::from(self.input.u16()) * 2 % MAX_LEN,
        };
        let mut payload = match kind % 5 {
            0 => self.input.bytes(len).to_vec(),
            1 => vec![self.input.byte(); len],
            2 => noise(self.input.u16(), len),
            3 => {
                let again = self.last.iter().cycle();
                let from = usize::from(self.input.byte());
                again.skip(from).take(len).copied().collect()
            }
            _ => {
                let word = self.input.bytes(7);
                let word = if word.is_empty() { b"x" } else { word };
                word.iter().cycle().take(len).copied().collect()
            }
        };
        if payload.is_empty() {
            payload.push(kind);
        }
        payload
    }

    fn receive(&mut self, packet: &[u8], payload: &[u8]) {
        let size = match self.input.byte() {
            small @ 0..=9 => usize::from(small) + 1 + payload.len() / 64,
            _ => payload.len(),
        };
        let mut room = vec![0; size];
        let (mut at, mut decoded) = (0, Vec::with_capacity(payload.len()));
        loop {
            let progress = self.reader.decompress(&packet[at..], &mut room).unwrap();
            at += progress.used;
            decoded.extend_from_slice(&room[..progress.written]);
            if !progress.more {
                break;
            }
            assert_eq!(progress.written, size);
        }
        assert_eq!(at, packet.len());
        assert!(decoded == payload, "{} bytes differ", payload.len());
    }
}

/// Three parts, of which any may be empty.
fn split(payload: &[u8], seed: usize) -> [&[u8]; 3] {
    let (head, tail) = payload.split_at(seed % (payload.len() + 1));
    let (middle, tail) = tail.split_at(seed / 7 % (tail.len() + 1));
    [head, middle, tail]
}

fn noise(seed: u16, len: usize) -> Vec<u8> {
    let mut state = u64::from(seed) + 1;
    let mut byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..len).map(|_| byte()).collect()
}

fn allowed_growth(method: Method, len: usize, first: bool) -> usize {
    match method {
        Method::None => 0,
        Method::Zstd => 1,
        // Beyond 32,768 bytes the head of each stored block counts too.
        _ => 13 + 5 * (len / 32_769) + if first { 2 } else { 0 },
    }
}
