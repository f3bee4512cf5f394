//! What each effort costs and gains on real data, and how often the probe errs.
//!
//! `cargo bench --bench effort_cost -- FILE…` cuts each file into payloads of
//! 32,768 bytes and prints, for each wire and level, nanoseconds per byte (the
//! median payload, and the 90th and 99th percentile), the ratio, and the cost
//! of decoding; then the probe against what zstd 1 and zlib 1 made of the same
//! payloads. Without files it makes some of its own. All times are CPU time.
//! Before that it prints what `level auto` costs where nothing can be gained: on
//! a payload that does not pack, beside a copy of it, and on a keystroke.

use sshflow::compression::probe::probe;
use sshflow::compression::{compress_bound, Compressor, Decompressor, Flags, Method};
use sshflow::config::Config;
use std::hint::black_box;

const PAYLOAD: usize = 32_768;
/// At most this much of each file.
const MOST: usize = 3 << 20;

struct Run {
    pack_ns: Vec<f64>,
    unpack_ns: f64,
    wire: Vec<f64>,
}

fn main() {
    let files: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .collect();
    let inputs: Vec<(String, Vec<u8>)> = if files.is_empty() {
        made_up()
    } else {
        files
            .into_iter()
            .map(|name| {
                let mut data = std::fs::read(&name).unwrap_or_else(|e| panic!("{name}: {e}"));
                data.truncate(MOST);
                (name, data)
            })
            .collect()
    };
    copying();
    for method in [Method::Zlib, Method::Zstd] {
        nothing_to_gain(method);
        keystrokes(method);
    }
    for (name, data) in &inputs {
        let name = name.rsplit('/').next().unwrap_or(name);
        println!("{name}: {} payloads", data.chunks_exact(PAYLOAD).len());
        let mut reference = Vec::new();
        for (method, levels) in [
            (Method::Zlib, &["0", "1", "6", "9"][..]),
            (Method::Zstd, &["0", "-1", "1", "3", "6", "9"][..]),
        ] {
            for level in levels {
                let run = measure(method, level, data);
                print_run(method, level, &run);
                if *level == "1" {
                    reference.push(run.wire);
                }
            }
            let run = measure(method, "auto", data);
            print_run(method, "auto", &run);
        }
        probe_errors(data, &reference);
    }
}

fn print_run(method: Method, level: &str, run: &Run) {
    let mut sorted = run.pack_ns.clone();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share) as usize];
    let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
    let ratio = run.wire.iter().sum::<f64>() / run.wire.len() as f64;
    println!(
        "  {:16} {level:>4}  ns/B mean {:7.3} median {:7.3} p90 {:7.3} p99 {:7.3}  decode {:6.3}  packed/raw {ratio:.4}",
        method.name(),
        mean,
        at(0.5),
        at(0.9),
        at(0.99),
        run.unpack_ns,
    );
}

/// CPU time of this thread: a busy machine does not falsify it much.
fn cpu_ns() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a timespec that lives through the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// The floor that everything is to be seen against.
fn copying() {
    let from = vec![7u8; 8 << 20];
    let mut to = vec![0u8; PAYLOAD];
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = cpu_ns();
        for chunk in from.chunks_exact(PAYLOAD) {
            to.copy_from_slice(black_box(chunk));
            black_box(&to);
        }
        best = best.min((cpu_ns() - start) / from.len() as f64);
    }
    println!(
        "memcpy of {PAYLOAD} bytes: {best:.3} ns/B, {:.2} us",
        best * PAYLOAD as f64 / 1e3
    );
}

/// The time of `work` in microseconds, without that of looking at the clock.
fn timed(work: impl FnOnce()) -> f64 {
    let start = cpu_ns();
    let begin = cpu_ns();
    work();
    let end = cpu_ns();
    ((end - begin) - (begin - start)) / 1e3
}

fn print_us(what: &str, times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "  {what:24} us median {:6.2} p10 {:6.2} p90 {:6.2} p99 {:6.2}",
        at(0.5),
        at(0.1),
        at(0.9),
        at(0.99)
    );
    at(0.5)
}

/// Payloads that do not pack, each beside a copy of the same bytes.
fn nothing_to_gain(method: Method) {
    let data = &made_up()[0].1;
    let mut compressor = Compressor::new(method, &Config::default()).expect("memory");
    let mut out = vec![0; compress_bound(method, PAYLOAD)];
    let mut room = vec![0; PAYLOAD + 4096];
    let (mut copies, mut packets) = (Vec::new(), Vec::new());
    for payload in data.chunks_exact(PAYLOAD).cycle().take(4000) {
        // What stands in the cache is the same for both.
        black_box(payload.iter().map(|b| u32::from(*b)).sum::<u32>());
        // Where both stand on a page decides how fast a copy is: take a good place.
        let apart = (payload.as_ptr() as usize + 64).wrapping_sub(room.as_ptr() as usize) % 4096;
        let copy = &mut room[apart..apart + PAYLOAD];
        copies.push(timed(|| copy.copy_from_slice(black_box(payload))));
        black_box(copy);
        packets.push(timed(|| {
            compressor
                .compress([black_box(payload)], Flags::default(), &mut out)
                .expect("a payload within the bound");
        }));
    }
    println!("{}, random payloads of {PAYLOAD} bytes:", method.name());
    let copy = print_us("copy", &mut copies);
    let packet = print_us("packet", &mut packets);
    println!(
        "  {:24} us median {:6.2}",
        "packet over copy",
        packet - copy
    );
}

/// Short interactive packets, a hundred at a time because the clock is slower
/// than they are.
fn keystrokes(method: Method) {
    const BATCH: usize = 100;
    let mut compressor = Compressor::new(method, &Config::default()).expect("memory");
    let flags = Flags {
        interactive: true,
        ..Flags::default()
    };
    let mut out = vec![0; compress_bound(method, PAYLOAD)];
    for len in [10, 36, 200, 1000] {
        let text = b"user@host:~/src$ make -j2 check 2>&1 | tail ".repeat(30);
        let payload = &text[..len];
        let mut times: Vec<f64> = (0..1000)
            .map(|_| {
                timed(|| {
                    for _ in 0..BATCH {
                        compressor
                            .compress([black_box(payload)], flags, &mut out)
                            .expect("a payload within the bound");
                    }
                }) / BATCH as f64
            })
            .collect();
        print_us(&format!("interactive, {len} bytes"), &mut times);
    }
}

fn measure(method: Method, level: &str, data: &[u8]) -> Run {
    let mut config = Config::default();
    config.set("level", level).expect("a known level");
    let mut compressor = Compressor::new(method, &config).expect("memory");
    let mut decompressor = Decompressor::new(method, &config).expect("memory");
    let mut out = vec![0; compress_bound(method, PAYLOAD)];
    let mut back = vec![0; PAYLOAD];
    let mut run = Run {
        pack_ns: Vec::new(),
        unpack_ns: 0.0,
        wire: Vec::new(),
    };
    for payload in data.chunks_exact(PAYLOAD) {
        let start = cpu_ns();
        let len = compressor
            .compress([payload], Flags::default(), &mut out)
            .expect("a payload within the bound");
        run.pack_ns.push((cpu_ns() - start) / PAYLOAD as f64);
        run.wire.push(len as f64 / PAYLOAD as f64);
        let start = cpu_ns();
        let mut used = 0;
        let mut made = 0;
        loop {
            let step = decompressor
                .decompress(&out[used..len], &mut back[made..])
                .expect("valid");
            used += step.used;
            made += step.written;
            if !step.more {
                break;
            }
        }
        run.unpack_ns += cpu_ns() - start;
        assert!(made == PAYLOAD && back == payload, "the payload comes back");
    }
    run.unpack_ns /= (run.wire.len() * PAYLOAD) as f64;
    run
}

/// The probe against what the engines really made of the same payloads.
fn probe_errors(data: &[u8], reference: &[Vec<f64>]) {
    let mut counts = [[0usize; 4]; 4];
    let mut estimate = 0.0;
    let mut payloads = 0;
    let actual_class = |ratio: f64| match ratio {
        r if r >= 0.97 => 0,
        r if r >= 0.7 => 1,
        r if r >= 0.1 => 2,
        _ => 3,
    };
    let start = cpu_ns();
    for payload in data.chunks_exact(PAYLOAD) {
        black_box(probe(black_box(payload)));
        payloads += 1;
    }
    let ns = (cpu_ns() - start) / f64::from(payloads);
    for (i, payload) in data.chunks_exact(PAYLOAD).enumerate() {
        let seen = probe(payload);
        estimate += f64::from(seen.ratio);
        let actual = reference
            .iter()
            .map(|wire| wire[i])
            .fold(f64::INFINITY, f64::min);
        counts[seen.class()][actual_class(actual)] += 1;
    }
    println!(
        "  probe {ns:.0} ns a payload, mean estimate {:.3}",
        estimate / f64::from(payloads)
    );
    for (class, row) in counts.iter().enumerate() {
        if row.iter().sum::<usize>() > 0 {
            println!(
                "    says class {class}: really no {} hardly {} well {} nearly all {}",
                row[0], row[1], row[2], row[3]
            );
        }
    }
}

/// Inputs for a machine without files at hand.
fn made_up() -> Vec<(String, Vec<u8>)> {
    let len = 8 << 20;
    let mut state = 1u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let random: Vec<u8> = (0..len).map(|_| next() as u8).collect();
    let words = [
        "accepted",
        "connection",
        "from",
        "port",
        "session",
        "closed",
        "user",
        "failed",
    ];
    let mut text = Vec::with_capacity(len + 64);
    while text.len() < len {
        let n = next();
        text.extend_from_slice(words[(n % 8) as usize].as_bytes());
        text.push(b' ');
        if n & 0x700 == 0 {
            text.extend_from_slice(format!("{} {}\n", n >> 40, n >> 52).as_bytes());
        }
    }
    vec![
        ("random".into(), random),
        ("text".into(), text),
        ("zeros".into(), vec![0; len]),
    ]
}
