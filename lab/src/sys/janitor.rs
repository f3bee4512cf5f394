//! A process that outlives this one, however it ends, to remove what the kernel would keep:
//! control groups, socket files, a kernel setting. It is told through a pipe and acts at its end.
// unsafe: fork and dup2.

use crate::error::Result;
use nix::sys::wait::waitpid;
use nix::unistd::{fork, ForkResult, Pid};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

static PIPE: Mutex<Option<(File, Pid)>> = Mutex::new(None);

/// Starts the janitor. To be called before any thread exists.
pub fn start() -> Result<()> {
    let (read, write) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    // SAFETY: no other thread exists yet, so the child may do anything.
    match unsafe { fork() }? {
        ForkResult::Child => {
            drop(write);
            // A session of its own: an interrupt from the terminal does not reach it.
            let _ = nix::unistd::setsid();
            release_standard_files();
            clean(File::from(read));
            std::process::exit(0);
        }
        ForkResult::Parent { child } => {
            *pipe() = Some((File::from(write), child));
            Ok(())
        }
    }
}

fn pipe() -> MutexGuard<'static, Option<(File, Pid)>> {
    PIPE.lock().unwrap_or_else(|e| e.into_inner())
}

/// In the process that started it, when all others that use it have ended: waits until all is
/// clean.
pub fn finish() {
    if let Some((file, child)) = pipe().take() {
        drop(file);
        let _ = waitpid(child, None);
    }
}

/// Whoever waits for the end of our output must not wait for the janitor.
fn release_standard_files() {
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        for target in 0..3 {
            // SAFETY: dup2 onto the three standard descriptors of this process, which has no
            // other use for them.
            let _ = unsafe { libc::dup2(null.as_raw_fd(), target) };
        }
    }
}

/// Asks for a file or an empty directory (a control group) to be removed at the end.
pub fn remove_later(path: &Path) {
    tell(&format!("remove\t{}", path.display()));
}

/// Asks for `value` to be written into a file of `/proc/sys` at the end.
pub fn write_later(path: &str, value: &str) {
    tell(&format!("write\t{path}\t{value}"));
}

fn tell(line: &str) {
    if let Some((pipe, _)) = pipe().as_mut() {
        // What cannot be told cannot be cleaned; the run itself does not suffer.
        let _ = writeln!(pipe, "{line}");
    }
}

fn clean(pipe: File) {
    let lines: Vec<String> = BufReader::new(pipe).lines().map_while(|l| l.ok()).collect();
    for _ in 0..100 {
        // Children were named after their parents.
        let left = lines.iter().rev().filter(|l| !undo(l)).count();
        if left == 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Carries one line out; true when it is done.
fn undo(line: &str) -> bool {
    let words: Vec<&str> = line.split('\t').collect();
    match words.as_slice() {
        ["write", path, value] => std::fs::write(path, value).is_ok(),
        ["remove", path] => match Path::new(path).symlink_metadata() {
            Err(_) => true,
            Ok(m) if m.is_dir() => std::fs::remove_dir(path).is_ok(),
            Ok(_) => std::fs::remove_file(path).is_ok(),
        },
        _ => true,
    }
}
