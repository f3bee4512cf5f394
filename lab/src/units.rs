//! Numbers with units, as people write them: `400M` (bit/s), `50ms`, `4MiB`, `0.1%`.
#![forbid(unsafe_code)]

use crate::error::{Error, Result};

fn split(text: &str) -> Result<(f64, &str)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'))
        .unwrap_or(text.len());
    let number = text[..end]
        .parse::<f64>()
        .map_err(|_| Error::new(format!("\"{text}\" does not start with a number")))?;
    if !number.is_finite() || number < 0.0 {
        return Err(Error::new(format!("\"{text}\" must not be negative")));
    }
    Ok((number, text[end..].trim()))
}

fn unknown<T>(text: &str, known: &str) -> Result<T> {
    Err(Error::new(format!(
        "\"{text}\" has no known unit ({known})"
    )))
}

/// Bits per second; `0`, `none` and `unlimited` are no limit, which is 0.
pub fn rate(text: &str) -> Result<u64> {
    if matches!(text.trim(), "none" | "unlimited") {
        return Ok(0);
    }
    let (n, unit) = split(text)?;
    let unit = unit.to_ascii_lowercase();
    let factor = match unit
        .trim_end_matches("bit/s")
        .trim_end_matches("bit")
        .trim()
    {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        _ => return unknown(text, "k, M, G in bit/s"),
    };
    Ok((n * factor).round() as u64)
}

/// A duration in nanoseconds; a bare number is milliseconds.
pub fn duration_ns(text: &str) -> Result<u64> {
    let (n, unit) = split(text)?;
    let factor = match unit {
        "us" => 1e3,
        "" | "ms" => 1e6,
        "s" => 1e9,
        _ => return unknown(text, "us, ms, s"),
    };
    Ok((n * factor).round() as u64)
}

/// Bytes; `k`, `M`, `G` are powers of 1000, `KiB`, `MiB`, `GiB` powers of 1024.
pub fn bytes(text: &str) -> Result<u64> {
    let (n, unit) = split(text)?;
    let factor = match unit {
        "" | "B" => 1.0,
        "k" | "kB" => 1e3,
        "M" | "MB" => 1e6,
        "G" | "GB" => 1e9,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => return unknown(text, "kB, MB, GB, KiB, MiB, GiB"),
    };
    Ok((n * factor).round() as u64)
}

/// A probability: `0.001` or `0.1%`.
pub fn probability(text: &str) -> Result<f64> {
    let (n, unit) = split(text)?;
    let p = match unit {
        "" => n,
        "%" => n / 100.0,
        _ => return unknown(text, "a fraction or %"),
    };
    if p >= 1.0 {
        return Err(Error::new(format!(
            "a loss of \"{text}\" lets nothing through"
        )));
    }
    Ok(p)
}

/// A rate for people: `400 Mbit/s`.
pub fn show_rate(bits_per_s: u64) -> String {
    let b = bits_per_s as f64;
    match bits_per_s {
        0 => "unlimited".into(),
        1..=999_999 => format!("{} kbit/s", trim(b / 1e3)),
        1_000_000..=999_999_999 => format!("{} Mbit/s", trim(b / 1e6)),
        _ => format!("{} Gbit/s", trim(b / 1e9)),
    }
}

/// Three significant digits without idle zeros.
pub fn trim(x: f64) -> String {
    let digits = match x.abs() {
        a if a >= 100.0 || a == 0.0 => 0,
        a if a >= 10.0 => 1,
        a if a >= 1.0 => 2,
        a if a >= 0.1 => 3,
        _ => 4,
    };
    let s = format!("{x:.digits$}");
    if s.contains('.') {
        s.trim_end_matches('0').trim_end_matches('.').to_string()
    } else {
        s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_read_as_written() {
        assert_eq!(rate("400M").unwrap(), 400_000_000);
        assert_eq!(rate("1 Gbit/s").unwrap(), 1_000_000_000);
        assert_eq!(rate("unlimited").unwrap(), 0);
        assert_eq!(duration_ns("50ms").unwrap(), 50_000_000);
        assert_eq!(duration_ns("0.5").unwrap(), 500_000);
        assert_eq!(bytes("4MiB").unwrap(), 4 << 20);
        assert_eq!(bytes("200MB").unwrap(), 200_000_000);
        assert!((probability("0.1%").unwrap() - 0.001).abs() < 1e-12);
        for bad in ["", "x", "-3ms", "5 parsec"] {
            assert!(duration_ns(bad).is_err(), "{bad}");
        }
        assert!(probability("100%").is_err());
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(show_rate(400_000_000), "400 Mbit/s");
        assert_eq!(show_rate(2_500_000_000), "2.5 Gbit/s");
        assert_eq!(trim(31.84), "31.8");
        assert_eq!(trim(8.30), "8.3");
    }
}
