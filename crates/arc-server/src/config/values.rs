//! Texts of settings to values and back: sizes, durations, addresses, switches.
//!
//! Owns the spelling of values, the same in flags, variables and the file. Never knows which setting it reads: the
//! reason it gives says only what was expected.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use arc_core::ColumnTypes;

const SIZE_UNITS: [(&str, u64); 10] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("KB", 1_000),
    ("B", 1),
];

const DURATION_UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Reads `4096`, `64KiB`, `100MiB`, `2GB`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let expected = || "a size in bytes such as 4096, 64KiB, 100MiB or 2GB".to_owned();
    let (number, unit) = split_unit(text);
    let factor = match unit {
        "" => 1,
        _ => SIZE_UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(expected)?.1,
    };
    number.parse::<u64>().ok().and_then(|n| n.checked_mul(factor)).ok_or_else(expected)
}

/// Reads a size that has to fit in memory.
pub(super) fn memory_size(text: &str) -> Result<usize, String> {
    usize::try_from(size(text)?).map_err(|_| "a size that this machine can address".to_owned())
}

/// Prints a size so that [`size`] reads it back.
pub(super) fn show_size(bytes: u64) -> String {
    let unit = SIZE_UNITS.iter().take(4).find(|(_, factor)| bytes >= *factor && bytes.is_multiple_of(*factor));
    unit.map_or_else(|| bytes.to_string(), |(name, factor)| format!("{}{name}", bytes / factor))
}

/// Prints a size so that [`memory_size`] reads it back.
pub(super) fn show_memory(bytes: usize) -> String {
    show_size(u64::try_from(bytes).unwrap_or(u64::MAX))
}

/// Reads `500ms`, `10s`, `5m`, `1h`, `2d`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let expected = || "a duration with its unit such as 500ms, 10s, 5m or 1h".to_owned();
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let (number, unit) = split_unit(text);
    let factor = DURATION_UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(expected)?.1;
    number.parse::<u64>().ok().and_then(|n| n.checked_mul(factor)).map(Duration::from_millis).ok_or_else(expected)
}

/// Prints a duration so that [`duration`] reads it back.
pub(super) fn show_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if duration.subsec_millis() != 0 || seconds == 0 {
        return format!("{}ms", duration.as_millis());
    }
    format!("{seconds}s")
}

/// Reads a whole number of at least one.
pub(super) fn count(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "a whole number of at least 1".to_owned())
}

/// Reads a number of rows.
pub(super) fn rows(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "a number".to_owned())
}

/// Reads `true` or `false`.
pub(super) fn switch(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| "true or false".to_owned())
}

/// Reads `127.0.0.1:8000`, `[::1]:8000` or `localhost:8000`.
///
/// Other host names are refused: which addresses they mean is not known before they are resolved, so nobody could say
/// whether the server is about to bind to the loopback interface only.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let expected = || "an address with a port such as 127.0.0.1:8000, [::1]:8000 or localhost:8000".to_owned();
    match text.strip_prefix("localhost:") {
        Some(port) => {
            let port = port.parse().map_err(|_| expected())?;
            Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
        }
        None => text.parse().map_err(|_| expected()),
    }
}

/// Reads a path.
pub(super) fn non_empty(text: &str) -> Result<&str, String> {
    if text.is_empty() { Err("a path".to_owned()) } else { Ok(text) }
}

/// Reads a path or `none`.
pub(super) fn optional_path(text: &str) -> Result<Option<PathBuf>, String> {
    non_empty(text).map(|text| (text != "none").then(|| text.into()))
}

/// Prints what [`optional_path`] reads.
pub(super) fn show_path(path: Option<PathBuf>) -> String {
    path.map_or_else(|| "none".to_owned(), |path| path.display().to_string())
}

/// Reads a URL or `none`.
pub(super) fn optional_url(text: &str) -> Result<Option<String>, String> {
    match text {
        "none" => Ok(None),
        _ if text.contains("://") => Ok(Some(text.to_owned())),
        _ => Err("a URL or none".to_owned()),
    }
}

/// Reads `https://console.example.org`, `*` or `none`.
pub(super) fn origin(text: &str) -> Result<Option<String>, String> {
    let whole = |scheme| text.strip_prefix(scheme).is_some_and(|rest: &str| !rest.is_empty() && !rest.contains('/'));
    match text {
        "none" => Ok(None),
        _ if text == "*" || (text.is_ascii() && (whole("http://") || whole("https://"))) => Ok(Some(text.to_owned())),
        _ => Err("*, none or an origin such as https://console.example.org".to_owned()),
    }
}

/// Reads `arc.example.org,arc`, `*` or `none`.
pub(super) fn hosts(text: &str) -> Result<Vec<String>, String> {
    let expected = || "names of hosts without ports such as arc.example.org,arc, or *, or none".to_owned();
    let is_name =
        |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_".contains(&b)) && !name.is_empty();
    match text {
        "none" => Ok(Vec::new()),
        "*" => Ok(vec!["*".to_owned()]),
        names => {
            let names = names.split(',').map(str::trim);
            names.map(|name| is_name(name).then(|| name.to_owned()).ok_or_else(expected)).collect()
        }
    }
}

/// Reads a whole number, of which 0 is no limit.
pub(super) fn limit(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "a whole number, 0 for no limit".to_owned())
}

/// Prints what [`origin`] and [`optional_url`] read.
pub(super) fn show_optional(value: Option<String>) -> String {
    value.unwrap_or_else(|| "none".to_owned())
}

/// Prints what reads back as it is printed.
pub(super) fn show<T: std::fmt::Display>(value: T) -> String {
    value.to_string()
}

fn split_unit(text: &str) -> (&str, &str) {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    (number, unit.trim_start())
}

/// Reads patterns of names with commas between them, or `none`.
pub(super) fn patterns(text: &str) -> Result<Option<Vec<String>>, String> {
    if text == "none" {
        return Ok(None);
    }
    let types = ColumnTypes::new().string_columns(ColumnTypes::split_patterns(text));
    types.check().map_err(|_| "patterns of names such as attr_*,resource_*, or none".to_owned())?;
    Ok(types.string_columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_with_and_without_unit() {
        for (text, expected) in [
            ("0", Some(0)),
            ("4096", Some(4096)),
            ("64KiB", Some(65536)),
            ("64 MiB", Some(64 << 20)),
            ("1GB", Some(1_000_000_000)),
            ("10B", Some(10)),
            ("", None),
            ("MiB", None),
            ("1.5GiB", None),
            ("-1", None),
            ("10mib", None),
            ("99999999999TiB", None),
        ] {
            assert_eq!(size(text).ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn durations_need_their_unit() {
        for (text, expected) in [
            ("500ms", Some(500)),
            ("10s", Some(10_000)),
            ("5m", Some(300_000)),
            ("1h", Some(3_600_000)),
            ("0s", Some(0)),
            ("0", Some(0)),
            ("10", None),
            ("s", None),
            ("10 years", None),
            ("18446744073709551615d", None),
        ] {
            assert_eq!(duration(text).ok(), expected.map(Duration::from_millis), "{text:?}");
        }
    }

    #[test]
    fn addresses_are_numeric_or_localhost() {
        for (text, ok) in [
            ("127.0.0.1:8000", true),
            ("[::1]:8000", true),
            ("0.0.0.0:0", true),
            ("localhost:8000", true),
            ("localhost", false),
            ("localhost:70000", false),
            ("example.org:8000", false),
            (":8000", false),
        ] {
            assert_eq!(address(text).is_ok(), ok, "{text:?}");
        }
    }

    #[test]
    fn shown_values_read_back() {
        for bytes in [0, 1, 1023, 1024, 65536, 100 << 20, 3 << 30, (1 << 30) + 1] {
            assert_eq!(size(&show_size(bytes)), Ok(bytes));
        }
        for ms in [0, 1, 999, 1000, 1500, 60_000, 86_400_000] {
            let value = Duration::from_millis(ms);
            assert_eq!(duration(&show_duration(value)), Ok(value));
        }
    }
}
