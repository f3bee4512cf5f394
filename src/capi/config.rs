//! Configurations.

use std::io::Write;

use libc::{c_char, c_int};

use super::guard::export;
use super::handle::{opaque, Exclusive, Given, Handle, Out, Room, Shared, Text};
use super::version::SSHFLOW_OK;
use crate::config::Config;
use crate::Error;

/// The longest text of any parameter, with its terminator.
const MAX_TEXT: usize = 32;

/// Parameters for compressors, decompressors and links. They are copied by
/// whatever is made with them, so that a configuration can be changed or freed
/// at any time.
#[allow(non_camel_case_types)]
pub struct sshflow_config(Handle<Config>);
opaque!(sshflow_config, Config);

/// Makes a configuration with every parameter at its default and writes it to
/// `*out`, on success only. Free it with sshflow_config_free().
///
/// Returns SSHFLOW_OK, SSHFLOW_ERR_INVALID_ARGUMENT for NULL, or
/// SSHFLOW_ERR_NO_MEMORY.
#[no_mangle]
pub unsafe extern "C" fn sshflow_config_new(out: *mut *mut sshflow_config) -> c_int {
    export!(out: Out<*mut sshflow_config> = out; {
        out.give(Config::new())?;
        Ok(SSHFLOW_OK)
    })
}

/// Sets a parameter from text, as it would stand in a configuration file. Both
/// strings are NUL-terminated. The keys, their units, bounds and defaults are
/// in sshflow(3).
///
/// Returns SSHFLOW_OK, or SSHFLOW_ERR_INVALID_ARGUMENT for NULL, an unknown
/// key or a value that the key does not take; nothing is changed then.
#[no_mangle]
pub unsafe extern "C" fn sshflow_config_set(
    config: *mut sshflow_config,
    key: *const c_char,
    value: *const c_char,
) -> c_int {
    export!(config: Exclusive<sshflow_config> = config, key: Text = key, value: Text = value; {
        config.set(&key, &value)?;
        Ok(SSHFLOW_OK)
    })
}

/// Sets a parameter from a number: "off" is 0 and "on" 1, "fixed" 0 and "auto"
/// 1, the level "auto" INT64_MIN.
///
/// Returns as sshflow_config_set().
#[no_mangle]
pub unsafe extern "C" fn sshflow_config_set_int(
    config: *mut sshflow_config,
    key: *const c_char,
    value: i64,
) -> c_int {
    export!(config: Exclusive<sshflow_config> = config, key: Text = key; {
        config.set_int(&key, value)?;
        Ok(SSHFLOW_OK)
    })
}

/// Reads a parameter as a number, into `*value`, on success only.
///
/// Returns SSHFLOW_OK, or SSHFLOW_ERR_INVALID_ARGUMENT for NULL or an unknown
/// key.
#[no_mangle]
pub unsafe extern "C" fn sshflow_config_get_int(
    config: *const sshflow_config,
    key: *const c_char,
    value: *mut i64,
) -> c_int {
    export!(config: Shared<sshflow_config> = config, key: Text = key, value: Out<i64> = value; {
        value.set(config.get_int(&key)?);
        Ok(SSHFLOW_OK)
    })
}

/// Reads a parameter in text form, NUL-terminated, into `value`, which has room
/// for `value_capacity` bytes. 32 suffice for every parameter.
///
/// Returns SSHFLOW_OK, SSHFLOW_ERR_INVALID_ARGUMENT for NULL or an unknown key,
/// or SSHFLOW_ERR_BUFFER_TOO_SMALL; `value` is written on success only.
#[no_mangle]
pub unsafe extern "C" fn sshflow_config_get(
    config: *const sshflow_config,
    key: *const c_char,
    value: *mut c_char,
    value_capacity: usize,
) -> c_int {
    export!(
        config: Shared<sshflow_config> = config,
        key: Text = key,
        room: Room = (value.cast(), value_capacity);
        {
            let mut text = [0; MAX_TEXT];
            let mut rest = &mut text[..];
            write!(rest, "{}\0", config.display(&key)?).map_err(|_| Error::Internal)?;
            let len = MAX_TEXT - rest.len();
            let value = room.get_mut(..len).ok_or(Error::BufferTooSmall)?;
            value.copy_from_slice(&text[..len]);
            Ok(SSHFLOW_OK)
        }
    )
}

/// Frees a configuration. NULL is a no-op.
#[no_mangle]
pub unsafe extern "C" fn sshflow_config_free(config: *mut sshflow_config) {
    export!(config: Given<sshflow_config> = config; {
        config.free();
        Ok(SSHFLOW_OK)
    });
}
