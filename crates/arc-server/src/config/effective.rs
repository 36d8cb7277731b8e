//! `arc-server config`: the settings in force, and where each of them is from, as a file that could be used again.

use std::{ffi::OsString, path::Path};

use super::{
    ConfigError,
    layers::{applied, merged},
    settings::SETTINGS,
};

/// Returns the settings as lines of TOML.
pub(crate) fn describe(
    flags: impl IntoIterator<Item = (&'static str, String)>,
    config: Option<&Path>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<String, ConfigError> {
    let layer = merged(flags, config, environment)?;
    let result = applied(&layer)?;
    let lines = SETTINGS.iter().map(|setting| {
        let value = format!("{} = {}", setting.key, toml(&hidden(&(setting.get)(&result))));
        let origin = layer.get(setting.key).map_or_else(|| "default".to_owned(), |(_, origin)| origin.to_string());
        (value, origin)
    });
    let lines: Vec<(String, String)> = lines.collect();
    let width = lines.iter().map(|(value, _)| value.chars().count().min(48)).max().unwrap_or(0);
    Ok(lines.iter().map(|(value, origin)| format!("{value:width$}  # {origin}\n")).collect())
}

/// Returns a value as it stands in the file: bare where it is a number or a switch.
fn toml(text: &str) -> String {
    if text.parse::<bool>().is_ok() || text.parse::<i64>().is_ok() {
        return text.to_owned();
    }
    toml::Value::String(text.to_owned()).to_string()
}

/// Returns a value without what a URL has before the host: that may be a password.
fn hidden(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let host_ends = rest.find('/').unwrap_or(rest.len());
    match rest.get(..host_ends).and_then(|authority| authority.rfind('@')) {
        Some(at) => format!("{scheme}://…{}", rest.get(at..).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_says_where_it_is_from_and_reads_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("arc.toml");
        std::fs::write(&path, "http = '127.0.0.1:1'\nflush_after = '1s'\n").unwrap();
        let environment = [("ARC_FLUSH_AFTER", "2s"), ("ARC_OBJECT_STORE_ENDPOINT", "https://me:secret@host:9/x")];
        let environment = environment.map(|(name, value)| (name.into(), value.into()));
        let text = describe([("no_auth", "true".to_owned())], Some(&path), environment).unwrap();
        let line = |key: &str| text.lines().find(|line| line.starts_with(&format!("{key} = "))).unwrap();
        for (key, value, origin) in [
            ("http", "\"127.0.0.1:1\"", path.to_str().unwrap()),
            ("flush_after", "\"2s\"", "environment variable ARC_FLUSH_AFTER"),
            ("no_auth", "true", "flag --no-auth"),
            ("max_connections", "10000", "default"),
            ("object_store_endpoint", "\"https://…@host:9/x\"", "environment variable"),
        ] {
            let line = line(key);
            assert!(line.contains(value) && line.contains(origin), "{line}");
        }
        assert!(!text.contains("secret"));
        std::fs::write(&path, &text).unwrap();
        assert_eq!(super::super::load([], Some(&path), []).unwrap().http.port(), 1);
    }
}
