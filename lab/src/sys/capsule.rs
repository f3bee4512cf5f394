//! A process tree that cannot outlive this program: a PID namespace of its own, whose first
//! process dies with us and takes every process inside along, even on SIGKILL.
// unsafe: fork and prctl.

use crate::error::{Context, Result};
use nix::mount::{mount, MsFlags};
use nix::sched::{unshare, CloneFlags};
use nix::sys::signal::Signal;
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::{fork, ForkResult, Pid};
use std::process::exit;

/// Moves the rest of this program into a new PID and mount namespace. Returns there; the calling
/// process waits for it and exits as it does. To be called before any thread exists.
pub fn enter() -> Result<()> {
    unshare(CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS)
        .context(|| "making a process namespace (this needs root)".into())?;
    // SAFETY: no other thread exists.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => {
            let code = wait_for(child);
            super::janitor::finish();
            exit(code)
        }
        ForkResult::Child => init(),
    }
}

/// Process 1: reaps orphans, and ends with the worker. Returns in the worker.
fn init() -> Result<()> {
    // Process 1 sees its parent, outside of the namespace, as 0; so a parent that died in between
    // cannot be told by number. The flag is set before anything else is done.
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    private_mounts()?;
    // SAFETY: no other thread exists.
    let worker = match unsafe { fork() }? {
        ForkResult::Child => return Ok(()),
        ForkResult::Parent { child } => child,
    };
    loop {
        match nix::sys::wait::wait() {
            Ok(status) if status.pid() == Some(worker) => exit(code(status)),
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(_) => exit(1),
        }
    }
}

fn private_mounts() -> Result<()> {
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
        .context(|| "making mounts private".into())?;
    mount(Some("proc"), "/proc", Some("proc"), MsFlags::empty(), none)
        .context(|| "mounting /proc".into())
}

/// Mounts an empty memory file system for this process tree only.
pub fn private_tmpfs(path: &str, options: &str) -> Result<()> {
    mount(
        Some("tmpfs"),
        path,
        Some("tmpfs"),
        MsFlags::empty(),
        Some(options),
    )
    .context(|| format!("mounting a tmpfs on {path}"))
}

/// Shows `file` in place of `path` for this process tree only.
pub fn private_bind(file: &str, path: &str) -> Result<()> {
    let none: Option<&str> = None;
    mount(Some(file), path, none, MsFlags::MS_BIND, none)
        .context(|| format!("showing {file} as {path}"))
}

fn wait_for(child: Pid) -> i32 {
    loop {
        match waitpid(child, Some(WaitPidFlag::empty())) {
            Err(nix::Error::EINTR) => {}
            Err(_) => return 1,
            Ok(status) => return code(status),
        }
    }
}

fn code(status: WaitStatus) -> i32 {
    match status {
        WaitStatus::Exited(_, code) => code,
        WaitStatus::Signaled(_, signal, _) => 128 + signal as i32,
        _ => 1,
    }
}
