//! Looks at the processes and the wire while a run lasts, and ends it when it takes too long.
#![forbid(unsafe_code)]

use super::groups::{End, Groups, Role};
use super::world::Place;
use crate::payload::now_ns;
use crate::sys::tcp::{self, TcpState};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_millis(50);
/// The connection is looked at once in so many rounds.
const TCP_ROUNDS: u32 = 8;

/// What was seen.
#[derive(Default)]
pub struct Seen {
    /// Peak resident memory by end and process, kB.
    pub peak_rss_kb: BTreeMap<String, u64>,
    /// Clock and IP bytes carried up and down.
    pub wire: Vec<(u64, u64, u64)>,
    pub timed_out: bool,
    /// The sender's connection, as it was last seen.
    pub tcp: Option<TcpState>,
}

/// Runs `work` while a second thread watches. `roots` are the processes to follow where there are
/// no control groups.
pub fn watched<T: Send>(
    groups: &Groups,
    place: &Place,
    roots: &Mutex<Vec<(i32, End)>>,
    sender: End,
    limit: Duration,
    work: impl FnOnce() -> T + Send,
) -> (T, Seen) {
    let done = AtomicBool::new(false);
    std::thread::scope(|s| {
        let watcher = s.spawn(|| watch(groups, place, roots, sender, limit, &done));
        let result = work();
        done.store(true, Ordering::Relaxed);
        (result, watcher.join().unwrap_or_default())
    })
}

fn watch(
    groups: &Groups,
    place: &Place,
    roots: &Mutex<Vec<(i32, End)>>,
    sender: End,
    limit: Duration,
    done: &AtomicBool,
) -> Seen {
    let start = Instant::now();
    let mut peaks: HashMap<(i32, String), u64> = HashMap::new();
    let mut seen = Seen::default();
    let mut rounds = 0u32;
    loop {
        let last = done.load(Ordering::Relaxed);
        for (pid, end) in ssh_processes(groups, roots) {
            if let Some((name, kb)) = peak_of(pid) {
                let name = format!(
                    "{}/{name}",
                    if end == End::Client {
                        "client"
                    } else {
                        "server"
                    }
                );
                let peak = peaks.entry((pid, name)).or_default();
                *peak = kb.max(*peak);
            }
        }
        // A copy that is kept would keep the connection from being closed.
        if rounds % TCP_ROUNDS == 0 {
            let socket = processes_of(groups, roots, sender)
                .into_iter()
                .find_map(tcp::socket_of);
            seen.tcp = socket.as_ref().and_then(tcp::state).or(seen.tcp);
        }
        rounds += 1;
        if let Some((up, down)) = place.wire() {
            seen.wire.push((now_ns(), up, down));
        }
        if last {
            break;
        }
        if start.elapsed() > limit && !seen.timed_out {
            seen.timed_out = true;
            end_all(groups, roots);
        }
        std::thread::sleep(PERIOD);
    }
    for ((_, name), kb) in peaks {
        let peak = seen.peak_rss_kb.entry(name).or_default();
        *peak = kb.max(*peak);
    }
    seen
}

/// All SSH processes of a run.
pub fn ssh_processes(groups: &Groups, roots: &Mutex<Vec<(i32, End)>>) -> Vec<(i32, End)> {
    if groups.present() {
        let of = |end| {
            groups
                .pids(end, Role::Ssh)
                .into_iter()
                .map(move |p| (p, end))
        };
        return End::BOTH.into_iter().flat_map(of).collect();
    }
    let roots = roots.lock().map(|r| r.clone()).unwrap_or_default();
    let parents = parents();
    let mut found = Vec::new();
    for (root, end) in roots {
        let mut family = HashSet::from([root]);
        // Children come after their parents in a few rounds at most.
        for _ in 0..6 {
            family.extend(
                parents
                    .iter()
                    .filter(|(_, pp)| family.contains(pp))
                    .map(|(p, _)| *p)
                    .collect::<Vec<_>>(),
            );
        }
        found.extend(family.into_iter().map(|p| (p, end)));
    }
    found
}

/// The SSH processes of one end.
pub fn processes_of(groups: &Groups, roots: &Mutex<Vec<(i32, End)>>, end: End) -> Vec<i32> {
    let all = ssh_processes(groups, roots).into_iter();
    all.filter(|(_, e)| *e == end).map(|(pid, _)| pid).collect()
}

/// Ends all that belongs to a run.
pub fn end_all(groups: &Groups, roots: &Mutex<Vec<(i32, End)>>) {
    groups.kill_all();
    if !groups.present() {
        for (pid, _) in ssh_processes(groups, roots) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

/// Process and parent of everything that runs.
fn parents() -> Vec<(i32, i32)> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return vec![];
    };
    let pids = entries
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // After the name, which may hold anything: state and parent.
        let parent = stat
            .rsplit_once(')')?
            .1
            .split_whitespace()
            .nth(1)?
            .parse()
            .ok()?;
        Some((pid, parent))
    })
    .collect()
}

fn peak_of(pid: i32) -> Option<(String, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |key: &str| {
        text.lines()
            .find_map(|l| l.strip_prefix(key))
            .map(str::trim)
    };
    let kb = field("VmHWM:")?.split_whitespace().next()?.parse().ok()?;
    Some((field("Name:")?.to_string(), kb))
}
