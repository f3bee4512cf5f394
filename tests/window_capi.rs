//! The C functions for links and windows, called as C would.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::ptr;

use sshflow::capi::config::{sshflow_config_free, sshflow_config_new, sshflow_config_set};
use sshflow::capi::link::*;
use sshflow::capi::tcp::sshflow_tcp_min_rtt;
use sshflow::capi::version::*;
use sshflow::capi::window::*;
use sshflow::window::WindowStats;

const MIB: u32 = 1 << 20;

fn link() -> *mut sshflow_link {
    let mut link = ptr::null_mut();
    // SAFETY: the output is writable, and a NULL configuration is allowed.
    let status = unsafe { sshflow_link_new(ptr::null(), &mut link) };
    assert_eq!(status, SSHFLOW_OK);
    link
}

fn window(link: *mut sshflow_link) -> *mut sshflow_window {
    let mut window = ptr::null_mut();
    // SAFETY: a link that was not freed, and an output.
    let status =
        unsafe { sshflow_window_new(link, SSHFLOW_CHANNEL_BULK, 2 * MIB, 32_768, &mut window) };
    assert_eq!(status, SSHFLOW_OK);
    window
}

fn transfer(window: *mut sshflow_window, bytes: u32) -> u32 {
    let mut increment = 77;
    // SAFETY: a window that was not freed, and an output.
    unsafe {
        assert_eq!(sshflow_window_received(window, 1, bytes), SSHFLOW_OK);
        assert_eq!(sshflow_window_consumed(window, 2, bytes), SSHFLOW_OK);
        assert_eq!(sshflow_window_adjust(window, 3, &mut increment), SSHFLOW_OK);
    }
    increment
}

#[test]
fn windows_outlive_their_link_and_each_other() {
    for first in 0..3 {
        let link = link();
        let (left, right) = (window(link), window(link));
        // SAFETY: each handle is freed once and not used afterwards.
        unsafe {
            match first {
                0 => sshflow_link_free(link),
                1 => sshflow_window_free(left),
                _ => sshflow_window_free(right),
            }
            if first != 1 {
                assert_eq!(transfer(left, MIB), MIB);
                sshflow_window_free(left);
            }
            if first != 2 {
                assert_eq!(transfer(right, MIB), MIB);
                sshflow_window_free(right);
            }
            if first != 0 {
                sshflow_link_free(link);
            }
        }
    }
}

#[test]
fn errors_change_nothing_and_leave_the_window_usable() {
    let link = link();
    let window = window(link);
    let mut stats = WindowStats::default();
    let size = size_of::<WindowStats>();
    // SAFETY: handles that are freed at the end, outputs of the right size.
    unsafe {
        assert_eq!(sshflow_window_consumed(window, 1, 1), SSHFLOW_ERR_STATE);
        let too_much = sshflow_window_granted(window, 1, 0x7fff_ffff);
        assert_eq!(too_much, SSHFLOW_ERR_INVALID_ARGUMENT);
        assert_eq!(
            sshflow_link_rtt(link, 1, u32::MAX),
            SSHFLOW_ERR_INVALID_ARGUMENT
        );
        let ident = b"SSH-2.0-OpenSSH_3.4";
        let peer = |len, flags| sshflow_link_peer(link, ident.as_ptr().cast(), len, flags);
        assert_eq!(peer(ident.len(), 2), SSHFLOW_ERR_INVALID_ARGUMENT);
        assert_eq!(peer(0, 0), SSHFLOW_ERR_INVALID_ARGUMENT);
        assert_eq!(peer(ident.len(), 0), SSHFLOW_OK);
        let mut none = ptr::null_mut();
        for (kind, initial, packet) in [(3, 0, 1), (-1, 0, 1), (0, 1 << 31, 1), (0, 0, 0)] {
            let status = sshflow_window_new(link, kind, initial, packet, &mut none);
            assert_eq!(status, SSHFLOW_ERR_INVALID_ARGUMENT);
        }
        assert!(none.is_null());
        assert_eq!(sshflow_window_stats(window, &mut stats, size), SSHFLOW_OK);
        assert_eq!(
            (stats.credit, stats.backlog, stats.peer_cap),
            (2 * MIB, 0, 2 * MIB)
        );
        assert_eq!(
            sshflow_window_stats(window, &mut stats, 0),
            SSHFLOW_ERR_INVALID_ARGUMENT
        );
        sshflow_window_free(window);
        sshflow_link_free(link);
        sshflow_window_free(ptr::null_mut());
        sshflow_link_free(ptr::null_mut());
    }
}

#[test]
fn the_configuration_reaches_the_windows() {
    // SAFETY: handles that are freed at the end, outputs, C strings.
    unsafe {
        let mut config = ptr::null_mut();
        assert_eq!(sshflow_config_new(&mut config), SSHFLOW_OK);
        let set = |key: &std::ffi::CStr, value: &std::ffi::CStr| {
            assert_eq!(
                sshflow_config_set(config, key.as_ptr(), value.as_ptr()),
                SSHFLOW_OK
            );
        };
        set(c"window_max", c"3M");
        let grown = |config| {
            let mut link = ptr::null_mut();
            assert_eq!(sshflow_link_new(config, &mut link), SSHFLOW_OK);
            let window = window(link);
            let mut now = 1_000_000;
            let (mut size, mut outstanding, mut increment) = (0, 0, 0);
            for _ in 0..500 {
                now += 1_000;
                assert_eq!(sshflow_link_rtt(link, now, 100_000), SSHFLOW_OK);
                assert_eq!(sshflow_window_received(window, now, 32_768), SSHFLOW_OK);
                assert_eq!(sshflow_window_consumed(window, now, 32_768), SSHFLOW_OK);
                assert_eq!(
                    sshflow_window_adjust(window, now, &mut increment),
                    SSHFLOW_OK
                );
            }
            let status = sshflow_window_target(window, &mut size, &mut outstanding);
            assert_eq!((status, size), (SSHFLOW_OK, outstanding));
            sshflow_window_free(window);
            sshflow_link_free(link);
            size
        };
        assert_eq!(grown(ptr::null()), 4 * MIB, "the default window_max");
        assert_eq!(grown(config), 3 * MIB);
        set(c"window_policy", c"fixed");
        assert_eq!(grown(config), 2 * MIB);
        sshflow_config_free(config);
    }
}

#[test]
fn the_kernel_tells_the_round_trip_of_tcp_and_of_nothing_else() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    client.write_all(b"x").unwrap();
    server.read_exact(&mut [0]).unwrap();
    let (pipe, _writer) = std::io::pipe().unwrap();
    let mut rtt = 77;
    // SAFETY: open descriptors, one that cannot be open, and an output.
    unsafe {
        assert_eq!(
            sshflow_tcp_min_rtt(client.as_raw_fd(), &mut rtt),
            SSHFLOW_OK
        );
        assert!(rtt < 1_000_000, "a loopback takes no second: {rtt}");
        rtt = 77;
        let fd = pipe.as_raw_fd();
        assert_eq!(sshflow_tcp_min_rtt(fd, &mut rtt), SSHFLOW_ERR_UNSUPPORTED);
        assert_eq!(
            sshflow_tcp_min_rtt(-1, &mut rtt),
            SSHFLOW_ERR_INVALID_ARGUMENT
        );
        assert_eq!(rtt, 77);
        let null = ptr::null_mut();
        assert_eq!(
            sshflow_tcp_min_rtt(client.as_raw_fd(), null),
            SSHFLOW_ERR_INVALID_ARGUMENT
        );
    }
}
