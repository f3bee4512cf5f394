//! Whatever goes in comes out, whatever the levels, groups and sizes do.

mod common;

use common::{compress, config, decompress, pair, Random};
use sshflow::compression::{compress_bound, Compressor, Decompressor, Flags, Method};
use sshflow::Error;

const WIRES: [Method; 3] = [Method::None, Method::ZlibDelayed, Method::Zstd];

fn random_flags(random: &mut Random) -> Flags {
    Flags {
        interactive: random.below(4) == 0,
        secret: random.below(16) == 0,
        group: if random.below(4) == 0 {
            random.below(7) as u16
        } else {
            0
        },
    }
}

#[test]
fn random_payloads_groups_and_room_sizes_round_trip() {
    for method in WIRES {
        for level in ["auto", "-7", "-1", "0", "1", "3", "6", "9", "12"] {
            for isolation in ["on", "off"] {
                let config = config(&[("level", level), ("isolation", isolation)]);
                let (mut compressor, mut decompressor) = pair(method, &config);
                let mut random = Random(7);
                for round in 0..200 {
                    let payload = random.payload(40_000);
                    let flags = random_flags(&mut random);
                    let packet = compress(&mut compressor, &payload, flags);
                    let chunk = [1, 7, 100, 4096, 65_536][random.below(5)].max(payload.len() / 64);
                    let decoded = decompress(&mut decompressor, &packet, chunk).unwrap();
                    assert!(decoded == payload, "{method:?} {level} {round}");
                }
            }
        }
    }
}

#[test]
fn an_exact_room_needs_no_second_call() {
    for method in WIRES {
        let (mut compressor, mut decompressor) = pair(method, &config(&[]));
        for len in [1, 100, 32_768] {
            let payload = Random(1).text(len);
            let packet = compress(&mut compressor, &payload, Flags::default());
            let mut room = vec![0; len];
            let progress = decompressor.decompress(&packet, &mut room).unwrap();
            assert!(!progress.more && progress.written == len && room == payload);
        }
    }
}

#[test]
fn large_payloads_of_many_blocks_round_trip() {
    for method in WIRES {
        for level in ["1", "6"] {
            let config = config(&[("level", level), ("max_payload", "2M")]);
            let (mut compressor, mut decompressor) = pair(method, &config);
            let mut random = Random(3);
            for payload in [
                random.bytes(1 << 20),
                random.text(1 << 20),
                vec![0; 1 << 20],
                random.bytes(131_073),
                random.text(65_536),
            ] {
                let packet = compress(&mut compressor, &payload, Flags::default());
                assert!(decompress(&mut decompressor, &packet, 1 << 20).unwrap() == payload);
            }
        }
    }
}

#[test]
fn a_packet_never_grows_by_more_than_its_wire_allows() {
    for (method, allowed) in [(Method::ZlibDelayed, 13), (Method::Zstd, 1)] {
        for level in ["auto", "-7", "-1", "1", "2", "3", "6", "9", "19"] {
            let config = config(&[("level", level)]);
            let mut compressor = Compressor::new(method, &config).unwrap();
            let mut random = Random(11);
            compress(
                &mut compressor,
                b"the stream header is not counted",
                Flags::default(),
            );
            for _ in 0..300 {
                let payload = random.payload(32_768);
                let flags = random_flags(&mut random);
                let packet = compress(&mut compressor, &payload, flags);
                let growth = packet.len() as isize - payload.len() as isize;
                assert!(
                    growth <= allowed,
                    "{method:?} {level}: {growth} on {}",
                    payload.len()
                );
            }
        }
    }
}

#[test]
fn keystrokes_cost_no_more_than_documented() {
    let keystroke = |byte: u8| [94, 0, 0, 0, 0, 0, 0, 0, 1, byte];
    for (method, most) in [(Method::Zstd, 11), (Method::ZlibDelayed, 15)] {
        let mut compressor = Compressor::new(method, &config(&[])).unwrap();
        compress(&mut compressor, b"first packet", Flags::default());
        let flags = Flags {
            interactive: true,
            ..Flags::default()
        };
        for byte in 0..=255 {
            let packet = compress(&mut compressor, &keystroke(byte), flags);
            assert!(packet.len() <= most, "{method:?} {}", packet.len());
        }
    }
}

#[test]
fn too_little_room_leaves_the_stream_untouched() {
    for method in WIRES {
        let (mut compressor, mut decompressor) = pair(method, &config(&[]));
        let mut random = Random(5);
        for _ in 0..50 {
            let payload = random.payload(10_000);
            let bound = compress_bound(method, payload.len());
            let mut out = vec![0; bound];
            let short = compressor.compress([&payload[..]], Flags::default(), &mut out[1..]);
            assert_eq!(short, Err(Error::BufferTooSmall));
            let len = compressor
                .compress([&payload[..]], Flags::default(), &mut out)
                .unwrap();
            let decoded = decompress(&mut decompressor, &out[..len], 1 << 16).unwrap();
            assert!(decoded == payload);
        }
    }
}

#[test]
fn a_gather_list_is_one_payload() {
    for method in WIRES {
        let (mut compressor, mut decompressor) = pair(method, &config(&[("level", "6")]));
        let text = Random(9).text(70_000);
        let mut out = vec![0; compress_bound(method, text.len())];
        let parts = [&text[..9], &[], &text[9..40_000], &text[40_000..], &[]];
        let len = compressor
            .compress(parts, Flags::default(), &mut out)
            .unwrap();
        assert!(decompress(&mut decompressor, &out[..len], 1 << 17).unwrap() == text);
        let nothing: [&[u8]; 2] = [&[], &[]];
        let result = compressor.compress(nothing, Flags::default(), &mut out);
        assert_eq!(result, Err(Error::InvalidArgument));
    }
}

#[test]
fn rekey_starts_a_fresh_stream_and_may_change_the_method() {
    let config = config(&[]);
    let mut compressor = Compressor::new(Method::Zstd, &config).unwrap();
    let mut random = Random(13);
    let mut raw = 0;
    for round in 0..30 {
        let method = WIRES[random.below(3)];
        compressor.rekey(method);
        let mut decompressor = Decompressor::new(method, &config).unwrap();
        for _ in 0..10 {
            let payload = random.payload(20_000);
            raw += payload.len() as u64;
            let flags = random_flags(&mut random);
            let packet = compress(&mut compressor, &payload, flags);
            let decoded = decompress(&mut decompressor, &packet, 1 << 16).unwrap();
            assert!(decoded == payload, "round {round} {method:?}");
        }
    }
    assert_eq!(compressor.stats().raw_bytes, raw);
}

#[test]
fn without_memory_packets_go_out_stored() {
    for method in [Method::ZlibDelayed, Method::Zstd] {
        for limit in ["0", "10K", "200K"] {
            let config = config(&[("memory_limit", limit), ("level", "6")]);
            let (mut compressor, mut decompressor) = pair(method, &config);
            let mut random = Random(17);
            for _ in 0..600 {
                let payload = random.payload(3000);
                let packet = compress(&mut compressor, &payload, Flags::default());
                assert!(decompress(&mut decompressor, &packet, 4096).unwrap() == payload);
            }
            let stats = compressor.stats();
            assert!(
                stats.memory_peak_bytes <= compressor_limit(limit),
                "{limit}"
            );
            if limit == "0" {
                assert_eq!(stats.stored_packets, 600);
            }
        }
    }
}

fn compressor_limit(text: &str) -> u64 {
    config(&[("memory_limit", text)]).memory_limit() as u64
}

#[test]
fn a_level_that_does_not_fit_the_memory_is_lowered_and_said_so() {
    let config = config(&[("memory_limit", "3M"), ("level", "19")]);
    let mut compressor = Compressor::new(Method::Zstd, &config).unwrap();
    compress(&mut compressor, &Random(1).text(30_000), Flags::default());
    let stats = compressor.stats();
    assert_eq!(stats.level, 19);
    assert!((-7..19).contains(&stats.last_level), "{}", stats.last_level);
    assert!(stats.memory_peak_bytes <= 3 << 20);
}

#[test]
fn a_secret_is_in_no_history() {
    for (method, level) in [(Method::ZlibDelayed, "9"), (Method::Zstd, "9")] {
        let lengths = |secret: &[u8]| {
            let config = config(&[("level", level)]);
            let (mut compressor, mut decompressor) = pair(method, &config);
            let mut sizes = Vec::new();
            for (payload, is_secret) in [
                (
                    &b"some text before the password prompt, some text"[..],
                    false,
                ),
                (secret, true),
                (b"guess: correct horse battery staple, correct horse", false),
            ] {
                let flags = Flags {
                    secret: is_secret,
                    ..Flags::default()
                };
                let packet = compress(&mut compressor, payload, flags);
                assert!(decompress(&mut decompressor, &packet, 4096).unwrap() == payload);
                sizes.push(packet.len());
            }
            sizes
        };
        assert_eq!(
            lengths(b"correct horse battery staple"),
            lengths(b"xq7!pp0 zzz~11 vbn#mm kkkkk9"),
            "{method:?}"
        );
    }
}
