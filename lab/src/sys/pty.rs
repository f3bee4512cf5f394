//! Pseudo terminals.
#![forbid(unsafe_code)]

use crate::error::Result;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::pty::{openpty, Winsize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// Both sides of a pseudo terminal.
pub struct Pty {
    master: File,
    slave: OwnedFd,
}

/// The side of the person at the keyboard.
pub struct Master(File);

impl Pty {
    pub fn open(rows: u16, columns: u16) -> Result<Self> {
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pair = openpty(Some(&size), None)?;
        use nix::fcntl::{fcntl, FcntlArg, FdFlag};
        for fd in [&pair.master, &pair.slave] {
            fcntl(fd, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
        }
        Ok(Self {
            master: File::from(pair.master),
            slave: pair.slave,
        })
    }

    /// A descriptor of the program's side.
    pub fn slave(&self) -> Result<OwnedFd> {
        Ok(self.slave.try_clone()?)
    }

    /// Gives the program's side up, so that its end can be seen.
    pub fn master_only(self) -> Master {
        Master(self.master)
    }
}

impl Master {
    pub fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.0.write_all(bytes)?)
    }

    /// What has come within `timeout`; empty when nothing has, `None` at the end.
    pub fn read(&mut self, buffer: &mut [u8], timeout: Duration) -> Result<Option<usize>> {
        let mut fds = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
        if poll(&mut fds, timeout)? == 0 {
            return Ok(Some(0));
        }
        // The kernel reports the other side's end as an error.
        Ok(self.0.read(buffer).ok().filter(|n| *n > 0))
    }

    /// Copies until nothing came for `quiet`, or to the end.
    pub fn read_until_quiet(&mut self, quiet: Duration, out: &mut dyn Write) -> Result<()> {
        let mut buffer = [0; 4096];
        while let Some(n) = self.read(&mut buffer, quiet)? {
            if n == 0 {
                break;
            }
            out.write_all(&buffer[..n])?;
        }
        Ok(())
    }
}
