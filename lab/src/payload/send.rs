//! The source of a transfer.
#![forbid(unsafe_code)]

use super::Place;
use crate::error::{Context, Error, Result};
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;

/// One write: what `cat` uses.
const BLOCK: usize = 128 * 1024;

#[derive(clap::Args)]
pub struct Send {
    #[command(flatten)]
    place: Place,
    file: PathBuf,
    /// Stop after so many bytes (default: when nobody reads any more)
    #[arg(long)]
    bytes: Option<u64>,
    /// Wait for one TCP connection on this address and send there
    #[arg(long)]
    listen: Option<String>,
    /// Send to this TCP address
    #[arg(long)]
    connect: Option<String>,
}

impl Send {
    pub fn run(self) -> Result<()> {
        self.place.join()?;
        // Block by block, as `cat` does it: nothing waits until all is read.
        let data = File::open(&self.file);
        let data = data.context(|| format!("reading {}", self.file.display()))?;
        let left = self.bytes.unwrap_or(u64::MAX);
        match (&self.listen, &self.connect) {
            (Some(address), _) => {
                let listener = TcpListener::bind(address)?;
                // The driver waits for this line.
                eprintln!("listening");
                write_all(listener.accept()?.0, &data, left)
            }
            (_, Some(address)) => write_all(TcpStream::connect(address)?, &data, left),
            _ => {
                let out = std::os::fd::AsFd::as_fd(&std::io::stdout()).try_clone_to_owned()?;
                write_all(File::from(out), &data, left)
            }
        }
    }
}

fn write_all(mut out: impl Write, mut data: &File, mut left: u64) -> Result<()> {
    let mut block = vec![0; BLOCK];
    let mut at_start = true;
    while left > 0 {
        let n = data.read(&mut block[..left.min(BLOCK as u64) as usize])?;
        if n == 0 {
            if at_start {
                return Err(Error::new("there is nothing to send: the file is empty"));
            }
            data.rewind()?;
            at_start = true;
            continue;
        }
        at_start = false;
        match out.write_all(&block[..n]) {
            Ok(()) => {}
            // The reader has seen enough.
            Err(e) if matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                return Ok(())
            }
            Err(e) => return Err(e.into()),
        }
        left -= n as u64;
    }
    Ok(())
}
