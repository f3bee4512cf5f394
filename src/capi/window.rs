//! Windows: the flow control of one channel each.

use libc::{c_char, c_int};

use super::guard::export;
use super::handle::{self, opaque, Exclusive, Given, Growing, Handle, Out};
use super::link::sshflow_link;
use super::shared::Shared;
use super::version::SSHFLOW_OK;
use crate::window::{ChannelId, Kind, Link, Reason, WindowStats};
use crate::{Error, Result};

/// A channel that carries a command, a subsystem or a forward.
pub const SSHFLOW_CHANNEL_BULK: c_int = 0;
/// A channel with a terminal: somebody waits for each answer.
pub const SSHFLOW_CHANNEL_INTERACTIVE: c_int = 1;
/// A forwarded X11 client.
pub const SSHFLOW_CHANNEL_X11: c_int = 2;

/// What a window handle holds: its place in the link, given back when freed.
pub(crate) struct Channel {
    link: Shared<Link>,
    id: ChannelId,
}

impl Channel {
    fn with<R>(&self, action: impl FnOnce(&mut Link, ChannelId) -> Result<R>) -> Result<R> {
        self.link.with(|link| action(link, self.id))
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // Where the link failed earlier there is nothing to give back to.
        let _ = self.with(|link, id| link.close(id));
    }
}

/// The receive window of one channel.
#[allow(non_camel_case_types)]
pub struct sshflow_window(Handle<Channel>);
opaque!(sshflow_window, Channel);

fn kind_from_number(kind: c_int) -> Result<Kind> {
    match kind {
        SSHFLOW_CHANNEL_BULK => Ok(Kind::Bulk),
        SSHFLOW_CHANNEL_INTERACTIVE => Ok(Kind::Interactive),
        SSHFLOW_CHANNEL_X11 => Ok(Kind::X11),
        _ => Err(Error::InvalidArgument),
    }
}

/// Makes the window of a channel and writes it to `*out`, on success only.
/// `kind`: an SSHFLOW_CHANNEL_ number. `initial_window`: bytes of credit that
/// the peer already has from the open or its confirmation; 0 if it has none
/// (a session of OpenSSH's server): the first sshflow_window_adjust() then
/// grants what stock OpenSSH does, 2 MiB, for X11 64 KiB. `max_packet`: the
/// largest packet that the peer was allowed, in bytes.
///
/// Returns SSHFLOW_OK, SSHFLOW_ERR_INVALID_ARGUMENT for NULL, an unknown kind,
/// `initial_window` above 2^31-1 or `max_packet` 0, or SSHFLOW_ERR_NO_MEMORY.
#[no_mangle]
pub unsafe extern "C" fn sshflow_window_new(
    link: *mut sshflow_link,
    kind: c_int,
    initial_window: u32,
    max_packet: u32,
    out: *mut *mut sshflow_window,
) -> c_int {
    export!(link: Exclusive<sshflow_link> = link, out: Out<*mut sshflow_window> = out; {
        let kind = kind_from_number(kind)?;
        let id = link.with(|link| link.open(kind, initial_window, max_packet))?;
        out.give(Channel { link: link.clone(), id })?;
        Ok(SSHFLOW_OK)
    })
}

/// `bytes` of data arrived from the peer at `now_us`. More than its credit is
/// counted as received and leaves it no credit; whether that ends the
/// connection is the host's decision.
///
/// Returns SSHFLOW_OK, or SSHFLOW_ERR_INVALID_ARGUMENT for NULL.
#[no_mangle]
pub unsafe extern "C" fn sshflow_window_received(
    window: *mut sshflow_window,
    now_us: u64,
    bytes: u32,
) -> c_int {
    export!(window: Exclusive<sshflow_window> = window; {
        window.with(|link, id| link.received(id, now_us, bytes))?;
        Ok(SSHFLOW_OK)
    })
}

/// The host handed `bytes` of what was received on, or dropped them.
///
/// Returns SSHFLOW_OK, SSHFLOW_ERR_INVALID_ARGUMENT for NULL, or
/// SSHFLOW_ERR_STATE for more than was received and not yet consumed; nothing
/// is counted then, and the window stays usable.
#[no_mangle]
pub unsafe extern "C" fn sshflow_window_consumed(
    window: *mut sshflow_window,
    now_us: u64,
    bytes: u32,
) -> c_int {
    export!(window: Exclusive<sshflow_window> = window; {
        window.with(|link, id| link.consumed(id, now_us, bytes))?;
        Ok(SSHFLOW_OK)
    })
}

/// Asks for the increment that SSH_MSG_CHANNEL_WINDOW_ADJUST should carry now,
/// and writes it to `*increment`: bytes, 0 to send nothing. What is returned
/// counts as granted: a host that cannot send it now sends the same number
/// later, and does not ask again for it. Call it whenever something was
/// consumed; it is cheap.
///
/// Returns SSHFLOW_OK, or SSHFLOW_ERR_INVALID_ARGUMENT for NULL.
#[no_mangle]
pub unsafe extern "C" fn sshflow_window_adjust(
    window: *mut sshflow_window,
    now_us: u64,
    increment: *mut u32,
) -> c_int {
    export!(window: Exclusive<sshflow_window> = window, increment: Out<u32> = increment; {
        increment.set(window.with(|link, id| link.adjust(id, now_us))?);
        Ok(SSHFLOW_OK)
    })
}

/// The host gives the peer `bytes` of credit by itself. Call it before sending
/// them.
///
/// Returns SSHFLOW_OK, or SSHFLOW_ERR_INVALID_ARGUMENT for NULL and for credit
/// that would go over 2^31-1 or over what the peer bears; nothing is counted
/// then, and should not be sent.
#[no_mangle]
pub unsafe extern "C" fn sshflow_window_granted(
    window: *mut sshflow_window,
    now_us: u64,
    bytes: u32,
) -> c_int {
    export!(window: Exclusive<sshflow_window> = window; {
        window.with(|link, id| link.granted(id, now_us, bytes))?;
        Ok(SSHFLOW_OK)
    })
}

/// The host wants the peer to have at least `bytes` of credit after the next
/// sshflow_window_adjust(): it is about to read that much. Granted as far as
/// the peer and the budget allow.
///
/// Returns SSHFLOW_OK, or SSHFLOW_ERR_INVALID_ARGUMENT for NULL.
#[no_mangle]
pub unsafe extern "C" fn sshflow_window_require(window: *mut sshflow_window, bytes: u32) -> c_int {
    export!(window: Exclusive<sshflow_window> = window; {
        window.with(|link, id| link.require(id, bytes))?;
        Ok(SSHFLOW_OK)
    })
}

/// Tells what to plan with, in bytes. `*size`: the window in force, the most
/// that the peer can have under way and waiting; it grows with an adjust and
/// shrinks as credit is used up. `*outstanding`: how much a protocol above,
/// SFTP say, should have requested and not yet got.
///
/// Returns SSHFLOW_OK, or SSHFLOW_ERR_INVALID_ARGUMENT for NULL.
#[no_mangle]
pub unsafe extern "C" fn sshflow_window_target(
    window: *const sshflow_window,
    size: *mut u32,
    outstanding: *mut u32,
) -> c_int {
    export!(
        window: handle::Shared<sshflow_window> = window,
        size: Out<u32> = size,
        outstanding: Out<u32> = outstanding;
        {
            let target = window.with(|link, id| link.target(id))?;
            size.set(target.window);
            outstanding.set(target.outstanding);
            Ok(SSHFLOW_OK)
        }
    )
}

/// Writes the window's state and history to `*stats`, of which the caller
/// knows `stats_size` bytes (sizeof *stats). A shorter structure gets the
/// front, a longer one zeroes behind.
///
/// Returns SSHFLOW_OK, or SSHFLOW_ERR_INVALID_ARGUMENT for NULL and for a size
/// of 0 or above 4096.
#[no_mangle]
pub unsafe extern "C" fn sshflow_window_stats(
    window: *const sshflow_window,
    stats: *mut WindowStats,
    stats_size: usize,
) -> c_int {
    export!(
        window: handle::Shared<sshflow_window> = window,
        stats: Growing<WindowStats> = (stats, stats_size);
        {
            stats.set(window.with(|link, id| link.stats(id))?);
            Ok(SSHFLOW_OK)
        }
    )
}

/// A few words for the `reason` in sshflow_window_stats, as in "path needs
/// more". Static; never NULL.
#[no_mangle]
pub extern "C" fn sshflow_window_reason(reason: u32) -> *const c_char {
    Reason::words(reason).as_ptr()
}

/// Frees a window. NULL is a no-op.
#[no_mangle]
pub unsafe extern "C" fn sshflow_window_free(window: *mut sshflow_window) {
    export!(window: Given<sshflow_window> = window; {
        window.free();
        Ok(SSHFLOW_OK)
    });
}
