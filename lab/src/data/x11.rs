//! What an X server shows: screens of real clients, as the framebuffer holds them.
#![forbid(unsafe_code)]

use crate::error::{Error, Result};
use crate::sys::spawn::Spawn;
use crate::work::Work;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const SCREENS: usize = 10;
const WIDTH: u32 = 1280;
const HEIGHT: u32 = 1024;
/// The picture counts as finished when it has not changed for this long.
const STILL: Duration = Duration::from_millis(600);
const TIMEOUT: Duration = Duration::from_secs(20);

/// Ends a process that was started here.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn make(work: &Work, out: &mut dyn Write) -> Result<()> {
    let dir = work.dir("tmp/x11")?;
    let log = super::get(work, "log")?;
    let text = dir.join("text");
    let lines = std::fs::read(log.path)?;
    std::fs::write(&text, &lines[..200_000])?;
    let mut rng = ChaCha20Rng::seed_from_u64(8);
    for _ in 0..SCREENS {
        let (_server, display) = start_server(&dir)?;
        let _clients = start_clients(&display, &text, &mut rng)?;
        out.write_all(&finished_screen(&dir.join("Xvfb_screen0"))?)?;
    }
    Ok(())
}

fn start_server(dir: &Path) -> Result<(Running, String)> {
    let geometry = format!("{WIDTH}x{HEIGHT}x24");
    let mut server = Spawn::new(&["Xvfb", "-displayfd", "1", "-nolisten", "tcp", "-nocursor"])
        .args(&["-screen", "0", &geometry, "-fbdir"])
        .arg(dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .start()?;
    let stdout = server.stdout.take();
    let server = Running(server);
    let mut number = String::new();
    if let Some(stdout) = stdout {
        BufReader::new(stdout).read_line(&mut number)?;
    }
    if number.trim().is_empty() {
        return Err(Error::new("Xvfb did not start"));
    }
    Ok((server, format!(":{}", number.trim())))
}

fn start_clients(display: &str, text: &Path, rng: &mut ChaCha20Rng) -> Result<Vec<Running>> {
    let text = text.to_string_lossy();
    let mut place = |w: u32, h: u32| {
        let x = rng.gen_range(0..WIDTH - w.min(WIDTH - 1));
        let y = rng.gen_range(0..HEIGHT - h.min(HEIGHT - 1));
        format!("+{x}+{y}")
    };
    let tail = format!("tail -n {} {text}; sleep 1000", 20 + place(1, 1).len() * 3);
    let colours = "for i in $(seq 0 255); do printf '\\033[48;5;%dm %3d ' $i $i; done; sleep 1000";
    let plain = format!("96x30{}", place(600, 400));
    let bright = format!("80x24{}", place(500, 330));
    let (calc, logo, eyes) = (place(230, 310), place(300, 300), place(150, 100));
    let (logo, eyes) = (format!("300x300{logo}"), format!("150x100{eyes}"));
    let edit = format!("560x420{}", place(560, 420));
    let pattern = format!("400x400{}", place(400, 400));
    let commands: [&[&str]; 7] = [
        &["xlogo", "-geometry", &logo],
        &["bitmap", "-geometry", &pattern],
        &["xterm", "-geometry", &plain, "-e", "sh", "-c", &tail],
        &[
            "xterm",
            "-geometry",
            &bright,
            "-bg",
            "black",
            "-fg",
            "grey",
            "-e",
            "sh",
            "-c",
            colours,
        ],
        &["xedit", "-geometry", &edit, &text],
        &["xcalc", "-geometry", &calc],
        &["xeyes", "-geometry", &eyes],
    ];
    let mut running = Vec::new();
    for words in commands {
        let client = Spawn::new(words)
            .env("DISPLAY", display)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .start()?;
        running.push(Running(client));
        // One above the other, always in the same order.
        std::thread::sleep(Duration::from_millis(400));
    }
    Ok(running)
}

/// The framebuffer, once it is still.
fn finished_screen(path: &Path) -> Result<Vec<u8>> {
    let start = Instant::now();
    let mut last = std::fs::read(path)?;
    let mut since = Instant::now();
    while since.elapsed() < STILL {
        if start.elapsed() > TIMEOUT {
            return Err(Error::new("the X clients never stop drawing"));
        }
        std::thread::sleep(Duration::from_millis(100));
        let now = std::fs::read(path)?;
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
    Ok(last)
}
