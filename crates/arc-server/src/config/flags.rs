//! Settings as flags: which of them a command shows, and in which order.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches};

use super::{
    Config,
    setting::Setting,
    settings::{SETTINGS, find},
};

/// Settings under the heads of the help, those that most people change first.
pub(super) const GROUPS: [(&str, &[&str]); 11] = [
    ("Where", &["data_dir", "reader", "http", "flight"]),
    ("Who may come in", &["no_auth", "public_metrics", "cors_origin", "allowed_hosts", "sandbox"]),
    ("Encryption", &["tls_cert", "tls_key", "tls_client_ca"]),
    (
        "What becomes of writes",
        &["durability", "string_columns", "on_conflict", "idempotency_keys", "idempotency_window"],
    ),
    ("Memory", &["memory", "max_resident", "query_memory_bytes", "flush_bytes", "max_buffer_bytes"]),
    (
        "Requests",
        &[
            "max_concurrent_queries",
            "query_timeout",
            "max_query_rows",
            "slow_query",
            "max_body_bytes",
            "max_decompressed_bytes",
            "max_import_bytes",
            "max_connections",
            "read_timeout",
            "send_timeout",
            "write_timeout",
            "max_databases",
            "max_tables",
        ],
    ),
    ("Deletes and backups", &["delete_enabled", "delete_confirmation_threshold", "delete_max_rows", "backup_dir"]),
    (
        "Files",
        &[
            "flush_after",
            "flush_wal_bytes",
            "pack_bytes",
            "time_unit",
            "finer_times",
            "wal_segment_bytes",
            "compaction",
            "compaction_quiet",
            "compaction_grace",
            "history",
            "history_log_bytes",
        ],
    ),
    ("Object store", &["object_store_url", "object_store_endpoint", "object_store_take_over", "remote_interval"]),
    ("Several servers", &["role", "node_name", "peer", "cluster_token_file", "takeover_after"]),
    ("Log and stop", &["log_level", "log_format", "shutdown_timeout"]),
];

/// Where the data are: all that most commands without a server need.
const PLACE: [&str; 3] = ["data_dir", "object_store_url", "object_store_endpoint"];
/// Who takes settings: all of them, so that one set of words does for a server and what is done to its directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taker {
    /// A server: shows all.
    Server,
    /// The tour, which is a server: shows where it is.
    Tour,
    /// A command that prints settings: shows none.
    Viewer,
    /// A command that opens the engine: shows where the data are.
    Engine,
    /// A command that reads a data directory.
    Directory,
}

impl Taker {
    fn shows(self, key: &str) -> bool {
        match self {
            Self::Server => true,
            Self::Tour => ["data_dir", "http"].contains(&key),
            Self::Viewer => false,
            Self::Engine => PLACE.contains(&key) || key == "durability",
            Self::Directory => PLACE.contains(&key),
        }
    }
}

/// Returns the flags of a command.
pub(crate) fn arguments(taker: Taker) -> Vec<Arg> {
    let default = Config::default();
    let config = Arg::new("config")
        .long("config")
        .value_name("FILE")
        .value_parser(clap::value_parser!(PathBuf))
        .help("TOML file with settings, each under its flag's name with _ for - [env: ARC_CONFIG]");
    let config = if taker == Taker::Server { config.help_heading(GROUPS[0].0) } else { config };
    let settings = GROUPS.iter().flat_map(|(group, keys)| keys.iter().map(move |key| (*group, *key)));
    let flags = settings.filter_map(|(group, key)| {
        let flag = argument(find(key)?, &default).hide(!taker.shows(key));
        Some(if taker == Taker::Server { flag.help_heading(group) } else { flag })
    });
    std::iter::once(config).chain(flags).collect()
}

fn argument(setting: &'static Setting, default: &Config) -> Arg {
    // What may be given more than once is a list, and read as one.
    let action = if setting.key == "peer" { ArgAction::Append } else { ArgAction::Set };
    let arg = Arg::new(setting.key).long(setting.flag).action(action);
    let shown = (setting.get)(default);
    let help = format!("{} [default: {shown}] [env: {}]", setting.help, setting.variable());
    let arg = arg.help(help).value_name(setting.value);
    if setting.value.is_empty() {
        arg.value_name("BOOL").num_args(0..=1).require_equals(true).default_missing_value("true")
    } else {
        arg
    }
}

/// Settings that the command line gave, and the file that it named.
pub(crate) type Given = (Vec<(&'static str, String)>, Option<PathBuf>);

/// Returns the settings that the command line gave, before or after the name of its command.
pub(crate) fn given(matches: &ArgMatches) -> Given {
    let of = |matches: &ArgMatches| -> Given {
        // A command has not all of them.
        let text = |key: &str| {
            let given = matches.try_get_many::<String>(key).ok().flatten()?;
            Some(given.map(String::as_str).collect::<Vec<_>>().join(","))
        };
        let flags = SETTINGS.iter().filter_map(|setting| Some((setting.key, text(setting.key)?))).collect();
        (flags, matches.try_get_one::<PathBuf>("config").ok().flatten().cloned())
    };
    let (mut flags, mut file) = of(matches);
    let mut command = matches.subcommand();
    while let Some((_, matches)) = command {
        let (later, named) = of(matches);
        flags.extend(later);
        file = named.or(file);
        command = matches.subcommand();
    }
    (flags, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_under_one_head() {
        for setting in SETTINGS {
            let heads = GROUPS.iter().filter(|(_, keys)| keys.contains(&setting.key)).count();
            assert_eq!(heads, 1, "{}", setting.key);
        }
        assert_eq!(GROUPS.iter().map(|(_, keys)| keys.len()).sum::<usize>(), SETTINGS.len());
    }

    #[test]
    fn a_command_shows_its_own() {
        let shown = |taker| arguments(taker).iter().filter(|arg| !arg.is_hide_set()).count();
        assert_eq!(shown(Taker::Server), SETTINGS.len() + 1);
        assert_eq!([shown(Taker::Tour), shown(Taker::Engine), shown(Taker::Directory)], [3, 5, 4]);
        assert!(arguments(Taker::Engine).iter().any(|arg| arg.get_id() == "memory"), "taken, if not shown");
    }
}
