//! Hostile packets: an error at the worst, within the bounds of memory.

use sshflow::compression::{Decompressor, Method};
use sshflow::config::Config;
use sshflow::Error;

use super::input::Input;

const METHODS: [Method; 4] = [
    Method::ZlibDelayed,
    Method::Zstd,
    Method::Zlib,
    Method::None,
];
/// 0 stands for a call without room between two with room.
const ROOMS: [usize; 8] = [1 << 18, 1, 0, 2, 3, 100, 4096, 32_768];
/// The decoders' hard stop.
const MEMORY: u64 = 16 << 20;

/// A byte for the method, one for `max_payload`; then for each packet a byte
/// for the room, two for the length, and the packet.
pub fn decompress(data: &[u8]) {
    let mut input = Input::new(data);
    let method = input.pick(&METHODS);
    let mut config = Config::new();
    let max = input.pick(&[262_144, 1024, 32_768, 1 << 20]);
    config.set_int("max_payload", max).unwrap();
    let mut decompressor = Decompressor::new(method, &config).unwrap();
    let mut room = vec![0; 1 << 18];
    while !input.is_empty() {
        let size = input.pick(&ROOMS);
        let len = usize::from(input.u16());
        let packet = input.bytes(len);
        let decoded = one_packet(&mut decompressor, packet, &mut room, size, max as u64);
        let stats = decompressor.stats();
        assert!(stats.memory_peak_bytes <= MEMORY);
        match decoded {
            Ok(()) => {}
            Err(Error::InvalidArgument) => assert!(packet.is_empty()),
            Err(error) => {
                assert!(
                    matches!(error, Error::Corrupt | Error::TooLarge),
                    "{error:?}"
                );
                let after = decompressor.decompress(b"x", &mut room);
                assert_eq!(after, Err(Error::State));
                assert_eq!(decompressor.stats(), stats);
                return;
            }
        }
    }
}

fn one_packet(
    decompressor: &mut Decompressor,
    packet: &[u8],
    room: &mut [u8],
    size: usize,
    max: u64,
) -> Result<(), Error> {
    let (mut at, mut total) = (0, 0);
    let mut size_now = size;
    loop {
        let progress = decompressor.decompress(&packet[at..], &mut room[..size_now])?;
        at += progress.used;
        total += progress.written as u64;
        assert!(total <= max, "{total} bytes of {max}");
        if !progress.more {
            assert_eq!(at, packet.len());
            assert!(total > 0, "a packet that decodes to nothing is an error");
            return Ok(());
        }
        assert_eq!(progress.written, size_now, "more means that it is full");
        // Nobody waits for a megabyte in single bytes.
        size_now = match size {
            0 if size_now == 0 => 1,
            0 if total < 1000 => 0,
            _ if total > 4000 => room.len(),
            _ => size.max(1),
        };
    }
}
