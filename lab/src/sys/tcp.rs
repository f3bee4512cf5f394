//! The state of another process's TCP connection.
// unsafe: pidfd_getfd, getsockopt(TCP_INFO) and SIOCOUTQ.

use serde::{Deserialize, Serialize};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// What the kernel knows about a connection.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct TcpState {
    /// Bytes in the send queue, sent or not, that the peer has not acknowledged.
    pub queued_bytes: u64,
    pub cwnd: u32,
    pub rtt_us: u32,
    pub min_rtt_us: u32,
    pub retransmits: u32,
}

/// A copy of a descriptor of process `pid`.
fn copy_fd(pid: i32, fd: RawFd) -> Option<OwnedFd> {
    // SAFETY: both calls take plain integers; what they return is checked and owned at once.
    unsafe {
        let pidfd = libc::syscall(libc::SYS_pidfd_open, pid, 0) as RawFd;
        if pidfd < 0 {
            return None;
        }
        let pidfd = OwnedFd::from_raw_fd(pidfd);
        let copy = libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), fd, 0) as RawFd;
        (copy >= 0).then(|| OwnedFd::from_raw_fd(copy))
    }
}

/// The connected TCP socket of a process, if it has one and we may look.
pub fn socket_of(pid: i32) -> Option<OwnedFd> {
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten() {
        let target = std::fs::read_link(entry.path()).unwrap_or_default();
        if !target.to_string_lossy().starts_with("socket:") {
            continue;
        }
        let Some(fd) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        if let Some(socket) = copy_fd(pid, fd).filter(is_connected) {
            return Some(socket);
        }
    }
    None
}

fn info(socket: &OwnedFd) -> Option<libc::tcp_info> {
    let mut info = std::mem::MaybeUninit::<libc::tcp_info>::zeroed();
    let mut len = std::mem::size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the buffer is as long as `len` says; all-zero bytes are a valid `tcp_info`, so it is
    // initialised however much the kernel wrote.
    unsafe {
        let got = libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &mut len,
        );
        (got == 0).then(|| info.assume_init())
    }
}

fn is_connected(socket: &OwnedFd) -> bool {
    const TCP_ESTABLISHED: u8 = 1;
    info(socket).is_some_and(|i| i.tcpi_state == TCP_ESTABLISHED)
}

pub fn state(socket: &OwnedFd) -> Option<TcpState> {
    let i = info(socket)?;
    let mut queued: libc::c_int = 0;
    // SAFETY: SIOCOUTQ (which is TIOCOUTQ) writes one int.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &mut queued) } != 0 {
        return None;
    }
    Some(TcpState {
        queued_bytes: queued.max(0) as u64,
        cwnd: i.tcpi_snd_cwnd,
        rtt_us: i.tcpi_rtt,
        min_rtt_us: i.tcpi_min_rtt,
        retransmits: i.tcpi_total_retrans,
    })
}
