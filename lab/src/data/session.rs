//! A scripted typing session: keys with the pauses of a person, and what a shell in a pseudo
//! terminal answers to them, echo and redraws included.
#![forbid(unsafe_code)]

use crate::error::Result;
use crate::sys::pty::Pty;
use crate::sys::spawn::Spawn;
use crate::work::Work;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use std::io::Write;
use std::time::Duration;

const SCRIPT: &str = include_str!("../../data/session.txt");
/// The shell of the session, without anybody's own settings.
pub const SHELL: &[&str] = &[
    "env",
    "-i",
    "TERM=xterm",
    "PS1=user@host:\\w\\$ ",
    "PATH=/usr/bin:/bin",
    "HISTFILE=",
    "bash",
    "--noprofile",
    "--norc",
    "-i",
];
/// An answer has ended when nothing came for this long.
const QUIET: Duration = Duration::from_millis(40);

/// One key press.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub bytes: Vec<u8>,
    /// Since the key before.
    pub pause: Duration,
}

/// The keys of the session.
pub fn script() -> Vec<Key> {
    let mut rng = ChaCha20Rng::seed_from_u64(9);
    let mut keys = Vec::new();
    for line in SCRIPT.lines().filter(|l| !l.starts_with('#')) {
        let mut letters = line.chars();
        while let Some(letter) = letters.next() {
            let mut ahead = letters.clone();
            let special = match (letter, ahead.next()) {
                ('\\', Some('b')) => Some(&b"\x7f"[..]),
                // `\r[` belongs to a printf.
                ('\\', Some('r')) if ahead.next() != Some('[') => Some(&b"\x12"[..]),
                ('\\', Some('u')) => Some(&b"\x1b[A"[..]),
                ('\\', Some('c')) => Some(&b"\x03"[..]),
                ('\\', Some('t')) => Some(&b"\t"[..]),
                _ => None,
            };
            let bytes = match special {
                Some(bytes) => {
                    letters.next();
                    bytes.to_vec()
                }
                None => letter.to_string().into_bytes(),
            };
            keys.push(Key {
                bytes,
                pause: pause(&mut rng),
            });
        }
        keys.push(Key {
            bytes: b"\r".to_vec(),
            pause: pause(&mut rng),
        });
    }
    keys
}

/// Between the keys of a quick typist.
fn pause(rng: &mut ChaCha20Rng) -> Duration {
    Duration::from_millis(rng.gen_range(60..240))
}

/// What a shell shows during the session.
pub fn make(_: &Work, out: &mut dyn Write) -> Result<()> {
    let pty = Pty::open(24, 80)?;
    let mut shell = Spawn::new(SHELL).terminal(&pty)?.start()?;
    let mut pty = pty.master_only();
    pty.read_until_quiet(QUIET * 5, out)?;
    for key in script() {
        pty.write_all(&key.bytes)?;
        pty.read_until_quiet(QUIET, out)?;
    }
    pty.read_until_quiet(QUIET * 5, out)?;
    let _ = shell.kill();
    shell.wait()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_fixed_and_types_like_a_person() {
        let keys = script();
        assert_eq!(keys, script());
        assert!(keys.len() > 700, "{}", keys.len());
        assert!(keys.iter().any(|k| k.bytes == b"\x7f"));
        assert!(keys.iter().any(|k| k.bytes == b"\x12"));
        assert!(keys
            .iter()
            .all(|k| k.pause.as_millis() >= 60 && !k.bytes.is_empty()));
    }
}
