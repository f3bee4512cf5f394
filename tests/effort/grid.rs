//! Where the links of a test come from: the laboratory's grid, and random ones.

use crate::data::{Data, WireKind};
use crate::random::Random;
use crate::world::{Cpu, Host, Scenario, SECOND};

pub const MBIT: f64 = 1e6 / 8.0;

/// A plain connection of two equal machines, to be varied.
pub fn plain(wire: WireKind, data: Data, rate: f64) -> Scenario {
    Scenario {
        wire,
        host: Host::Poll,
        sender: Cpu {
            slow: 1.0,
            throttled: false,
        },
        peer: Cpu {
            slow: 1.0,
            throttled: false,
        },
        sender_raw: 2.3,
        sender_wire: 2.0,
        peer_raw: 2.3,
        peer_wire: 2.0,
        engine: [1.0; 8],
        link: vec![(0.0, rate)],
        rtt: 1e-3 * SECOND,
        send_buffer: 4096.0 * 1024.0,
        autotuned: true,
        receive_buffer: 3072.0 * 1024.0,
        channel_window: None,
        source: None,
        data: vec![(data, f64::INFINITY)],
        asks_kernel: true,
        keys: 0.0,
        seed: 1,
    }
}

/// The laboratory's cells: link, data, and whose CPU is slow.
pub fn laboratory(wire: WireKind) -> Vec<(String, Scenario)> {
    use Data::{Random, Raster, SourceTar, Syslog, VmImage};
    let links = [
        ("5 Mbit", 5.0 * MBIT, 20.0),
        ("100 Mbit", 100.0 * MBIT, 10.0),
        ("1 Gbit", 1000.0 * MBIT, 1.0),
        ("loopback", 20_000.0 * MBIT, 0.03),
    ];
    let cpus = [
        ("full", 1.0, 1.0),
        ("both/6", 6.0, 6.0),
        ("send/6", 6.0, 1.0),
        ("recv/6", 1.0, 6.0),
    ];
    let mut cells = Vec::new();
    for (link, rate, rtt) in links {
        for data in [Syslog, Raster, VmImage, Random, SourceTar] {
            for (cpu, sender, peer) in cpus {
                let mut s = plain(wire, data, rate);
                s.rtt = rtt * 1e-3 * SECOND;
                s.sender.slow = sender;
                s.peer.slow = peer;
                s.send_buffer = (2.0 * rate * rtt * 1e-3 * 4.0).clamp(400e3, 4e6);
                s.seed = cells.len() as u64 + 1;
                cells.push((format!("{link} {data:?} {cpu}"), s));
            }
        }
    }
    cells
}

/// A link that nobody chose.
pub fn draw(random: &mut Random) -> Scenario {
    use Data::{Dense, Raster, SourceTar, Syslog, VmImage, Zeros};
    let wire = *random.pick(&[WireKind::Zlib, WireKind::Zstd]);
    let data = *random.pick(&[
        Syslog,
        Raster,
        VmImage,
        Data::Random,
        SourceTar,
        Dense,
        Zeros,
    ]);
    let mut s = plain(wire, data, random.log_between(5.0 * MBIT, 20_000.0 * MBIT));
    s.host = if random.next() % 4 == 0 {
        Host::Blocking
    } else {
        Host::Poll
    };
    for cpu in [&mut s.sender, &mut s.peer] {
        if random.next() % 2 == 0 {
            cpu.slow = random.log_between(1.0, 8.0);
        }
    }
    for cost in [&mut s.sender_raw, &mut s.peer_raw] {
        *cost = random.log_between(1.0, 5.0);
    }
    let cipher = random.log_between(0.8, 6.0);
    s.sender_wire = cipher * random.between(0.8, 1.25);
    s.peer_wire = cipher * random.between(0.8, 1.25);
    for factor in &mut s.engine {
        *factor = random.between(0.75, 1.3);
    }
    s.rtt = random.log_between(0.03, 60.0) * 1e-3 * SECOND;
    let delay_product = s.link[0].1 * s.rtt / SECOND;
    s.send_buffer = (delay_product * random.between(2.5, 6.0))
        .clamp(300e3, 4e6)
        .max(delay_product * 2.0);
    s.autotuned = random.next() % 4 != 0;
    s.receive_buffer = (delay_product * 3.0)
        .clamp(500e3, 6e6)
        .max(delay_product * 1.5);
    s.asks_kernel = random.next() % 2 == 0;
    s.seed = random.next();
    s
}
