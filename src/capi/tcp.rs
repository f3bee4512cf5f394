//! What the kernel knows of a TCP connection. Unsafe because it is a system
//! call.

use libc::c_int;

use super::compressor::sshflow_compressor;
use super::guard::export;
use super::handle::{Exclusive, Out};
use super::version::SSHFLOW_OK;

/// Asks the kernel for the minimum round trip of the TCP connection behind the
/// descriptor `fd` and writes it to `*min_rtt_us`, in microseconds, on success
/// only. Linux since 4.6 knows the minimum; FreeBSD and OpenBSD tell the
/// smoothed round trip, macOS the latest in whole milliseconds, which do for
/// sshflow_link_rtt() as well. One system call; nothing is kept.
///
/// Returns SSHFLOW_OK; SSHFLOW_ERR_UNSUPPORTED if `fd` is no TCP connection (a
/// pipe, say) or the system does not tell; SSHFLOW_ERR_STATE if nothing has
/// been measured yet; SSHFLOW_ERR_INVALID_ARGUMENT for NULL or a descriptor
/// that is not open.
#[no_mangle]
pub unsafe extern "C" fn sshflow_tcp_min_rtt(fd: c_int, min_rtt_us: *mut u32) -> c_int {
    export!(min_rtt_us: Out<u32> = min_rtt_us; {
        min_rtt_us.set(system::round_trip_us(fd)?);
        Ok(SSHFLOW_OK)
    })
}

/// Lets the compressor ask the kernel how the TCP connection behind the
/// descriptor `fd` drains: then it knows the pace of the path, and whether the
/// peer's receive buffer holds it up, from the second round trip on, and not
/// only once the send buffer is full. Optional; call it where
/// sshflow_compressor_feedback() is called, with the same clock, in
/// microseconds. It makes one system call (getsockopt) or none: at most one in
/// a millisecond of that clock, and none where the level is fixed. `fd` is not
/// kept.
///
/// Returns SSHFLOW_OK; SSHFLOW_ERR_UNSUPPORTED if `fd` is no TCP connection (a
/// pipe, say) or the system does not tell (Linux since 4.10 does), after which
/// there is no use in calling it again; SSHFLOW_ERR_INVALID_ARGUMENT for NULL
/// or a descriptor that is not open. The compressor works on after any of them.
#[no_mangle]
pub unsafe extern "C" fn sshflow_compressor_tcp(
    compressor: *mut sshflow_compressor,
    now_us: u64,
    fd: c_int,
) -> c_int {
    export!(compressor: Exclusive<sshflow_compressor> = compressor; {
        if compressor.kernel_due(now_us) {
            compressor.kernel(system::kernel_state(fd, now_us)?);
        }
        Ok(SSHFLOW_OK)
    })
}

#[cfg(any(
    target_os = "linux",
    target_os = "freebsd",
    target_os = "openbsd",
    target_os = "macos"
))]
mod system {
    use std::io;
    use std::mem::{self, offset_of};

    use libc::{c_int, c_void, socklen_t};

    use crate::compression::effort::KernelState;
    use crate::{Error, Result};

    /// The start of Linux's `struct tcp_info` (include/uapi/linux/tcp.h), which
    /// only ever grows at its end: eight bytes, 24 numbers of 32 bits, four of
    /// 64, and some of each that have come since 4.0. The C library's own
    /// declaration is older and ends before.
    #[cfg(target_os = "linux")]
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Information {
        states: [u8; 8],
        timers_to_retransmissions: [u32; 24],
        rates_and_bytes: [u64; 4],
        segments: [u32; 2],
        not_sent: u32,
        min_rtt: u32,
        data_segments: [u32; 2],
        delivery_rate: u64,
        busy_time: u64,
        rwnd_limited: u64,
    }
    /// Where the smoothed round trip stands among the 24, and the bytes
    /// acknowledged among the four.
    #[cfg(target_os = "linux")]
    const RTT: usize = 15;
    #[cfg(target_os = "linux")]
    const ACKED: usize = 2;
    #[cfg(target_os = "macos")]
    use libc::tcp_connection_info as Information;
    #[cfg(any(target_os = "freebsd", target_os = "openbsd"))]
    use libc::tcp_info as Information;

    #[cfg(not(target_os = "macos"))]
    const OPTION: c_int = libc::TCP_INFO;
    #[cfg(target_os = "macos")]
    const OPTION: c_int = libc::TCP_CONNECTION_INFO;

    #[cfg(target_os = "linux")]
    const END: usize = offset_of!(Information, min_rtt) + 4;
    // OpenBSD's tcpi_rttmin is the least timeout, not a measurement.
    #[cfg(any(target_os = "freebsd", target_os = "openbsd"))]
    const END: usize = offset_of!(Information, tcpi_rtt) + 4;
    #[cfg(target_os = "macos")]
    const END: usize = offset_of!(Information, tcpi_rttcur) + 4;

    // 0 is what the BSDs and macOS say before the first measurement.
    #[cfg(target_os = "linux")]
    fn microseconds(information: &Information) -> Option<u32> {
        (information.min_rtt != u32::MAX).then_some(information.min_rtt)
    }
    #[cfg(any(target_os = "freebsd", target_os = "openbsd"))]
    fn microseconds(information: &Information) -> Option<u32> {
        (information.tcpi_rtt != 0).then_some(information.tcpi_rtt)
    }
    #[cfg(target_os = "macos")]
    fn microseconds(information: &Information) -> Option<u32> {
        let milliseconds = information.tcpi_rttcur;
        (milliseconds != 0).then(|| milliseconds.saturating_mul(1_000))
    }

    pub(super) fn round_trip_us(fd: c_int) -> Result<u32> {
        microseconds(&ask(fd, END)?).ok_or(Error::State)
    }

    /// The state of the sending side, which only Linux tells in full.
    #[cfg(target_os = "linux")]
    pub(super) fn kernel_state(fd: c_int, now_us: u64) -> Result<KernelState> {
        let information = ask(fd, offset_of!(Information, rwnd_limited) + 8)?;
        Ok(KernelState {
            now_us,
            acked_bytes: information.rates_and_bytes[ACKED],
            unsent_bytes: information.not_sent.into(),
            rtt_us: information.timers_to_retransmissions[RTT].into(),
            busy_us: information.busy_time,
            receiver_limited_us: information.rwnd_limited,
        })
    }
    #[cfg(not(target_os = "linux"))]
    pub(super) fn kernel_state(_fd: c_int, _now_us: u64) -> Result<KernelState> {
        Err(Error::Unsupported)
    }

    /// Asks the kernel, and takes no answer shorter than `least`.
    fn ask(fd: c_int, least: usize) -> Result<Information> {
        let mut len = mem::size_of::<Information>() as socklen_t;
        // SAFETY: the structure consists of plain numbers, for which zero is a
        // value; the kernel writes at most `len` bytes to it.
        let (status, information) = unsafe {
            let mut information: Information = mem::zeroed();
            let target = (&raw mut information).cast::<c_void>();
            let status = libc::getsockopt(fd, libc::IPPROTO_TCP, OPTION, target, &mut len);
            (status, information)
        };
        if status != 0 {
            return Err(match io::Error::last_os_error().raw_os_error() {
                Some(libc::EBADF) => Error::InvalidArgument,
                _ => Error::Unsupported,
            });
        }
        if (len as usize) < least {
            return Err(Error::Unsupported);
        }
        Ok(information)
    }
}

#[cfg(not(any(
    target_os = "linux",
    target_os = "freebsd",
    target_os = "openbsd",
    target_os = "macos"
)))]
mod system {
    use libc::c_int;

    use crate::compression::effort::KernelState;
    use crate::{Error, Result};

    pub(super) fn round_trip_us(_fd: c_int) -> Result<u32> {
        Err(Error::Unsupported)
    }

    pub(super) fn kernel_state(_fd: c_int, _now_us: u64) -> Result<KernelState> {
        Err(Error::Unsupported)
    }
}
