//! Where settings come from: command line, environment, file; and what is wrong with one.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt, fs, io,
    path::{Path, PathBuf},
};

use super::{
    Config,
    cluster::check_cluster,
    setting::Setting,
    settings::{SETTINGS, find},
};

const PREFIX: &str = "ARC_";
const CONFIG_VARIABLE: &str = "ARC_CONFIG";
/// Variables that begin like ours and are read elsewhere: by crash tests, in builds made for them, and by commands that are
/// clients of a server.
const OTHER_VARIABLES: [&str; 2] = ["ARC_CRASH_POINT", "ARC_TOKEN"];

/// Most edits between a name that is not known and one that may have been meant.
const MOST_EDITS: usize = 4;

/// A setting that cannot be used: which one, its value, what was expected, where it came from.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A value that does not fit its setting.
    #[error("{key} = {value:?} from {origin} is not valid: expected {expected}")]
    Value {
        /// The setting.
        key: String,
        /// Its value as given.
        value: String,
        /// What was expected instead.
        expected: String,
        /// The flag, variable or file.
        origin: String,
    },
    /// A key of the file that is no setting.
    #[error("unknown setting {key:?} in {}{}", path.display(), suggest(nearest))]
    UnknownKey {
        /// The key.
        key: String,
        /// The file.
        path: PathBuf,
        /// The setting with the most similar name.
        nearest: Option<String>,
    },
    /// A table of the file, which has none.
    #[error("[{table}] in {}: a configuration file has no tables; write its settings without it", path.display())]
    Table {
        /// Its name.
        table: String,
        /// The file.
        path: PathBuf,
    },
    /// An environment variable that is no setting, and is called much like one.
    #[error("unknown environment variable {name}; did you mean {nearest}?")]
    UnknownVariable {
        /// The variable.
        name: String,
        /// The variable with the most similar name.
        nearest: String,
    },
    /// A file that is not TOML.
    #[error("{} is not a TOML file: {reason}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        reason: String,
    },
    /// A file that cannot be read.
    #[error("cannot read the configuration file {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// An address that other machines can reach, where nobody has to log in.
    #[error(
        "refusing to serve on {address}: other machines can reach it and nobody has to log in. Use a loopback \
         address such as 127.0.0.1:8000, or ask for tokens: leave out --no-auth"
    )]
    Exposed {
        /// The address.
        address: std::net::SocketAddr,
    },
    /// Settings that do not make a node of a cluster.
    #[error("{reason}")]
    Cluster {
        /// What is missing, or one too many.
        reason: &'static str,
    },
}

fn suggest(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

/// Where a value came from.
#[derive(Debug, Clone)]
pub(super) enum Origin {
    Flag(&'static str),
    Variable(String),
    File(PathBuf),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => write!(f, "flag --{name}"),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// Texts by the key of their setting.
pub(super) type Layer = BTreeMap<&'static str, (String, Origin)>;

/// Puts the layers on top of each other: `flags` (keys and texts), then `environment`, then the file that `config`
/// or `ARC_CONFIG` names, then the defaults.
///
/// # Errors
///
/// [`ConfigError`] for the first thing that is wrong, in that order.
pub fn load(
    flags: impl IntoIterator<Item = (&'static str, String)>,
    config: Option<&Path>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Config, ConfigError> {
    let config = applied(&merged(flags, config, environment)?)?;
    check_exposed(&config)?;
    check_cluster(&config)?;
    Ok(config)
}

/// Returns what was given, each setting as the strongest of its sources has it.
pub(super) fn merged(
    flags: impl IntoIterator<Item = (&'static str, String)>,
    config: Option<&Path>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Layer, ConfigError> {
    let flags = flags.into_iter().filter_map(|(key, text)| {
        let setting = find(key)?;
        Some((setting.key, (text, Origin::Flag(setting.flag))))
    });
    let (variables, named) = from_environment(environment)?;
    let path = config.map(Path::to_owned).or(named);
    let mut merged = path.map_or_else(|| Ok(Layer::new()), |path| from_file(&path))?;
    merged.extend(variables);
    merged.extend(flags);
    Ok(merged)
}

/// Puts what was given on top of the defaults.
pub(super) fn applied(layer: &Layer) -> Result<Config, ConfigError> {
    let mut result = Config::default();
    for (key, (text, origin)) in layer {
        let Some(setting) = find(key) else { continue };
        (setting.set)(&mut result, text).map_err(|expected| ConfigError::Value {
            key: (*key).to_owned(),
            value: text.clone(),
            expected,
            origin: origin.to_string(),
        })?;
    }
    Ok(result)
}

/// Refuses an address that other machines can reach where nobody has to log in.
pub(crate) fn check_exposed(config: &Config) -> Result<(), ConfigError> {
    let exposed = [Some(config.http), config.flight].into_iter().flatten().find(|at| !at.ip().is_loopback());
    match exposed.filter(|_| config.no_auth) {
        Some(address) => Err(ConfigError::Exposed { address }),
        None => Ok(()),
    }
}

fn from_environment(
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<(Layer, Option<PathBuf>), ConfigError> {
    let mut layer = Layer::new();
    let mut config = None;
    for (name, value) in environment {
        let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else { continue };
        if name == CONFIG_VARIABLE {
            config = Some(PathBuf::from(value));
        } else if let Some(setting) = SETTINGS.iter().find(|s| s.variable() == name) {
            // Text that is not UTF-8 fits no setting but a path, and there it is refused rather than altered.
            let text = value.into_string().map_err(|value| ConfigError::Value {
                key: setting.key.to_owned(),
                value: value.to_string_lossy().into_owned(),
                expected: "UTF-8".to_owned(),
                origin: Origin::Variable(name.to_owned()).to_string(),
            })?;
            layer.insert(setting.key, (text, Origin::Variable(name.to_owned())));
        } else if !is_known(name) {
            let known = SETTINGS.iter().map(Setting::variable).chain([CONFIG_VARIABLE.to_owned()]);
            // Others may use the prefix: a short name is near to many.
            let most = ((name.len() - PREFIX.len()) / 3).clamp(1, MOST_EDITS);
            if let Some(nearest) = nearest(name, known, most) {
                return Err(ConfigError::UnknownVariable { name: name.to_owned(), nearest });
            }
        }
    }
    Ok((layer, config))
}

/// Returns the variables that begin like ours, are no settings, and are called like none: they do nothing, and somebody may
/// have meant them.
pub(crate) fn unused_variables(environment: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<String> {
    let names = environment.into_iter().filter_map(|(name, _)| name.into_string().ok());
    names.filter(|name| name.starts_with(PREFIX) && !is_known(name)).collect()
}

/// Returns whether a variable is a setting, is read elsewhere, or is one that Kubernetes has in each pod beside a service that is
/// called `arc` or `arc-…`.
fn is_known(name: &str) -> bool {
    let is_setting = name == CONFIG_VARIABLE || SETTINGS.iter().any(|setting| setting.variable() == name);
    is_setting || OTHER_VARIABLES.contains(&name) || is_of_service(name)
}

fn is_of_service(name: &str) -> bool {
    let has_digit = |rest: &str| rest.starts_with(|letter: char| letter.is_ascii_digit());
    name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.ends_with("_PORT")
        || name.split_once("_PORT_").is_some_and(|(_, rest)| has_digit(rest))
}

#[expect(clippy::disallowed_methods, reason = "settings are read before there is an engine")]
fn from_file(path: &Path) -> Result<Layer, ConfigError> {
    let text = fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    let table: toml::Table = text
        .parse()
        .map_err(|e: toml::de::Error| ConfigError::Syntax { path: path.to_owned(), reason: e.to_string() })?;
    let mut layer = Layer::new();
    for (key, value) in table {
        if value.is_table() {
            return Err(ConfigError::Table { table: key, path: path.to_owned() });
        }
        let Some(setting) = find(&key) else {
            let nearest = nearest(&key, SETTINGS.iter().map(|s| s.key.to_owned()), MOST_EDITS);
            return Err(ConfigError::UnknownKey { key, path: path.to_owned(), nearest });
        };
        let text = match value {
            toml::Value::String(text) => text,
            // Numbers and switches need no quotes; arrays and dates fit nothing and are refused by the setting.
            other => other.to_string(),
        };
        layer.insert(setting.key, (text, Origin::File(path.to_owned())));
    }
    Ok(layer)
}

/// Returns the most similar of `known`, if up to `most` edits make it one.
fn nearest(name: &str, known: impl Iterator<Item = String>, most: usize) -> Option<String> {
    known.map(|other| (distance(name, &other), other)).filter(|(d, _)| *d <= most).min().map(|(_, other)| other)
}

/// Counts how many characters have to change, come or go to make `b` out of `a`.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(b.chars()) {
            let replaced = diagonal + usize::from(x != y);
            diagonal = *cell;
            *cell = replaced.min(left + 1).min(diagonal + 1);
            left = *cell;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits() {
        for (a, b, expected) in
            [("", "", 0), ("a", "", 1), ("http", "htp", 1), ("kitten", "sitting", 3), ("ab", "ba", 2)]
        {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn variables_of_a_service_are_none_of_ours() {
        for name in [
            "ARC_SERVICE_HOST",
            "ARC_SERVICE_PORT",
            "ARC_SERVICE_PORT_HTTP",
            "ARC_PORT",
            "ARC_PORT_8000_TCP",
            "ARC_PORT_8000_TCP_PORT",
            "ARC_PORT_8000_TCP_ADDR",
            "ARC_HTTP_PORT",
            "ARC_HTTP_PORT_8000_TCP_PROTO",
        ] {
            assert!(is_of_service(name), "{name}");
        }
        for name in ["ARC_HTPP", "ARC_PORTS", "ARC_SERVICE"] {
            assert!(!is_of_service(name), "{name}");
        }
        assert!(SETTINGS.iter().all(|setting| !is_of_service(&setting.variable())));
    }

    #[test]
    fn nearest_is_silent_when_nothing_is_near() {
        assert_eq!(nearest("ARC_HTPP", ["ARC_HTTP".to_owned()].into_iter(), 1), Some("ARC_HTTP".to_owned()));
        assert_eq!(nearest("ARC_HOME", ["ARC_HTTP".to_owned()].into_iter(), 1), None);
        assert_eq!(nearest("zzzzzzzzzz", ["http".to_owned()].into_iter(), MOST_EDITS), None);
    }
}
