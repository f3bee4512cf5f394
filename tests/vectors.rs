//! The test vectors of the zstd wire: they decode to what they say, or fail as
//! they say. `cargo test --test vectors -- --ignored` writes those that can be
//! encoded anew; only their decoding is a promise.

mod common;

use std::fmt::Write;

use common::{compress, config, decompress, Random};
use sshflow::compression::{Compressor, Decompressor, Flags, Method};
use sshflow::Error;

const FILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/vectors/zstd-sshflow.txt"
);

fn from_hex(text: &str) -> Vec<u8> {
    let digit = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digit).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

#[test]
fn every_vector_decodes_to_what_it_says() {
    let text = std::fs::read_to_string(FILE).unwrap();
    let (mut connections, mut checked) = (0, 0);
    let mut decoder = Decompressor::new(Method::Zstd, &config(&[])).unwrap();
    let mut result = Err(Error::State);
    for line in text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let (word, rest) = line.split_once(' ').unwrap();
        match word {
            "connection" => {
                connections += 1;
                decoder = Decompressor::new(Method::Zstd, &config(&[])).unwrap();
            }
            "packet" => result = decompress(&mut decoder, &from_hex(rest), 1 << 16),
            "payload" => {
                assert_eq!(result.as_deref().map(hex).as_deref(), Ok(rest), "{line}");
                checked += 1;
            }
            "error" => {
                assert_eq!(result, Err(Error::Corrupt), "{line}");
                checked += 1;
            }
            _ => panic!("{line}"),
        }
    }
    assert!(
        connections >= 20 && checked >= 40,
        "{connections} {checked}"
    );
}

const INTRODUCTION: &str = "\
# Test vectors of zstd@sshflow.org (doc/zstd-sshflow.md).
#
# Each connection begins with a fresh decoder. A packet (hexadecimal: tag and
# body) is followed by the payload it decodes to, or by the reason for which it
# must be refused; after a refusal the decoder is of no more use.
";

struct Writer(String);

impl Writer {
    fn connection(&mut self, name: &str) {
        write!(self.0, "\nconnection {name}\n").unwrap();
    }

    fn packet(&mut self, packet: &[u8], payload: &[u8]) {
        write!(self.0, "packet {}\npayload {}\n", hex(packet), hex(payload)).unwrap();
    }

    fn error(&mut self, name: &str, before: &[(&[u8], &[u8])], packet: &[u8]) {
        self.connection(name);
        for (packet, payload) in before {
            self.packet(packet, payload);
        }
        write!(self.0, "packet {}\nerror {name}\n", hex(packet)).unwrap();
    }
}

const HEADER: [u8; 6] = [0x28, 0xb5, 0x2f, 0xfd, 0, 0];

fn opening(tag: u8, window: u8, blocks: &[u8]) -> Vec<u8> {
    let mut packet = [&[tag][..], &HEADER, blocks].concat();
    packet[6] = window;
    packet
}

#[test]
#[ignore = "writes the file"]
fn write_the_vectors() {
    let mut out = Writer(INTRODUCTION.into());
    encoded(&mut out);
    accepted(&mut out);
    refused(&mut out);
    std::fs::write(FILE, out.0).unwrap();
}

fn encoded(out: &mut Writer) {
    let mut random = Random(1);
    let payloads = [
        random.text(200),
        random.bytes(60),
        random.text(300),
        vec![0; 900],
        b"k".to_vec(),
        random.text(120),
    ];
    for level in ["-1", "1", "3", "9"] {
        out.connection(&format!(
            "text, random, zeros and a keystroke at level {level}"
        ));
        let mut compressor = Compressor::new(Method::Zstd, &config(&[("level", level)])).unwrap();
        for (at, payload) in payloads.iter().enumerate() {
            let group = if at == 5 { 7 } else { 0 };
            let flags = Flags {
                group,
                ..Flags::default()
            };
            out.packet(&compress(&mut compressor, payload, flags), payload);
        }
    }
}

fn accepted(out: &mut Writer) {
    const AB: [u8; 5] = [16, 0, 0, b'a', b'b'];
    out.connection("stored");
    out.packet(&[0, 0x5e], &[0x5e]);
    out.connection("a raw packet enters the history of its stream only");
    out.packet(&opening(2, 0, &AB), b"ab");
    out.packet(&[6, b'c', b'd'], b"cd");
    out.packet(&[0, b'e'], b"e");
    // An RLE block, then two blocks in one packet.
    out.packet(&[2, 34, 0, 0, b'x'], b"xxxx");
    out.packet(&[[2].as_slice(), &AB, &AB].concat(), b"abab");
    out.connection("a frame ends in the packet that opened it");
    out.packet(&opening(1, 0, &[17, 0, 0, b'a', b'b']), b"ab");
    out.packet(&opening(1, 8, &AB), b"ab");
    out.connection("a frame is given up and another follows in one packet");
    out.packet(&opening(3, 0, &AB), b"ab");
    let again = [&[3, 1, 0, 0][..], &opening(3, 16, &AB)[1..]].concat();
    out.packet(&again, b"ab");
    out.connection("two windows of 4 MiB are the most");
    out.packet(&opening(1, 12 << 3, &AB), b"ab");
    out.packet(&opening(4, 12 << 3, &AB), b"ab");
    out.connection("sixteen empty blocks");
    let empties = [opening(1, 0, &[0; 48]), AB.to_vec()].concat();
    out.packet(&empties, b"ab");
}

fn refused(out: &mut Writer) {
    const AB: [u8; 5] = [16, 0, 0, b'a', b'b'];
    let open = opening(1, 0, &AB);
    let opened: [(&[u8], &[u8]); 1] = [(&open, b"ab")];
    out.error("no body", &[], &[0]);
    out.error("reserved tag", &[], &[9, b'a']);
    out.error("raw without an open frame", &[], &[5, b'a']);
    let long = [&[5][..], &[b'a'; 1025]].concat();
    out.error("raw longer than the window", &opened, &long);
    out.error(
        "block without an open frame",
        &[],
        &[[1].as_slice(), &AB].concat(),
    );
    out.error("nothing decoded", &opened, &[1, 0, 0, 0]);
    out.error("half a block header", &opened, &[1, 0, 0]);
    out.error("half a block", &opened, &[1, 16, 0, 0, b'a']);
    out.error("reserved block type", &opened, &[1, 6, 0, 0]);
    out.error(
        "block larger than the window",
        &opened,
        &[1, 0x0a, 0x20, 0, b'x'],
    );
    out.error("window of 4.5 MiB", &[], &opening(1, 12 << 3 | 1, &AB));
    let wide = opening(1, 12 << 3, &AB);
    let wide2 = opening(2, 12 << 3, &AB);
    let both: [(&[u8], &[u8]); 2] = [(&wide, b"ab"), (&wide2, b"ab")];
    out.error("windows above 8 MiB in all", &both, &opening(3, 0, &AB));
    for (name, at, byte) in [
        ("skippable frame", 1, 0x50),
        ("legacy frame", 1, 0x27),
        ("checksum flag", 5, 4),
        ("single segment", 5, 0x20),
        ("content size", 5, 0x40),
        ("dictionary", 5, 1),
        ("reserved bit", 5, 8),
    ] {
        let mut packet = open.clone();
        packet[at] = byte;
        out.error(name, &[], &packet);
    }
    let empties = [opening(1, 0, &[0; 51]), AB.to_vec()].concat();
    out.error("seventeen empty blocks", &[], &empties);
    out.error(
        "damaged literals",
        &opened,
        &[1, 36, 0, 0, 0xff, 0xff, 0xff, 0xff],
    );
}
