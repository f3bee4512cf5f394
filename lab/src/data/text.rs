//! Log text: lines of real daemons, with names, numbers and times filled in from a seed.
#![forbid(unsafe_code)]

use crate::error::Result;
use crate::work::Work;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use std::io::Write;

const TEMPLATES: &str = include_str!("../../data/daemons.log");
const HOSTS: &[&str] = &["web1", "web2", "db1", "mail", "gate"];
const USERS: &[&str] = &[
    "alice", "bob", "carol", "dave", "erin", "git", "backup", "deploy", "www-data", "test",
];
const PATHS: &[&str] = &[
    "/",
    "/index.html",
    "/api/v1/orders",
    "/static/app.js",
    "/login",
    "/img/logo.svg",
    "/feed.xml",
];
const STATUS: &[&str] = &["200", "200", "200", "304", "301", "404", "500"];
const MONTHS: &[&str] = &["Jan", "Feb", "Mar", "Apr", "May", "Jun"];
const BYTES: usize = 107_000_000;

/// An endless log.
pub struct Log {
    rng: ChaCha20Rng,
    templates: Vec<&'static str>,
    milliseconds: u64,
}

impl Log {
    pub fn new(seed: u64) -> Self {
        Self {
            rng: ChaCha20Rng::seed_from_u64(seed),
            templates: TEMPLATES.lines().filter(|l| !l.starts_with('#')).collect(),
            milliseconds: 0,
        }
    }

    /// So many bytes of it, perhaps ending within a line.
    pub fn block(&mut self, len: usize) -> Vec<u8> {
        let mut block = String::with_capacity(len + 1024);
        while block.len() < len {
            self.line(&mut block);
        }
        block.truncate(len);
        block.into_bytes()
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.rng.gen_range(0..list.len())]
    }

    fn line(&mut self, out: &mut String) {
        self.milliseconds += self.rng.gen_range(0..800);
        let s = self.milliseconds / 1000;
        let month = self.pick(&MONTHS[..1]);
        let day = s / 86_400 % 31 + 1;
        let (hour, minute, second) = (s / 3600 % 24, s / 60 % 60, s % 60);
        let host = self.pick(HOSTS);
        out.push_str(&format!(
            "{month} {day:>2} {hour:02}:{minute:02}:{second:02} {host} "
        ));
        let template = self.templates[self.rng.gen_range(0..self.templates.len())];
        let mut parts = template.split('$');
        out.push_str(parts.next().unwrap_or(""));
        for part in parts {
            let mut letters = part.chars();
            let key = letters.next().unwrap_or(' ');
            self.fill(key, out);
            out.push_str(letters.as_str());
        }
        out.push('\n');
    }

    fn fill(&mut self, key: char, out: &mut String) {
        let rng = &mut self.rng;
        match key {
            'p' => out.push_str(&rng.gen_range(300..65_000).to_string()),
            'i' => {
                let [a, b]: [u8; 2] = rng.gen();
                out.push_str(&format!("198.51.{}.{b}", 100 + a % 24));
            }
            'n' => out.push_str(&rng.gen_range(1024..65_536).to_string()),
            'k' => {
                let ms = self.milliseconds;
                out.push_str(&format!("{:>6}.{:06}", ms / 1000, ms % 1000 * 1000));
            }
            's' => out.push_str(&rng.gen_range(80..250_000).to_string()),
            'm' => out.push_str(&format!("{:010X}", rng.gen::<u64>() >> 24)),
            'd' => out.push_str(&format!("0.{:03}", rng.gen_range(0..999))),
            'f' => {
                for _ in 0..43 {
                    out.push(char::from(
                        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
                            [rng.gen_range(0..64)],
                    ));
                }
            }
            'u' => out.push_str(self.pick(USERS)),
            'w' => out.push_str(self.pick(PATHS)),
            'c' => out.push_str(self.pick(STATUS)),
            other => out.push(other),
        }
    }
}

pub fn log(_: &Work, out: &mut dyn Write) -> Result<()> {
    let mut log = Log::new(5);
    let mut left = BYTES;
    while left > 0 {
        let n = left.min(1 << 20);
        out.write_all(&log.block(n))?;
        left -= n;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_log_and_nothing_is_left_unfilled() {
        let text = Log::new(9).block(200_000);
        assert_eq!(text, Log::new(9).block(200_000));
        assert_ne!(text, Log::new(10).block(200_000));
        assert!(!text.contains(&b'$'));
    }
}
