//! What is to be run, how long that will take, and what an earlier file of results already holds.
#![forbid(unsafe_code)]

use super::groups::Groups;
use super::matrix::{Driver, Group, Matrix, Point, Variant, PLAIN_TCP};
use super::record::{Line, Task};
use super::world::World;
use super::{dropbear, Restriction};
use crate::error::{Context, Result};
use crate::units;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

/// Runs that stand next to each other: one repetition of a point, with every variant.
pub struct Block<'a> {
    pub point: Point<'a>,
    pub repeat: usize,
    pub variants: Vec<Variant>,
}

/// What a variant needs besides its bytes: namespaces, server, the client's start.
const START_S: f64 = 0.9;
/// Round trips until an SSH session carries data.
const HANDSHAKES: f64 = 9.0;
/// A window of stock OpenSSH.
const WINDOW: f64 = 2.0 * 1024.0 * 1024.0;
/// What these machines carry without a limit, bytes/s.
const LOCAL: f64 = 150e6;
/// The largest send buffer by default; it has to fill before a run that is cut by time counts.
const SEND_BUFFER: f64 = 4.0 * 1024.0 * 1024.0;

/// All blocks that can run here; says aloud what cannot.
pub fn blocks<'a>(
    matrix: &'a Matrix,
    only: &Restriction,
    world: &World,
    groups: &Groups,
    missing: &[String],
) -> Result<Vec<Block<'a>>> {
    let (mut blocks, mut left_out) = (Vec::new(), LeftOut::default());
    for point in super::selected(matrix, only)? {
        let name = &point.group.name;
        if let Some(why) = world.obstacle(point.link) {
            left_out.note(format!("link {}", point.link.name), why, name);
            continue;
        }
        if (point.cpu.sender > 1.0 || point.cpu.receiver > 1.0) && !groups.present() {
            left_out.note(format!("CPU {}", point.cpu.name), &groups.about(), name);
            continue;
        }
        let terminal = matches!(point.group.driver, Driver::Echo | Driver::Session);
        if let Some(why) = world.no_terminal.as_ref().filter(|_| terminal) {
            left_out.note("terminals".into(), why, name);
            continue;
        }
        let variants = variants(matrix, only, &point, missing, &mut left_out)?;
        for repeat in 0..only.repeats.unwrap_or(point.group.repeats) {
            blocks.push(Block {
                point: point.clone(),
                repeat,
                variants: variants.clone(),
            });
        }
    }
    left_out.say();
    Ok(blocks)
}

/// What cannot be run, and why; the groups that go without it.
#[derive(Default)]
struct LeftOut(BTreeMap<(String, String), BTreeSet<String>>);

impl LeftOut {
    fn note(&mut self, what: String, why: &str, group: &str) {
        let groups = self.0.entry((what, why.to_string())).or_default();
        groups.insert(group.to_string());
    }

    fn say(&self) {
        for ((what, why), groups) in &self.0 {
            let groups = groups.iter().cloned().collect::<Vec<_>>().join(", ");
            eprintln!("{what} LEFT OUT of {groups}: {why}");
        }
    }
}

fn variants(
    matrix: &Matrix,
    only: &Restriction,
    point: &Point<'_>,
    missing: &[String],
    left_out: &mut LeftOut,
) -> Result<Vec<Variant>> {
    let mut variants = Vec::new();
    for name in &point.group.variants {
        variants.push(matrix.variant(name)?.clone());
    }
    if point.group.fault.is_none() {
        variants.extend(only.also.iter().cloned());
    }
    variants.retain(|v| !missing.contains(&v.name));
    variants.retain(|v| {
        let why = dropbear::cannot(v, point.group);
        if let Some(why) = why {
            left_out.note(format!("variant {}", v.name), why, &point.group.name);
        }
        why.is_none()
    });
    if point.group.limit && !variants.is_empty() {
        variants.push(plain_tcp());
    }
    Ok(variants)
}

fn plain_tcp() -> Variant {
    Variant {
        name: PLAIN_TCP.into(),
        kind: "tcp".into(),
        client: PathBuf::new(),
        server: PathBuf::new(),
        options: vec![],
        server_options: vec![],
        rate_factor: 1.0,
    }
}

impl Block<'_> {
    /// Roughly how long it takes.
    pub fn seconds(&self) -> f64 {
        let each = self.variants.iter().map(|v| seconds(&self.point, v));
        each.sum()
    }
}

fn seconds(point: &Point<'_>, variant: &Variant) -> f64 {
    let (g, l) = (point.group, point.link);
    let rtt = units::duration_ns(&l.rtt).unwrap_or(0) as f64 / 1e9;
    let rate = match units::rate(&l.rate).unwrap_or(0) {
        0 => LOCAL,
        bits => bits as f64 / 8.0,
    };
    let size = |text: &Option<String>| {
        let bytes = text.as_deref().and_then(|t| units::bytes(t).ok());
        bytes.map(|b| b as f64)
    };
    let slow = point.cpu.sender.max(point.cpu.receiver);
    let mut speed = rate.min(LOCAL / slow);
    let window = match variant.kind.as_str() {
        "tcp" => f64::INFINITY,
        "dropbear" => dropbear::WINDOW,
        _ => WINDOW,
    };
    if rtt > 0.0 {
        speed = speed.min(window / rtt);
    }
    if let Some(consume) = size(&g.consume) {
        speed = speed.min(consume);
    }
    let start = START_S + HANDSHAKES * rtt + 0.2 * (slow - 1.0);
    start
        + match g.driver {
            Driver::Connect => 0.0,
            Driver::Session => 12.0 + 40.0 * rtt,
            Driver::Echo => {
                let queued = g.beside.as_ref().map_or(0.0, |_| 0.2);
                let keys = if g.keys == 0 { 200 } else { g.keys };
                g.beside.as_ref().map_or(0.0, |_| 3.0) + keys as f64 * (0.025 + rtt + queued)
            }
            _ => match (size(&g.bytes), g.seconds) {
                (Some(bytes), _) => bytes * g.channels.max(1) as f64 / speed,
                (_, Some(seconds)) => seconds + 1.0 + (SEND_BUFFER / speed).min(11.0),
                _ => 0.0,
            },
        }
}

/// Which runs a file of results already holds.
#[derive(Default)]
pub struct Done(HashSet<String>);

impl Done {
    pub fn load(out: &Path) -> Result<Self> {
        if !out.exists() {
            return Ok(Self::default());
        }
        let text = std::fs::read_to_string(out).context(|| format!("reading {}", out.display()))?;
        let mut done = HashSet::new();
        // The last line of a run that was broken off may be half a line.
        for line in text.lines().filter_map(|l| serde_json::from_str(l).ok()) {
            if let Line::Run(r) = line {
                if r.outcome.error.is_some() == r.task.group.fault.is_some() {
                    done.insert(key(&r.task, &r.build)?);
                }
            }
        }
        Ok(Self(done))
    }

    pub fn holds(&self, task: &Task, build: &str) -> Result<bool> {
        Ok(self.0.contains(&key(task, build)?))
    }
}

/// What makes two runs the same run, programs included.
fn key(task: &Task, build: &str) -> Result<String> {
    let group = Group {
        variants: vec![],
        links: vec![],
        data: vec![],
        cpus: vec![],
        repeats: 0,
        ..task.group.clone()
    };
    let data = task.data.as_ref().map(|d| &d.sha256);
    let all = (&group, &task.link, &task.cpu, data, &task.variant);
    let all = serde_json::to_string(&all)?;
    Ok(format!("{all} {} {build}", task.repeat))
}

/// `2 h 5 min`, `3 min`, `40 s`.
pub fn show_time(seconds: f64) -> String {
    let s = seconds.round() as u64;
    match s {
        0..=89 => format!("{s} s"),
        90..=5399 => format!("{} min", (s + 30) / 60),
        _ => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

/// Groups with the number of their runs and the time that they take, for a list.
pub fn by_group(blocks: &[Block<'_>]) -> Vec<(String, usize, f64)> {
    let mut list: Vec<(String, usize, f64)> = Vec::new();
    for b in blocks {
        let name = &b.point.group.name;
        if list.last().is_none_or(|l| l.0 != *name) {
            list.push((name.clone(), 0, 0.0));
        }
        if let Some(last) = list.last_mut() {
            last.1 += b.variants.len();
            last.2 += b.seconds();
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        assert_eq!(show_time(12.4), "12 s");
        assert_eq!(show_time(200.0), "3 min");
        assert_eq!(show_time(7500.0), "2 h 5 min");
    }

    #[test]
    fn a_long_path_takes_as_long_as_its_window_allows() {
        let matrix = Matrix::parse(
            r#"
            name = "m"
            [[variant]]
            name = "a"
            [[link]]
            name = "l"
            rate = "400M"
            rtt = "200ms"
            [[group]]
            name = "g"
            driver = "download"
            variants = ["a"]
            links = ["l"]
            data = ["random"]
            bytes = "200MB"
        "#,
        )
        .unwrap();
        let points = matrix.points().unwrap();
        let ssh = seconds(&points[0], &matrix.variants[0]);
        let tcp = seconds(&points[0], &plain_tcp());
        // 200 MB at 2 MiB for each 200 ms, and at 50 MB/s.
        assert!((19.0..24.0).contains(&ssh), "{ssh}");
        assert!((4.0..8.0).contains(&tcp), "{tcp}");
    }
}
