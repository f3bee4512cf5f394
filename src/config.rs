#![forbid(unsafe_code)]
//! The parameters: one table that drives the setters, their bounds, the C
//! header, the manual page and the README.

use std::fmt;

use crate::{Error, Result};

/// The value of `level` that means "decide per packet".
pub const LEVEL_AUTO: i64 = i64::MIN;

/// What the values of a parameter are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An integer between two bounds, both included. In text form a `K`, `M`
    /// or `G` behind it multiplies by a power of 1,024.
    Integer {
        /// The smallest value allowed.
        min: i64,
        /// The largest value allowed.
        max: i64,
    },
    /// `auto`, or an integer between two bounds, both included.
    AutoOrInteger {
        /// The smallest value allowed.
        min: i64,
        /// The largest value allowed.
        max: i64,
    },
    /// One of these words; its number is its place in the list.
    Word(&'static [&'static str]),
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// The name, as the setters take it.
    pub key: &'static str,
    /// The values allowed.
    pub kind: Kind,
    /// The unit of an integer; empty where there is none.
    pub unit: &'static str,
    /// The value of a new configuration.
    pub default: i64,
    /// What it does, in a line.
    pub doc: &'static str,
}

const KIB: i64 = 1024;
const MIB: i64 = 1024 * 1024;

/// Every parameter there is, in the order of the documentation.
pub const PARAMETERS: [Parameter; 9] = [
    Parameter {
        key: "level",
        kind: Kind::AutoOrInteger { min: -7, max: 19 },
        unit: "",
        default: LEVEL_AUTO,
        doc: "effort per packet: auto, or a fixed level; 0 stores; the zlib wire takes 0 to 9 and clamps",
    },
    Parameter {
        key: "max_payload",
        kind: Kind::Integer { min: 1024, max: 128 * MIB },
        unit: "bytes",
        default: 256 * KIB,
        doc: "the most that one packet may decompress to",
    },
    Parameter {
        key: "memory_limit",
        kind: Kind::Integer { min: 0, max: 1024 * MIB },
        unit: "bytes",
        default: 32 * MIB,
        doc: "the most memory that the engines of one compressor may hold; a level that needs more is lowered",
    },
    Parameter {
        key: "max_packet_time_us",
        kind: Kind::Integer { min: 50, max: 1_000_000 },
        unit: "microseconds",
        default: 10_000,
        doc: "with level auto: the most time that compressing one packet should take",
    },
    Parameter {
        key: "isolation",
        kind: Kind::Word(&["off", "on"]),
        unit: "",
        default: 1,
        doc: "packets of different groups share no history",
    },
    Parameter {
        key: "window_policy",
        kind: Kind::Word(&["fixed", "auto"]),
        unit: "",
        default: 1,
        doc: "channel windows: as the host opened them, or fitted to the path",
    },
    Parameter {
        key: "window_max",
        kind: Kind::Integer { min: 32 * KIB, max: 0x7fff_ffff },
        unit: "bytes",
        default: 4 * MIB,
        doc: "the largest channel window that the host's own buffers bear",
    },
    Parameter {
        key: "window_budget",
        kind: Kind::Integer { min: 32 * KIB, max: 0x7fff_ffff },
        unit: "bytes",
        default: 128 * MIB,
        doc: "the most window that all channels of a connection share, above one floor each",
    },
    Parameter {
        key: "latency_mode",
        kind: Kind::Word(&["off", "auto"]),
        unit: "",
        default: 1,
        doc: "keep bulk windows small while an interactive channel shares the connection",
    },
];

/// A set of values, one for each parameter.
#[derive(Debug, Clone)]
pub struct Config {
    values: [i64; PARAMETERS.len()],
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

fn find(key: &str) -> Result<usize> {
    PARAMETERS
        .iter()
        .position(|parameter| parameter.key == key)
        .ok_or(Error::InvalidArgument)
}

fn scaled_integer(text: &str) -> Option<i64> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 10),
        b'm' | b'M' => (&text[..text.len() - 1], 20),
        b'g' | b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    // parse() alone would take a leading plus sign.
    if digits.starts_with('+') {
        return None;
    }
    digits.parse::<i64>().ok()?.checked_mul(1 << shift)
}

impl Parameter {
    /// Whether the parameter takes this value.
    pub fn accepts(&self, value: i64) -> bool {
        match self.kind {
            Kind::Integer { min, max } => (min..=max).contains(&value),
            Kind::AutoOrInteger { min, max } => value == LEVEL_AUTO || (min..=max).contains(&value),
            Kind::Word(words) => usize::try_from(value).is_ok_and(|v| v < words.len()),
        }
    }

    fn parse(&self, text: &str) -> Result<i64> {
        let value = match self.kind {
            Kind::Integer { .. } => scaled_integer(text),
            Kind::AutoOrInteger { .. } if text == "auto" => Some(LEVEL_AUTO),
            Kind::AutoOrInteger { .. } => text.parse().ok().filter(|_| !text.starts_with('+')),
            Kind::Word(words) => words.iter().position(|w| *w == text).map(|at| at as i64),
        };
        value.ok_or(Error::InvalidArgument)
    }

    /// The value in text form, as [`Config::set`] takes it.
    pub fn text(&self, value: i64) -> String {
        self.display(value).to_string()
    }

    fn display(&self, value: i64) -> Text {
        Text {
            kind: self.kind,
            value,
        }
    }
}

/// A value, shown without the help of the allocator.
struct Text {
    kind: Kind,
    value: i64,
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::AutoOrInteger { .. } if self.value == LEVEL_AUTO => f.write_str("auto"),
            Kind::Word(words) => {
                let word = words.get(self.value as usize);
                f.write_str(word.copied().unwrap_or_default())
            }
            _ => self.value.fmt(f),
        }
    }
}

impl Config {
    /// Every parameter at its default.
    pub const fn new() -> Self {
        let mut values = [0; PARAMETERS.len()];
        let mut at = 0;
        while at < values.len() {
            values[at] = PARAMETERS[at].default;
            at += 1;
        }
        Config { values }
    }

    /// Sets a parameter from text, as it would stand in a configuration file.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an unknown key or a value that the
    /// parameter does not take; nothing is changed then.
    pub fn set(&mut self, key: &str, text: &str) -> Result<()> {
        let value = PARAMETERS[find(key)?].parse(text)?;
        self.set_int(key, value)
    }

    /// Sets a parameter from a number: words by their place in the list,
    /// `auto` as [`LEVEL_AUTO`].
    ///
    /// # Errors
    /// As [`Config::set`].
    pub fn set_int(&mut self, key: &str, value: i64) -> Result<()> {
        let at = find(key)?;
        if !PARAMETERS[at].accepts(value) {
            return Err(Error::InvalidArgument);
        }
        self.values[at] = value;
        Ok(())
    }

    /// The value of a parameter as a number.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an unknown key.
    pub fn get_int(&self, key: &str) -> Result<i64> {
        Ok(self.values[find(key)?])
    }

    /// The value of a parameter in text form.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an unknown key.
    pub fn get(&self, key: &str) -> Result<String> {
        self.display(key).map(|text| text.to_string())
    }

    /// As [`Config::get`], for those who cannot bear that memory runs out.
    pub(crate) fn display(&self, key: &str) -> Result<impl fmt::Display> {
        let at = find(key)?;
        Ok(PARAMETERS[at].display(self.values[at]))
    }

    // For keys that this crate itself names; a test asks for each of them.
    fn known(&self, key: &'static str) -> i64 {
        self.get_int(key).unwrap_or_default()
    }

    /// The fixed level, or nothing where the effort is decided per packet.
    pub fn level(&self) -> Option<i8> {
        i8::try_from(self.known("level")).ok()
    }

    /// The most that one packet may decompress to, in bytes.
    pub fn max_payload(&self) -> usize {
        self.known("max_payload") as usize
    }

    /// The most memory that the engines of one compressor may hold, in bytes.
    pub fn memory_limit(&self) -> usize {
        self.known("memory_limit") as usize
    }

    /// The most time that compressing one packet should take, in microseconds.
    pub fn max_packet_time_us(&self) -> u32 {
        self.known("max_packet_time_us") as u32
    }

    /// Whether groups are kept apart.
    pub fn isolation(&self) -> bool {
        self.known("isolation") == 1
    }

    /// Whether windows follow the path.
    pub fn window_auto(&self) -> bool {
        self.known("window_policy") == 1
    }

    /// The largest channel window, in bytes.
    pub fn window_max(&self) -> u32 {
        self.known("window_max") as u32
    }

    /// The most window that all channels share, in bytes.
    pub fn window_budget(&self) -> u32 {
        self.known("window_budget") as u32
    }

    /// Whether an interactive channel keeps its neighbours' windows small.
    pub fn latency_auto(&self) -> bool {
        self.known("latency_mode") == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_a_value_the_parameter_takes() {
        for parameter in &PARAMETERS {
            assert!(parameter.accepts(parameter.default), "{}", parameter.key);
            let text = parameter.text(parameter.default);
            let mut config = Config::new();
            config.set(parameter.key, &text).unwrap();
            assert_eq!(config.get_int(parameter.key), Ok(parameter.default));
        }
    }

    #[test]
    fn typed_getters_read_the_keys_of_the_table() {
        let config = Config::new();
        assert_eq!(config.level(), None);
        assert_eq!(config.max_payload(), 262_144);
        assert_eq!(config.memory_limit(), 32 << 20);
        assert_eq!(config.max_packet_time_us(), 10_000);
        assert!(config.isolation() && config.window_auto() && config.latency_auto());
        assert_eq!(config.window_max(), 4 << 20);
        assert_eq!(config.window_budget(), 128 << 20);
    }

    #[test]
    fn a_refused_value_changes_nothing() {
        let mut config = Config::new();
        config.set("level", "-7").unwrap();
        for bad in ["20", "-8", "", "+3", "fast", "3 ", "9223372036854775808"] {
            assert_eq!(
                config.set("level", bad),
                Err(Error::InvalidArgument),
                "{bad}"
            );
        }
        assert_eq!(config.level(), Some(-7));
        assert_eq!(config.set("levels", "3"), Err(Error::InvalidArgument));
        assert_eq!(config.set("isolation", "1"), Err(Error::InvalidArgument));
        assert_eq!(config.set_int("isolation", 2), Err(Error::InvalidArgument));
        assert_eq!(
            config.set("window_max", "9000000000G"),
            Err(Error::InvalidArgument)
        );
    }

    #[test]
    fn sizes_take_suffixes_and_auto_reads_back() {
        let mut config = Config::new();
        config.set("window_max", "64M").unwrap();
        assert_eq!(config.window_max(), 64 << 20);
        config.set("level", "auto").unwrap();
        assert_eq!(config.get_int("level"), Ok(i64::MIN));
        assert_eq!(config.get("level").unwrap(), "auto");
    }
}
