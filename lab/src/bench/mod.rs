//! Runs a matrix: every point with every variant, interleaved, each run checked and written down.
#![forbid(unsafe_code)]

mod changes;
mod drivers;
mod dropbear;
mod ends;
mod fill;
mod groups;
mod host;
pub mod matrix;
pub mod record;
mod watch;
mod world;

use crate::data::{self, Data};
use crate::error::{Context, Error, Result};
use crate::link::Direction;
use crate::payload::now_ns;
use crate::sys::spawn::Spawn;
use crate::sys::{capsule, janitor};
use crate::work::Work;
use drivers::Run;
use ends::{Ends, Keys};
use groups::{End, Groups};
use matrix::{Driver, Matrix, Point, Variant, PLAIN_TCP};
use rand::seq::SliceRandom;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use record::{Host, Line, Outcome, Record, Task};
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};
use world::World;

/// What a matrix may be restricted to.
#[derive(Default)]
pub struct Restriction {
    /// Only groups whose name contains one of these.
    pub groups: Vec<String>,
    pub repeats: Option<usize>,
}

struct Bench<'a> {
    work: &'a Work,
    matrix: &'a Matrix,
    scratch: PathBuf,
    keys: Keys,
    groups: Groups,
    world: World,
    host: Host,
    data: HashMap<String, Data>,
    versions: HashMap<PathBuf, String>,
    out: File,
    order: usize,
    failed: usize,
}

/// Runs all of a matrix and appends the results to `out`. The number of failed runs is returned.
pub fn run(work: &Work, matrix: &Matrix, out: &Path, only: &Restriction) -> Result<usize> {
    // Data first: it is made outside, and only once.
    let mut ready = HashMap::new();
    for point in selected(matrix, only)? {
        if let Some(name) = point.data.filter(|n| !ready.contains_key(*n)) {
            ready.insert(name.to_string(), data::get(work, name)?);
        }
    }
    let root = nix::unistd::geteuid().is_root();
    janitor::start()?;
    let contained = match capsule::enter() {
        Ok(()) => true,
        Err(e) if !root => {
            eprintln!("not root: only what runs over loopback is measured ({e})");
            false
        }
        Err(e) => return Err(e),
    };
    let scratch = scratch(contained)?;
    let result = measure(work, matrix, out, only, ready, scratch.clone());
    if !contained {
        let _ = std::fs::remove_dir_all(&scratch);
    }
    result
}

fn measure(
    work: &Work,
    matrix: &Matrix,
    out: &Path,
    only: &Restriction,
    data: HashMap<String, Data>,
    scratch: PathBuf,
) -> Result<usize> {
    let groups = Groups::new();
    let keygen = matrix.variants.iter().find(|v| v.kind == "openssh");
    let keygen = match keygen {
        Some(v) => ends::program(&v.client, "bin/ssh-keygen")?,
        None => PathBuf::from("ssh-keygen"),
    };
    let keys = Keys::make(&work.dir("keys")?, &keygen)?;
    let world = World::new(matrix.seed);
    if let Some(why) = &world.no_link {
        eprintln!("no delay link here ({why}): its points are left out");
    }
    let host = host::about(&groups);
    let file = File::options().create(true).append(true).open(out);
    let out = file.context(|| format!("opening {}", out.display()))?;
    let versions = HashMap::new();
    let mut bench = Bench {
        work, matrix, scratch, keys, groups, world, host, data, versions, out, order: 0, failed: 0,
    };
    bench.calibrate(only)?;
    bench.write(&Line::Host(bench.host.clone()))?;
    for point in selected(matrix, only)? {
        bench.point(&point, only)?;
    }
    // Again, with the ciphers that were met.
    bench.write(&Line::Host(bench.host.clone()))?;
    Ok(bench.failed)
}

/// A directory in memory, seen by our own processes alone where that can be had.
fn scratch(contained: bool) -> Result<PathBuf> {
    let base = if contained { "/tmp" } else { "/dev/shm" };
    let dir = PathBuf::from(format!("{base}/sshflow-lab-{:x}", now_ns()));
    std::fs::create_dir(&dir).context(|| format!("making {}", dir.display()))?;
    janitor::remove_later(&dir);
    if contained {
        capsule::private_tmpfs(&dir.display().to_string(), "mode=755,size=75%")?;
    }
    Ok(dir)
}

fn selected<'a>(matrix: &'a Matrix, only: &Restriction) -> Result<Vec<Point<'a>>> {
    let wanted = |p: &Point<'_>| {
        only.groups.is_empty() || only.groups.iter().any(|g| p.group.name.contains(g.as_str()))
    };
    Ok(matrix.points()?.into_iter().filter(wanted).collect())
}

impl Bench<'_> {
    fn write(&mut self, line: &Line) -> Result<()> {
        Ok(writeln!(self.out, "{}", serde_json::to_string(line)?)?)
    }

    /// Measures how much slower each slow CPU of the selected points really is.
    fn calibrate(&mut self, only: &Restriction) -> Result<()> {
        let mut factors: Vec<f64> = Vec::new();
        for p in selected(self.matrix, only)? {
            factors.extend([p.cpu.sender, p.cpu.receiver].iter().filter(|f| **f > 1.0));
        }
        factors.sort_by(f64::total_cmp);
        factors.dedup();
        for factor in factors {
            let line = host::calibrate(&self.groups, factor)?;
            eprintln!("{line}");
            self.host.calibration.push(line);
        }
        Ok(())
    }

    fn point(&mut self, point: &Point<'_>, only: &Restriction) -> Result<()> {
        let slow = point.cpu.sender > 1.0 || point.cpu.receiver > 1.0;
        if let Some(why) = self.world.obstacle(point.link) {
            eprintln!("{}: link {} left out: {why}", point.group.name, point.link.name);
            return Ok(());
        }
        if slow && !self.groups.present() {
            eprintln!("{}: CPU {} LEFT OUT: {}", point.group.name, point.cpu.name, self.groups.about());
            return Ok(());
        }
        let mut variants = Vec::new();
        for name in &point.group.variants {
            variants.push(self.matrix.variant(name)?.clone());
        }
        if point.group.limit {
            variants.push(plain_tcp());
        }
        for repeat in 0..only.repeats.unwrap_or(point.group.repeats) {
            let mut order: Vec<&Variant> = variants.iter().collect();
            let seed = self.matrix.seed.wrapping_add(self.order as u64);
            order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
            for variant in order {
                self.one(point, variant, repeat)?;
            }
        }
        Ok(())
    }

    fn one(&mut self, point: &Point<'_>, variant: &Variant, repeat: usize) -> Result<()> {
        self.order += 1;
        let task = Task {
            matrix: self.matrix.name.clone(),
            group: point.group.clone(),
            link: point.link.clone(),
            cpu: point.cpu.clone(),
            data: point.data.and_then(|d| self.data.get(d)).cloned(),
            variant: variant.clone(),
            repeat,
            order: self.order,
            seed: self.matrix.seed.wrapping_add(self.order as u64),
        };
        let client_version = self.version(variant, true);
        let server_version = self.version(variant, false);
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let (outcome, tcp) = self.attempt(&task, point);
        self.note_cipher(&outcome.cipher);
        print_line(&task, &outcome);
        self.failed += usize::from(outcome.error.is_some() != point.group.fault.is_some());
        let record = Record {
            time: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs()),
            client_version,
            server_version,
            congestion: tcp.congestion,
            tcp_rmem: tcp.rmem,
            tcp_wmem: tcp.wmem,
            load_before: load.trim().into(),
            task,
            outcome,
        };
        self.write(&Line::Run(Box::new(record)))
    }

    /// One run with all that surrounds it; whatever fails becomes a failed outcome.
    fn attempt(&mut self, task: &Task, point: &Point<'_>) -> (Outcome, world::TcpSettings) {
        let dir = self.scratch.join(format!("run-{}", self.order));
        let failed = |e: Error| Outcome { error: Some(e.to_string()), ..Outcome::default() };
        let place = match self.world.prepare(point.link) {
            Ok(p) => p,
            Err(e) => return (failed(e), world::TcpSettings::default()),
        };
        let tcp = place.tcp.clone();
        let around = Around { groups: &self.groups, keys: &self.keys, place: &place, dir: &dir };
        let outcome = around.run(task, point).unwrap_or_else(failed);
        self.groups.kill_all();
        if std::env::var_os("SSHFLOW_LAB_KEEP").is_some() {
            let kept = self.work.dir("kept").map(|k| k.join(format!("run-{}", self.order)));
            let _ = kept.map(|k| Spawn::new(&["cp", "-r"]).arg(&dir).arg(k).read());
        }
        let _ = std::fs::remove_dir_all(&dir);
        (outcome, tcp)
    }

    fn version(&mut self, variant: &Variant, client: bool) -> String {
        if variant.kind == "tcp" {
            return String::new();
        }
        let (at, below) = match (client, variant.kind.as_str()) {
            (true, "dropbear") => (&variant.client, "bin/dbclient"),
            (false, "dropbear") => (&variant.server, "sbin/dropbear"),
            (true, _) => (&variant.client, "bin/ssh"),
            (false, _) => (&variant.server, "sbin/sshd"),
        };
        let Ok(program) = ends::program(at, below) else {
            return String::new();
        };
        let asked = self.versions.entry(program.clone()).or_insert_with(|| {
            let output = Spawn::new(&[program.as_os_str(), "-V".as_ref()]).output();
            let text = output.map(|o| [o.stderr, o.stdout].concat()).unwrap_or_default();
            String::from_utf8_lossy(&text).lines().next().unwrap_or("").to_string()
        });
        asked.clone()
    }

    fn note_cipher(&mut self, name: &str) {
        if name.is_empty() || self.host.ciphers_mb_s.contains_key(name) {
            return;
        }
        match host::cipher(name) {
            Ok(rate) => {
                self.host.ciphers_mb_s.insert(name.into(), rate);
            }
            Err(e) => eprintln!("{e}"),
        }
    }
}

fn plain_tcp() -> Variant {
    Variant {
        name: PLAIN_TCP.into(),
        kind: "tcp".into(),
        client: PathBuf::new(),
        server: PathBuf::new(),
        options: vec![],
        server_options: vec![],
    }
}

/// What surrounds one run: files, CPU speed, counters, watcher.
struct Around<'a> {
    groups: &'a Groups,
    keys: &'a Keys,
    place: &'a world::Place<'a>,
    dir: &'a Path,
}

impl Around<'_> {
    fn run(&self, task: &Task, point: &Point<'_>) -> Result<Outcome> {
        std::fs::create_dir_all(self.dir)?;
        let roots = Mutex::new(Vec::new());
        let run = Run {
            ends: Ends {
                variant: &task.variant,
                group: &task.group,
                place: self.place,
                groups: self.groups,
                keys: self.keys,
                dir: self.dir,
            },
            point,
            data: task.data.as_ref(),
            place: self.place,
            groups: self.groups,
            roots: &roots,
            seed: task.seed,
        };
        let (client, server) = match run.sender() {
            End::Client => (point.cpu.sender, point.cpu.receiver),
            End::Server => (point.cpu.receiver, point.cpu.sender),
        };
        self.groups.slow(End::Client, client)?;
        self.groups.slow(End::Server, server)?;
        let cpu_before = End::BOTH.map(|e| self.groups.cpu_seconds(e));
        let wire_before = self.place.wire();
        let begin = now_ns();
        let limit = time_limit(point)?;
        let (result, seen) = watch::watched(self.groups, self.place, &roots, limit, || {
            changes::during(&run, || drivers::run(&run))
        });
        for end in End::BOTH {
            self.groups.slow(end, 1.0)?;
        }
        let mut outcome = match result {
            _ if seen.timed_out => {
                Err(Error::new(format!("not done after {} s", limit.as_secs())))
            }
            other => other,
        }?;
        let cpu = |i: usize, end| Some(self.groups.cpu_seconds(end)? - cpu_before[i]?);
        outcome.client_cpu_s = cpu(0, End::Client);
        outcome.server_cpu_s = cpu(1, End::Server);
        outcome.peak_rss_kb = seen.peak_rss_kb;
        if let (Some(before), Some(after)) = (wire_before, self.place.wire()) {
            let (up, down) = (after.0 - before.0, after.1 - before.1);
            let (there, back) = if run.sender() == End::Client { (up, down) } else { (down, up) };
            outcome.wire_bytes = Some(there);
            outcome.wire_bytes_back = Some(back);
            fill_in_wire(&mut outcome, &seen.wire, begin, run.sender() == End::Client, before);
        }
        if let Some(link) = self.place.link() {
            outcome.link_up = Some(link.counters(Direction::Up));
            outcome.link_down = Some(link.counters(Direction::Down));
        }
        let log = run.client_log();
        (outcome.cipher, outcome.compression) = drivers::negotiated(&log);
        Ok(outcome)
    }
}

/// Joins the samples of the receiver with those of the wire, by time.
fn fill_in_wire(
    outcome: &mut Outcome,
    wire: &[(u64, u64, u64)],
    begin: u64,
    up: bool,
    before: (u64, u64),
) {
    let mut at = 0;
    for (seconds, _, carried) in &mut outcome.samples {
        let clock = begin + (*seconds * 1e9) as u64;
        while at + 1 < wire.len() && wire[at + 1].0 <= clock {
            at += 1;
        }
        if let Some((_, u, d)) = wire.get(at) {
            *carried = if up { u.saturating_sub(before.0) } else { d.saturating_sub(before.1) };
        }
    }
}

/// So long may a run take: a multiple of what its bytes take at a crawl.
fn time_limit(point: &Point<'_>) -> Result<Duration> {
    let bytes = point.group.bytes.as_deref().map(crate::units::bytes).transpose()?.unwrap_or(0);
    let bytes = bytes * point.group.channels.max(1) as u64;
    let rate = point.link.params()?.rate;
    let mut per_second = if rate == 0 { 4e6 } else { (rate as f64 / 8.0 / 10.0).min(4e6) };
    if let Some(consume) = &point.group.consume {
        per_second = per_second.min(crate::units::bytes(consume)? as f64 / 4.0);
    }
    let keys = point.group.keys.max(200) as f64 * 1.5;
    let base = match point.group.driver {
        Driver::Echo => 60.0 + keys,
        Driver::Session => 180.0,
        _ => 60.0 + point.group.seconds.unwrap_or(0.0),
    };
    Ok(Duration::from_secs_f64(base + bytes as f64 / per_second))
}

fn print_line(task: &Task, outcome: &Outcome) {
    let what = match &outcome.error {
        Some(e) => format!("FAILED: {e}"),
        None => format!("{:.3} {}", outcome.value, outcome.unit),
    };
    let data = task.data.as_ref().map_or("", |d| d.name.as_str());
    let name = &task.variant.name;
    println!(
        "{:>4} {} | {} | {data} | {} | {name}: {what}",
        task.order, task.group.name, task.link.name, task.cpu.name
    );
}
