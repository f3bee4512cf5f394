//! The memory of a handle, as the C interface makes it: counted at the
//! allocator, compared with what the statistics say, and with the README.
#![allow(clippy::undocumented_unsafe_blocks)] // C calls with live arguments, all of them

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::CString;
use std::fmt::Write;
use std::ptr::{null, null_mut};

use sshflow::capi::compressor::{
    sshflow_compress, sshflow_compressor, sshflow_compressor_free, sshflow_compressor_new,
    sshflow_compressor_stats, sshflow_slice,
};
use sshflow::capi::config::{
    sshflow_config, sshflow_config_free, sshflow_config_new, sshflow_config_set,
};
use sshflow::capi::decompressor::{
    sshflow_decompress, sshflow_decompressor, sshflow_decompressor_free, sshflow_decompressor_new,
    sshflow_decompressor_stats,
};
use sshflow::stats::{CompressStats, DecompressStats};

thread_local! {
    static USED: Cell<i64> = const { Cell::new(0) };
}

/// Counts what each thread asks for: tests run side by side.
struct Counting;

fn count(bytes: i64) {
    USED.set(USED.get() + bytes);
}

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const NONE: i32 = 0;
const ZLIB: i32 = 2;
const ZSTD: i32 = 3;
const PACKET: usize = 32_768;
/// Three for each group: the engines allocate with the first.
const PACKETS: usize = 12;
/// What a handle takes beside the engines that the statistics tell of.
const HANDLE: i64 = 4096;

/// A compressor and its decompressor, and what they hold at their largest.
struct Pair {
    compressor: *mut sshflow_compressor,
    decompressor: *mut sshflow_decompressor,
    packet: Vec<u8>,
    decoded: Vec<u8>,
}

fn made<T>(make: impl FnOnce(*mut *mut T) -> i32) -> *mut T {
    let mut out = null_mut();
    assert_eq!(make(&mut out), 0);
    assert!(!out.is_null());
    out
}

fn config_with(settings: &[(&str, &str)]) -> *mut sshflow_config {
    let config = made(|out| unsafe { sshflow_config_new(out) });
    for (key, value) in settings {
        let [key, value] = [key, value].map(|text| CString::new(*text).unwrap());
        let set = unsafe { sshflow_config_set(config, key.as_ptr(), value.as_ptr()) };
        assert_eq!(set, 0);
    }
    config
}

/// Bytes that `make` adds to what this thread uses.
fn added<T>(make: impl FnOnce() -> T) -> (T, i64) {
    let before = USED.get();
    let result = make();
    (result, USED.get() - before)
}

impl Pair {
    fn new(method: i32, settings: &[(&str, &str)]) -> (Pair, [i64; 2]) {
        let config = config_with(settings);
        let (compressor, sending) =
            added(|| made(|out| unsafe { sshflow_compressor_new(method, config, out) }));
        let (decompressor, receiving) =
            added(|| made(|out| unsafe { sshflow_decompressor_new(method, config, out) }));
        unsafe { sshflow_config_free(config) };
        let pair = Pair {
            compressor,
            decompressor,
            packet: vec![0; PACKET + 4096],
            decoded: vec![0; PACKET],
        };
        (pair, [sending, receiving])
    }

    fn compress(&mut self, payload: &[u8], flags: u32) -> usize {
        let part = sshflow_slice {
            data: payload.as_ptr(),
            len: payload.len(),
        };
        let (mut len, room) = (0, &mut self.packet);
        let status = unsafe {
            let (out, capacity) = (room.as_mut_ptr(), room.len());
            sshflow_compress(self.compressor, &part, 1, flags, out, capacity, &mut len)
        };
        assert_eq!(status, 0);
        len
    }

    fn decompress(&mut self, len: usize) {
        let (mut used, mut written) = (0, 0);
        let (out, capacity) = (self.decoded.as_mut_ptr(), self.decoded.len());
        let packet = self.packet.as_ptr();
        let status = unsafe {
            let decompressor = self.decompressor;
            sshflow_decompress(
                decompressor,
                packet,
                len,
                &mut used,
                out,
                capacity,
                &mut written,
            )
        };
        assert_eq!((status, written), (0, PACKET));
    }

    fn stats(&self) -> (CompressStats, DecompressStats) {
        unsafe {
            let mut sent = std::mem::zeroed();
            let mut received = std::mem::zeroed();
            let size = size_of::<CompressStats>();
            assert_eq!(
                sshflow_compressor_stats(self.compressor, &mut sent, size),
                0
            );
            let size = size_of::<DecompressStats>();
            let status = sshflow_decompressor_stats(self.decompressor, &mut received, size);
            assert_eq!(status, 0);
            (sent, received)
        }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        unsafe {
            sshflow_compressor_free(self.compressor);
            sshflow_decompressor_free(self.decompressor);
        }
    }
}

/// Lines of a log: what packs well enough that every level has work to do.
fn fill(payload: &mut Vec<u8>, state: &mut u64) {
    payload.clear();
    while payload.len() < PACKET {
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
        let number = *state >> 33;
        let line = [
            &b"session opened for user "[..],
            &number.to_be_bytes()[5..],
            b" on port ",
            &[b'0' + (number % 10) as u8, b'\n'],
        ];
        line.iter().for_each(|part| payload.extend_from_slice(part));
    }
    payload.truncate(PACKET);
}

/// The largest that a compressor and a decompressor were, in bytes. Without
/// `limited` the level has all the memory that it wants, and has to run.
fn in_use(method: i32, level: &str, groups: u32, limited: bool) -> [i64; 2] {
    let limit = if limited { "32M" } else { "1G" };
    let settings = [("level", level), ("memory_limit", limit)];
    let (mut pair, idle) = Pair::new(method, &settings);
    let mut payload = Vec::with_capacity(PACKET + 64);
    let (mut state, mut used, mut largest) = (7, idle, idle);
    for at in 0..PACKETS {
        fill(&mut payload, &mut state);
        let flags = (at as u32 % groups) << 8;
        let (len, sending) = added(|| pair.compress(&payload, flags));
        let ((), receiving) = added(|| pair.decompress(len));
        used = [used[0] + sending, used[1] + receiving];
        largest = [largest[0].max(used[0]), largest[1].max(used[1])];
    }
    let (sent, received) = pair.stats();
    if let (false, ZLIB | ZSTD, Ok(level @ 1..)) = (limited, method, level.parse::<i32>()) {
        assert_eq!(sent.last_level, level);
    }
    let told = [sent.memory_peak_bytes, received.memory_peak_bytes].map(|bytes| bytes as i64);
    for (largest, told) in largest.into_iter().zip(told) {
        assert!(
            (told..told + HANDLE).contains(&largest),
            "{largest} bytes counted, {told} told"
        );
    }
    largest
}

#[test]
fn what_no_packet_has_come_to_is_small_and_returned() {
    for method in [NONE, 1, ZLIB, ZSTD] {
        let before = USED.get();
        let (pair, idle) = Pair::new(method, &[]);
        for bytes in idle {
            assert!((1..4096).contains(&bytes), "{bytes} bytes");
        }
        let (sent, received) = pair.stats();
        assert_eq!((sent.memory_bytes, received.memory_bytes), (0, 0));
        drop(pair);
        assert_eq!(USED.get(), before);
    }
}

#[test]
fn everything_is_returned() {
    let before = USED.get();
    in_use(ZSTD, "3", 5, true);
    in_use(ZLIB, "6", 2, true);
    assert_eq!(USED.get(), before);
}

#[test]
fn a_compressor_stays_within_its_limit_and_a_decompressor_within_the_formats() {
    for level in ["auto", "9", "19"] {
        let [sending, receiving] = in_use(ZSTD, level, 6, true);
        assert!(sending < (32 << 20) + HANDLE, "{sending} bytes");
        assert!(receiving < (16 << 20) + HANDLE, "{receiving} bytes");
    }
}

#[test]
fn configuration_is_copied_into_the_handle() {
    let (handle, bytes) = added(|| {
        made(|out: *mut *mut sshflow_compressor| unsafe {
            sshflow_compressor_new(ZSTD, null(), out)
        })
    });
    assert!(bytes < 4096);
    unsafe { sshflow_compressor_free(handle) };
}

/// One row: what it is called, the method, the level, how many groups, and
/// whether within the default `memory_limit`.
type Row = (&'static str, i32, &'static str, u32, bool);

const ROWS: [Row; 12] = [
    ("none", NONE, "auto", 1, false),
    ("zlib, level 0 (stored)", ZLIB, "0", 1, false),
    ("zlib, level 1", ZLIB, "1", 1, false),
    ("zlib, level 9", ZLIB, "9", 1, false),
    ("zstd, level -1", ZSTD, "-1", 1, false),
    ("zstd, level 1", ZSTD, "1", 1, false),
    ("zstd, level 3", ZSTD, "3", 1, false),
    ("zstd, level 6", ZSTD, "6", 1, false),
    ("zstd, level 9", ZSTD, "9", 1, false),
    ("zstd, level 19", ZSTD, "19", 1, false),
    ("zstd, level 3, four groups", ZSTD, "3", 4, false),
    (
        "zstd, level 19, four groups, default `memory_limit`",
        ZSTD,
        "19",
        4,
        true,
    ),
];

fn kib(bytes: i64) -> String {
    match bytes as f64 / 1024.0 {
        small if small < 10.0 => format!("{small:.1}"),
        large => format!("{large:.0}"),
    }
}

fn measured() -> Vec<(String, [i64; 2])> {
    let idle = Pair::new(ZSTD, &[]).1;
    let rows = ROWS.iter().map(|&(name, method, level, groups, limited)| {
        let bytes = in_use(method, level, groups, limited);
        (format!("in use: {name}"), bytes)
    });
    std::iter::once(("idle, after `_new`, any method".into(), idle))
        .chain(rows)
        .collect()
}

fn table(rows: &[(String, [i64; 2])]) -> String {
    let mut text = String::from("| KiB per handle | compressor | decompressor |\n|---|---|---|\n");
    for (name, [sending, receiving]) in rows {
        writeln!(text, "| {name} | {} | {} |", kib(*sending), kib(*receiving)).unwrap();
    }
    text
}

const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
const START: &str = "<!-- memory -->\n";
const END: &str = "<!-- end of memory -->";

fn readme() -> [String; 3] {
    let text = std::fs::read_to_string(README).unwrap();
    let (before, rest) = text.split_once(START).expect("README.md marks its table");
    let (table, after) = rest.split_once(END).expect("README.md marks its end");
    [before, table, after].map(str::to_owned)
}

/// Zlib and zstd change from version to version, by less than this.
const TOLERANCE: f64 = 0.10;

#[test]
fn the_readme_says_what_is_measured() {
    let [_, stated, _] = readme();
    let rows = measured();
    println!("{}", table(&rows));
    let mut lines = stated.lines().skip(2);
    for (name, bytes) in &rows {
        let line = lines.next().unwrap_or_default();
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        assert_eq!(cells.first(), Some(&name.as_str()), "README.md: {line}");
        for (cell, bytes) in cells[1..].iter().zip(bytes) {
            let stated = cell.parse::<f64>().unwrap() * 1024.0;
            let off = (stated - *bytes as f64).abs() / *bytes as f64;
            assert!(
                off < TOLERANCE,
                "README.md: {name}: {cell} KiB, but {bytes} bytes"
            );
        }
    }
    assert_eq!(lines.next(), None);
}

/// `cargo test --test memory -- --ignored` brings README.md up to date.
#[test]
#[ignore = "writes README.md"]
fn write_the_readme() {
    let [before, _, after] = readme();
    let table = table(&measured());
    std::fs::write(README, format!("{before}{START}{table}{END}{after}")).unwrap();
}
