//! The source of a transfer.
#![forbid(unsafe_code)]

use super::Place;
use crate::error::{Context, Error, Result};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
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
    /// Send the file's pieces in an order by chance, the same for the same seed
    #[arg(long)]
    seed: Option<u64>,
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
                write_all(listener.accept()?.0, &data, left, self.seed)
            }
            (_, Some(address)) => write_all(TcpStream::connect(address)?, &data, left, self.seed),
            _ => {
                let out = std::os::fd::AsFd::as_fd(&std::io::stdout()).try_clone_to_owned()?;
                write_all(File::from(out), &data, left, self.seed)
            }
        }
    }
}

fn write_all(mut out: impl Write, data: &File, mut left: u64, seed: Option<u64>) -> Result<()> {
    let chunks = super::chunks(data.metadata()?.len(), seed);
    if chunks.is_empty() {
        return Err(Error::new("there is nothing to send: the file is empty"));
    }
    let mut block = vec![0; BLOCK];
    for chunk in chunks.iter().cycle() {
        let mut at = chunk.start;
        while at < chunk.end && left > 0 {
            let n = (BLOCK as u64).min(chunk.end - at).min(left) as usize;
            data.read_exact_at(&mut block[..n], at)?;
            match out.write_all(&block[..n]) {
                Ok(()) => {}
                // The reader has seen enough.
                Err(e)
                    if matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) =>
                {
                    return Ok(())
                }
                Err(e) => return Err(e.into()),
            }
            at += n as u64;
            left -= n as u64;
        }
        if left == 0 {
            break;
        }
    }
    Ok(())
}
