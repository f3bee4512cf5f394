//! The fuzzer's targets, over their seeds and over mutations of them that are
//! the same at every run: no fuzzer and no nightly compiler is needed.

mod common;
#[path = "../fuzz/src/lib.rs"]
mod targets;

use std::fs;
use std::path::{Path, PathBuf};

use common::{compress, config, Random};
use sshflow::compression::{Compressor, Flags, Method};

/// How long mutated inputs may get.
const MAX_LEN: usize = 4096;

/// Mutations of each seed; SSHFLOW_REPLAY asks for more than a short run has.
fn mutations() -> usize {
    let asked = std::env::var("SSHFLOW_REPLAY").ok();
    asked.map_or(120, |number| {
        number.parse().expect("SSHFLOW_REPLAY is a number")
    })
}

fn seeds_of(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/seeds")
        .join(target)
}

fn replay(target: &str, run: fn(&[u8])) {
    let folder = fs::read_dir(seeds_of(target)).unwrap();
    let mut paths: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 4, "{target} has its seeds");
    let mut random = Random(target.len() as u64);
    run(&[]);
    for path in paths {
        let seed = fs::read(&path).unwrap();
        run(&seed);
        let mut mutated = seed.clone();
        for at in 0..mutations() {
            if at % 8 == 0 {
                mutated.clone_from(&seed);
            }
            mutate(&mut mutated, &mut random);
            run(&mutated);
        }
    }
}

fn mutate(data: &mut Vec<u8>, random: &mut Random) {
    if data.is_empty() {
        data.push(random.next() as u8);
    }
    let at = random.below(data.len());
    match random.below(6) {
        0 => data.truncate(at),
        1 => data[at] = random.next() as u8,
        2 => data[at] ^= 1 << random.below(8),
        3 => data.insert(at, random.next() as u8),
        4 => drop(data.remove(at)),
        _ => {
            let end = (at + 1 + random.below(64)).min(data.len());
            let piece = data[at..end].to_vec();
            let to = random.below(data.len());
            data.splice(to..to, piece);
        }
    }
    data.truncate(MAX_LEN);
}

#[test]
fn decompress_takes_whatever_comes() {
    replay("decompress", targets::decompress);
}

#[test]
fn round_trips_hold_whatever_is_asked() {
    replay("round_trip", targets::round_trip);
}

#[test]
fn settings_hold_or_change_nothing() {
    replay("config_set", targets::config_set);
}

#[test]
fn windows_keep_their_invariants() {
    replay("window", targets::window);
}

/// A connection as the `decompress` target reads it.
fn connection(method: Method, level: &str) -> Vec<u8> {
    let mut random = Random(level.len() as u64);
    let mut compressor = Compressor::new(method, &config(&[("level", level)])).unwrap();
    let number = u8::from(method == Method::Zstd);
    let mut data = vec![number, 0];
    for at in 0..8u16 {
        let payload = match at {
            3 => random.bytes(200),
            5 => vec![b'x'; 3000],
            _ => random.text(40 + 60 * usize::from(at)),
        };
        let flags = Flags {
            secret: at == 6,
            group: at % 3,
            ..Flags::default()
        };
        let packet = compress(&mut compressor, &payload, flags);
        data.push(at as u8);
        data.extend_from_slice(&(packet.len() as u16).to_le_bytes());
        data.extend_from_slice(&packet);
    }
    data
}

fn settings() -> [Vec<u8>; 5] {
    ["auto", "64K", "-7", "262144", "off"].map(|text| {
        let mut data = Vec::new();
        for key in 0..=9u8 {
            data.extend([key, text.len() as u8]);
            data.extend(text.bytes());
            if key == 9 {
                data.push(5);
                data.extend(b"level");
            }
            data.extend(7u64.to_le_bytes());
        }
        data
    })
}

/// `cargo test --test fuzz_replay -- --ignored` makes the seeds anew.
#[test]
#[ignore = "writes fuzz/seeds"]
fn write_the_seeds() {
    let write = |target: &str, name: String, data: &[u8]| {
        let folder = seeds_of(target);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(name), data).unwrap();
    };
    for method in [Method::ZlibDelayed, Method::Zstd] {
        for level in ["1", "6", "9"] {
            let name = format!("{}-{level}", method.name().split('@').next().unwrap());
            write("decompress", name, &connection(method, level));
        }
    }
    for at in 0..8u8 {
        let mut random = Random(at.into());
        let mut steps = random.bytes(600);
        steps[..3].copy_from_slice(&[at % 2, at, 0]);
        write("round_trip", format!("steps-{at}"), &steps);
        let steps = Random(100 + u64::from(at)).bytes(1200);
        write("window", format!("steps-{at}"), &steps);
    }
    for (at, data) in settings().iter().enumerate() {
        write("config_set", format!("settings-{at}"), data);
    }
}
