//! What a peer may not send, and what every real peer does send.

mod common;

use common::{compress, config, decompress, pair, Random};
use sshflow::compression::{Compressor, Decompressor, Flags, Method};
use sshflow::{Error, Result};

const WIRES: [Method; 2] = [Method::ZlibDelayed, Method::Zstd];

fn decoder(method: Method) -> Decompressor {
    Decompressor::new(method, &config(&[])).unwrap()
}

fn decode(decoder: &mut Decompressor, packet: &[u8]) -> Result<Vec<u8>> {
    decompress(decoder, packet, 32_768)
}

#[test]
fn a_bomb_is_refused_before_more_than_max_payload_is_made() {
    for method in WIRES {
        let large = config(&[("max_payload", "128M"), ("level", "9")]);
        let mut compressor = Compressor::new(method, &large).unwrap();
        let packet = compress(&mut compressor, &vec![0; 100 << 20], Flags::default());
        assert!(packet.len() < 256 * 1024, "{} bytes", packet.len());
        let mut decoder = decoder(method);
        let mut room = vec![0; 1 << 20];
        assert_eq!(decoder.decompress(&packet, &mut room), Err(Error::TooLarge));
        assert_eq!(decoder.decompress(&packet, &mut room), Err(Error::State));
        assert!(decoder.stats().memory_peak_bytes < 5 << 20);
        assert!(room[256 * 1024..].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn exactly_max_payload_is_allowed_and_one_byte_more_is_not() {
    for method in WIRES {
        let (mut compressor, mut decompressor) = pair(method, &config(&[]));
        let packet = compress(&mut compressor, &Random(2).text(262_144), Flags::default());
        assert_eq!(decode(&mut decompressor, &packet).unwrap().len(), 262_144);
        let packet = compress(&mut compressor, &Random(2).text(262_145), Flags::default());
        assert_eq!(decode(&mut decompressor, &packet), Err(Error::TooLarge));
    }
}

#[test]
fn mutated_and_truncated_packets_never_do_worse_than_an_error() {
    for method in WIRES {
        let mut random = Random(23);
        for round in 0..400 {
            let (mut compressor, mut decompressor) = pair(method, &config(&[("level", "3")]));
            for _ in 0..4 {
                let payload = random.payload(3000);
                let mut packet = compress(&mut compressor, &payload, Flags::default());
                if round % 2 == 0 {
                    let at = random.below(packet.len());
                    packet[at] ^= 1 << random.below(8);
                } else {
                    packet.truncate(1 + random.below(packet.len()));
                }
                match decode(&mut decompressor, &packet) {
                    Ok(decoded) => assert!(decoded.len() <= 262_144),
                    Err(error) => {
                        assert!(
                            matches!(error, Error::Corrupt | Error::TooLarge),
                            "{error:?}"
                        );
                        assert_eq!(decode(&mut decompressor, b"x"), Err(Error::State));
                        break;
                    }
                }
            }
        }
    }
}

#[test]
fn random_bytes_are_refused() {
    let mut random = Random(29);
    for method in WIRES {
        for _ in 0..2000 {
            let len = 1 + random.below(200);
            let mut packet = random.bytes(len);
            if method == Method::Zstd {
                packet[0] = random.below(10) as u8;
            } else {
                packet.splice(0..0, [0x78, 0x9c]);
            }
            if let Ok(decoded) = decode(&mut decoder(method), &packet) {
                assert!(!decoded.is_empty() && decoded.len() <= 262_144);
            }
        }
    }
}

#[test]
fn zlib_empty_blocks_pad_but_do_not_go_on_for_ever() {
    // Ten bits each: an empty block of fixed codes; 40 bits hold four.
    const EMPTY: [u8; 5] = [0x02, 0x08, 0x20, 0x80, 0x00];
    let stored = [0, 2, 0, 0xfd, 0xff, b'o', b'k'];
    let packet = |empties: usize| [&[0x78, 0x9c][..], &EMPTY.repeat(empties / 4), &stored].concat();
    assert_eq!(
        decode(&mut decoder(Method::Zlib), &packet(1000)).unwrap(),
        b"ok"
    );
    assert_eq!(
        decode(&mut decoder(Method::Zlib), &packet(1028)),
        Err(Error::Corrupt)
    );
    assert_eq!(
        decode(&mut decoder(Method::Zlib), &packet(200_000)),
        Err(Error::Corrupt)
    );
}

#[test]
fn zlib_header_end_of_stream_and_empty_packets_are_checked() {
    let last = [0x78, 0x9c, 1, 2, 0, 0xfd, 0xff, b'o', b'k'];
    assert_eq!(
        decode(&mut decoder(Method::Zlib), &last),
        Err(Error::Corrupt),
        "final block"
    );
    for header in [[0x78, 0x9d], [0x79, 0x9c], [0x88, 0x1c], [0x78, 0xbb]] {
        let packet = [&header[..], &[0, 2, 0, 0xfd, 0xff, b'o', b'k']].concat();
        assert_eq!(
            decode(&mut decoder(Method::Zlib), &packet),
            Err(Error::Corrupt)
        );
    }
    let nothing = [0x78, 0x9c, 0, 0, 0, 0xff, 0xff];
    assert_eq!(
        decode(&mut decoder(Method::Zlib), &nothing),
        Err(Error::Corrupt)
    );
    assert_eq!(
        decode(&mut decoder(Method::Zlib), &[0x78]),
        Err(Error::Corrupt)
    );
}

#[test]
fn zstd_tags_outside_the_format_are_refused() {
    for packet in [
        &[9, 1][..],
        &[255, 1],
        &[5, 1],
        &[8, 1],
        &[0],
        &[1],
        &[1, 1, 0, 0],
    ] {
        assert_eq!(
            decode(&mut decoder(Method::Zstd), packet),
            Err(Error::Corrupt),
            "{packet:?}"
        );
    }
    assert_eq!(decode(&mut decoder(Method::Zstd), &[0, 7]).unwrap(), [7]);
}

/// A frame header with the window 1 << log, and a raw block "ab".
fn opening(tag: u8, log: u8) -> Vec<u8> {
    vec![
        tag,
        0x28,
        0xb5,
        0x2f,
        0xfd,
        0,
        (log - 10) << 3,
        16,
        0,
        0,
        b'a',
        b'b',
    ]
}

#[test]
fn zstd_windows_of_all_streams_are_bounded() {
    let mut two = decoder(Method::Zstd);
    assert_eq!(decode(&mut two, &opening(1, 22)).unwrap(), b"ab");
    assert_eq!(decode(&mut two, &opening(2, 22)).unwrap(), b"ab");
    assert_eq!(decode(&mut two, &opening(3, 10)), Err(Error::Corrupt));
    assert_eq!(
        decode(&mut decoder(Method::Zstd), &opening(1, 23)),
        Err(Error::Corrupt)
    );
    // An ended frame no longer counts, and its memory is given back.
    let mut many = decoder(Method::Zstd);
    for round in 0..40 {
        let tag = 1 + round % 4;
        let mut packet = opening(tag, 22);
        packet.extend([1, 0, 0]);
        assert_eq!(decode(&mut many, &packet).unwrap(), b"ab");
    }
    assert!(many.stats().memory_peak_bytes < 12 << 20);
}

#[test]
fn zstd_raw_packets_belong_to_an_open_frame_and_its_history() {
    let mut decoder = decoder(Method::Zstd);
    assert_eq!(decode(&mut decoder, &opening(2, 10)).unwrap(), b"ab");
    let raw = [&[6][..], &[b'z'; 1024]].concat();
    assert_eq!(decode(&mut decoder, &raw).unwrap(), vec![b'z'; 1024]);
    let over = [&[6][..], &[b'z'; 1025]].concat();
    assert_eq!(decode(&mut decoder, &over), Err(Error::Corrupt));
}

#[test]
fn input_that_is_not_the_rest_of_the_packet_is_an_invalid_argument() {
    for method in WIRES {
        let (mut compressor, mut decompressor) = pair(method, &config(&[]));
        let payload = Random(4).text(5000);
        let packet = compress(&mut compressor, &payload, Flags::default());
        assert_eq!(
            decompressor.decompress(&[], &mut [0; 9]),
            Err(Error::InvalidArgument)
        );
        let mut room = [0; 1000];
        let first = decompressor.decompress(&packet, &mut room).unwrap();
        assert!(first.more);
        let rest = &packet[first.used..];
        let longer = [rest, b"?"].concat();
        let refused = decompressor.decompress(&longer, &mut room);
        assert_eq!(refused, Err(Error::InvalidArgument));
        let decoded = decompress(&mut decompressor, rest, 1 << 16).unwrap();
        assert!(decoded == payload[1000..]);
    }
}
