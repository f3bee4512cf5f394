//! A program in a terminal that answers each key at once, as an editor does.
#![forbid(unsafe_code)]

use crate::error::Result;
use nix::sys::termios::{cfmakeraw, tcgetattr, tcsetattr, SetArg};
use std::io::{Read, Write};

pub fn run() -> Result<()> {
    let mut stdin = std::io::stdin().lock();
    let mut stdout = std::io::stdout().lock();
    let mut settings = tcgetattr(&stdin)?;
    cfmakeraw(&mut settings);
    tcsetattr(&stdin, SetArg::TCSANOW, &settings)?;
    // Says that the terminal is raw: what is typed from here on comes back once.
    stdout.write_all(b"!")?;
    stdout.flush()?;
    let mut key = [0; 64];
    loop {
        match stdin.read(&mut key)? {
            0 => return Ok(()),
            n => {
                stdout.write_all(&key[..n])?;
                stdout.flush()?;
            }
        }
    }
}
