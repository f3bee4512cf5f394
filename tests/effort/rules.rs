//! The controller and the fixed rules it is measured against.

use crate::data::{fixed_choices, WireKind};
use sshflow::compression::effort::{
    Controller, Effort, KernelState, Limits, Outcome, Situation, ZLIB, ZSTD,
};
use sshflow::compression::probe::Probe;

/// What a rule may know about the packet in hand.
pub struct Packet {
    pub now_ns: u64,
    pub len: usize,
    pub interactive: bool,
    pub queued: Option<usize>,
    pub window_limited: bool,
    pub kernel: Option<KernelState>,
    pub probe: f64,
}

/// What became of it.
pub struct Sent {
    pub effort: Effort,
    pub tried: Effort,
    pub len: usize,
    pub wire: usize,
    pub spent_ns: u64,
}

pub trait Rule {
    fn choose(&mut self, packet: &Packet) -> Effort;
    fn observe(&mut self, _sent: &Sent) {}
    /// The host waits for the peer to open its channel window.
    fn window_closed(&mut self, _queued: Option<usize>) {}
    /// Nanoseconds that looking at the packet just chosen took.
    fn probe_cost(&self) -> f64 {
        0.0
    }
}

/// One effort for everything.
pub struct Fixed(pub Effort);

impl Rule for Fixed {
    fn choose(&mut self, _: &Packet) -> Effort {
        self.0
    }
}

/// The product.
pub struct Auto {
    pub controller: Controller,
    probed: bool,
    /// Print what is chosen, and the controller's state when the choice changes.
    pub trace: bool,
    last_plan: u64,
    count: u32,
    /// When the effort that most of the payload gets has changed, nanoseconds.
    pub changed_at: Vec<u64>,
}

pub const PROBE_NS: f64 = 1_000.0;

impl Auto {
    pub fn new(wire: WireKind) -> Self {
        let wire = match wire {
            WireKind::Zlib => &ZLIB,
            WireKind::Zstd => &ZSTD,
        };
        Auto {
            controller: Controller::new(wire, Limits::default()),
            probed: false,
            trace: false,
            last_plan: 0,
            count: 0,
            changed_at: Vec::new(),
        }
    }
}

impl Auto {
    /// Changes a second after the first second, of a connection that ended at
    /// `end_ns`.
    pub fn unrest(&self, end_ns: f64) -> f64 {
        let late = self.changed_at.iter().filter(|&&at| at > 1_000_000_000);
        late.count() as f64 / (end_ns / 1e9 - 1.0)
    }

    /// Prints the controller's beliefs whenever its plan has changed.
    fn print_changes(&mut self, packet: &Packet, effort: Effort) {
        let plans = self.controller.plans();
        if self.last_plan != plans {
            self.last_plan = plans;
            println!(
                "{:8.4} s #{} {effort:?} q {:?} p {:.2} {:?} {}",
                packet.now_ns as f64 / 1e9,
                self.count,
                packet.queued.map_or(-1, |q| q as i64),
                packet.probe,
                packet.kernel.map(|k| k.unsent_bytes),
                self.controller.explain(),
            );
        }
    }
}

impl Rule for Auto {
    fn choose(&mut self, packet: &Packet) -> Effort {
        self.controller
            .feedback(packet.queued, packet.window_limited);
        if let Some(state) = packet.kernel {
            if self.controller.kernel_due(state.now_us) {
                self.controller.kernel(state);
            }
        }
        let situation = Situation {
            now_ns: packet.now_ns,
            payload_len: packet.len,
            interactive: packet.interactive,
        };
        let mut probed = false;
        let effort = self.controller.choose(&situation, || {
            probed = true;
            Probe {
                ratio: packet.probe as f32,
            }
        });
        self.probed = probed;
        self.count += 1;
        let changes = self.controller.summary().changes as usize;
        self.changed_at.resize(changes, packet.now_ns);
        if self.trace {
            self.print_changes(packet, effort);
        }
        effort
    }

    fn observe(&mut self, sent: &Sent) {
        self.controller.observe(&Outcome {
            effort: sent.effort,
            tried: sent.tried,
            payload_len: sent.len,
            wire_len: sent.wire,
            spent_ns: sent.spent_ns,
        });
    }

    fn window_closed(&mut self, queued: Option<usize>) {
        self.controller.feedback(queued, true);
    }

    fn probe_cost(&self) -> f64 {
        60.0 + if self.probed { PROBE_NS } else { 0.0 }
    }
}

/// `zstd --adapt`: one level up when the output waits more than the input does,
/// one down when the input waits; looks once per job, here every 512 KiB.
pub struct ZstdAdapt {
    wire: WireKind,
    rung: usize,
    bytes: usize,
    full: u32,
    empty: u32,
}

impl ZstdAdapt {
    pub fn new(wire: WireKind) -> Self {
        ZstdAdapt {
            wire,
            rung: 2,
            bytes: 0,
            full: 0,
            empty: 0,
        }
    }
}

impl Rule for ZstdAdapt {
    fn choose(&mut self, packet: &Packet) -> Effort {
        let ladder = fixed_choices(self.wire);
        match packet.queued {
            Some(queued) if queued > 64 * 1024 => self.full += 1,
            _ => self.empty += 1,
        }
        self.bytes += packet.len;
        if self.bytes >= 512 * 1024 {
            if self.full > self.empty {
                self.rung = (self.rung + 1).min(ladder.len() - 1);
            } else {
                // It never leaves its lowest level: it has no stored packets.
                self.rung = self.rung.saturating_sub(1).max(1);
            }
            (self.bytes, self.full, self.empty) = (0, 0, 0);
        }
        ladder[self.rung]
    }
}

/// OpenVPN's adaptive LZO: tries for two seconds, and switches off for sixty
/// when the gain was below five percent.
pub struct OpenVpn {
    on: Effort,
    until_ns: u64,
    trying: bool,
    raw: u64,
    wire: u64,
}

impl OpenVpn {
    pub fn new(wire: WireKind) -> Self {
        let on = fixed_choices(wire)[1];
        OpenVpn {
            on,
            until_ns: 2_000_000_000,
            trying: true,
            raw: 0,
            wire: 0,
        }
    }
}

impl Rule for OpenVpn {
    fn choose(&mut self, packet: &Packet) -> Effort {
        if packet.now_ns >= self.until_ns {
            let gained = self.wire * 100 < self.raw * 95;
            self.trying = !self.trying || gained;
            let hold = if self.trying { 2 } else { 60 };
            self.until_ns = packet.now_ns + hold * 1_000_000_000;
            (self.raw, self.wire) = (0, 0);
        }
        if self.trying {
            self.on
        } else {
            Effort::Stored
        }
    }

    fn observe(&mut self, sent: &Sent) {
        self.raw += sent.len as u64;
        self.wire += sent.wire as u64;
    }
}

/// Raise the level while the engine and host are busy less than 85 % of the
/// time, lower it above 99 %.
pub struct CpuShare {
    wire: WireKind,
    rung: usize,
    window_start: u64,
    busy: u64,
    last: u64,
    last_queue: usize,
}

impl CpuShare {
    pub fn new(wire: WireKind) -> Self {
        CpuShare {
            wire,
            rung: 1,
            window_start: 0,
            busy: 0,
            last: 0,
            last_queue: 0,
        }
    }
}

impl Rule for CpuShare {
    fn choose(&mut self, packet: &Packet) -> Effort {
        let ladder = fixed_choices(self.wire);
        // Time between packets counts as busy unless the output was full.
        if self.last_queue < 100 * 1024 {
            self.busy += packet.now_ns.saturating_sub(self.last);
        }
        self.last_queue = packet.queued.unwrap_or(0);
        let window = packet.now_ns - self.window_start;
        if window > 100_000_000 {
            let share = self.busy as f64 / window as f64;
            if share < 0.85 {
                self.rung = (self.rung + 1).min(ladder.len() - 1);
            } else if share > 0.99 {
                self.rung = self.rung.saturating_sub(1);
            }
            self.window_start = packet.now_ns;
            self.busy = 0;
        }
        self.last = packet.now_ns;
        ladder[self.rung]
    }

    fn observe(&mut self, sent: &Sent) {
        self.busy += sent.spent_ns;
        self.last += sent.spent_ns;
        self.last_queue += sent.wire;
    }
}
