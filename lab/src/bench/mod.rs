//! Runs a matrix: every point with every variant, interleaved, each run checked and written down.
#![forbid(unsafe_code)]

mod build;
mod changes;
mod drivers;
mod dropbear;
mod ends;
mod fill;
mod groups;
mod host;
pub mod matrix;
mod plan;
pub mod record;
mod setup;
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
use matrix::{Matrix, Point, Variant};
use plan::{Block, Done};
use rand::seq::SliceRandom;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use record::{Host, Line, Outcome, Record, Task};
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Instant, SystemTime};
use world::World;

/// What a matrix may be restricted to.
#[derive(Default)]
pub struct Restriction {
    /// Only groups whose name contains one of these.
    pub groups: Vec<String>,
    pub repeats: Option<usize>,
    /// More variants, which join every group.
    pub also: Vec<Variant>,
    /// Runs that the results already hold are run again.
    pub again: bool,
}

/// Prints the groups that would run, and how long they take.
pub fn print_plan(matrix: &Matrix, only: &Restriction) -> Result<()> {
    // Removes the control groups, which are made to see whether that is possible.
    janitor::start()?;
    let missing = setup::missing(matrix, only);
    let groups = Groups::new();
    let blocks = plan::blocks(matrix, only, &World::new(), &groups, &missing)?;
    let list = plan::by_group(&blocks);
    for (name, runs, seconds) in &list {
        println!(
            "{:>5} runs  {:>10}  {name}",
            runs,
            plan::show_time(*seconds)
        );
    }
    let runs: usize = list.iter().map(|l| l.1).sum();
    let all = plan::show_time(list.iter().map(|l| l.2).sum());
    println!("{runs:>5} runs  {all:>10}  in all");
    Ok(())
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
    builds: HashMap<String, String>,
    out: File,
    /// Variants whose programs are not there.
    missing: Vec<String>,
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
    let scratch = setup::scratch(contained)?;
    if contained {
        setup::plain_shell(&scratch)?;
    }
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
    let ours = |v: &Variant| ends::program(&v.client, "bin/ssh-keygen").ok();
    let keygen = matrix.variants.iter().find_map(ours);
    let keygen = keygen.unwrap_or_else(|| PathBuf::from("ssh-keygen"));
    let needs_keys = matrix.variants.iter().any(|v| v.kind != "tcp");
    let keys = Keys::make(&work.dir("keys")?, needs_keys.then_some(&*keygen))?;
    let world = World::new();
    if let Some(why) = &world.no_link {
        eprintln!("no delay link here ({why}): its points are left out");
    }
    let host = host::about(&groups);
    let done = match only.again {
        true => Done::default(),
        false => Done::load(out)?,
    };
    let file = File::options().create(true).append(true).open(out);
    let out = file.context(|| format!("opening {}", out.display()))?;
    let mut bench = Bench {
        work,
        matrix,
        scratch,
        keys,
        groups,
        world,
        host,
        data,
        versions: HashMap::new(),
        builds: HashMap::new(),
        out,
        missing: setup::missing(matrix, only),
        order: 0,
        failed: 0,
    };
    bench.calibrate(only)?;
    bench.write(&Line::Host(bench.host.clone()))?;
    let list = plan::blocks(matrix, only, &bench.world, &bench.groups, &bench.missing)?;
    bench.blocks(&list, &done)?;
    // Again, with the ciphers that were met.
    bench.write(&Line::Host(bench.host.clone()))?;
    Ok(bench.failed)
}

fn selected<'a>(matrix: &'a Matrix, only: &Restriction) -> Result<Vec<Point<'a>>> {
    let wanted = |p: &Point<'_>| {
        only.groups.is_empty()
            || only
                .groups
                .iter()
                .any(|g| p.group.name.contains(g.as_str()))
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

    /// Runs the blocks that are not done yet, and says how long it will take.
    fn blocks(&mut self, blocks: &[Block<'_>], done: &Done) -> Result<()> {
        let mut left = Vec::new();
        for b in blocks {
            if !self.is_done(b, done)? {
                left.push(b);
            }
        }
        let runs: usize = left.iter().map(|b| b.variants.len()).sum();
        if left.len() < blocks.len() {
            let there = blocks.len() - left.len();
            eprintln!("{there} of {} comparisons are there already", blocks.len());
        }
        let expected: f64 = left.iter().map(|b| b.seconds()).sum();
        eprintln!("{runs} runs, about {}", plan::show_time(expected));
        let (start, mut over, mut group) = (Instant::now(), 0.0, "");
        for b in left {
            if b.point.group.name != group {
                group = &b.point.group.name;
                let to_go = plan::show_time(expected - over);
                let spent = plan::show_time(start.elapsed().as_secs_f64());
                eprintln!("{group} (after {spent}, about {to_go} to go)");
            }
            self.block(b)?;
            over += b.seconds();
        }
        let spent = plan::show_time(start.elapsed().as_secs_f64());
        eprintln!("{runs} runs took {spent}");
        Ok(())
    }

    fn is_done(&mut self, block: &Block<'_>, done: &Done) -> Result<bool> {
        for v in &block.variants {
            let build = self.build(v);
            if !done.holds(&self.task(block, v), &build)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// All variants of a block, in an order by chance.
    fn block(&mut self, block: &Block<'_>) -> Result<()> {
        let mut order: Vec<&Variant> = block.variants.iter().collect();
        let seed = self.matrix.seed.wrapping_add(self.order as u64);
        order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        for variant in order {
            self.one(block, variant)?;
        }
        Ok(())
    }

    fn task(&self, block: &Block<'_>, variant: &Variant) -> Task {
        let point = &block.point;
        Task {
            matrix: self.matrix.name.clone(),
            group: point.group.clone(),
            link: point.link.clone(),
            cpu: point.cpu.clone(),
            data: point.data.and_then(|d| self.data.get(d)).cloned(),
            variant: variant.clone(),
            repeat: block.repeat,
            order: self.order,
            seed: self.matrix.seed.wrapping_add(self.order as u64),
        }
    }

    fn one(&mut self, block: &Block<'_>, variant: &Variant) -> Result<()> {
        self.order += 1;
        let task = self.task(block, variant);
        let client_version = self.version(variant, true);
        let server_version = self.version(variant, false);
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let (outcome, tcp) = self.attempt(&task, &block.point);
        self.note_cipher(&outcome.cipher);
        print_line(&task, &outcome);
        self.failed += usize::from(outcome.error.is_some() != task.group.fault.is_some());
        let record = Record {
            time: SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .map_or(0, |d| d.as_secs()),
            client_version,
            server_version,
            build: self.build(variant),
            congestion: tcp.congestion,
            tcp_rmem: tcp.rmem,
            tcp_wmem: tcp.wmem,
            load_before: load.trim().into(),
            task,
            outcome,
        };
        self.write(&Line::Run(Box::new(record)))
    }

    /// The fingerprint of a variant's programs.
    fn build(&mut self, variant: &Variant) -> String {
        let builds = &mut self.builds;
        let known = builds.entry(variant.name.clone());
        known.or_insert_with(|| build::fingerprint(variant)).clone()
    }

    /// One run with all that surrounds it; whatever fails becomes a failed outcome.
    fn attempt(&mut self, task: &Task, point: &Point<'_>) -> (Outcome, world::TcpSettings) {
        let dir = self.scratch.join(format!("run-{}", self.order));
        let failed = |e: Error| Outcome {
            error: Some(e.to_string()),
            ..Outcome::default()
        };
        let factor = task.variant.rate_factor;
        let place = match self.world.prepare(point.link, factor, task.seed) {
            Ok(p) => p,
            Err(e) => return (failed(e), world::TcpSettings::default()),
        };
        let tcp = place.tcp.clone();
        let around = Around {
            groups: &self.groups,
            keys: &self.keys,
            place: &place,
            dir: &dir,
        };
        let outcome = around.run(task, point).unwrap_or_else(failed);
        self.groups.kill_all();
        if std::env::var_os("SSHFLOW_LAB_KEEP").is_some() {
            let kept = self
                .work
                .dir("kept")
                .map(|k| k.join(format!("run-{}", self.order)));
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
            let text = output
                .map(|o| [o.stderr, o.stdout].concat())
                .unwrap_or_default();
            String::from_utf8_lossy(&text)
                .lines()
                .next()
                .unwrap_or("")
                .to_string()
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

/// What surrounds one run: files, CPU speed, counters, watcher.
struct Around<'a> {
    groups: &'a Groups,
    keys: &'a Keys,
    place: &'a world::Place,
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
        let limit = setup::time_limit(point, &task.variant)?;
        let sender = run.sender();
        let (result, seen) = watch::watched(self.groups, self.place, &roots, sender, limit, || {
            changes::during(&run, || drivers::run(&run))
        });
        for end in End::BOTH {
            self.groups.slow(end, 1.0)?;
        }
        let mut outcome = match result {
            _ if seen.timed_out => Err(Error::new(format!("not done after {} s", limit.as_secs()))),
            other => other,
        }?;
        let cpu = |i: usize, end| Some(self.groups.cpu_seconds(end)? - cpu_before[i]?);
        outcome.client_cpu_s = cpu(0, End::Client);
        outcome.server_cpu_s = cpu(1, End::Server);
        outcome.peak_rss_kb = seen.peak_rss_kb;
        outcome.tcp = seen.tcp;
        if let (Some(before), Some(after)) = (wire_before, self.place.wire()) {
            let (up, down) = (after.0 - before.0, after.1 - before.1);
            let (there, back) = if run.sender() == End::Client {
                (up, down)
            } else {
                (down, up)
            };
            outcome.wire_bytes = Some(there);
            outcome.wire_bytes_back = Some(back);
            setup::fill_in_wire(
                &mut outcome,
                &seen.wire,
                begin,
                run.sender() == End::Client,
                before,
            );
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
