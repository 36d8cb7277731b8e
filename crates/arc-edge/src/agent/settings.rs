//! What the program is told, by flags and the environment.

use std::{ffi::OsString, net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

use clap::{Arg, ArgMatches, Command, value_parser};

use super::CANNOT_RUN;
use crate::{Credentials, arguments, chain};

/// The least memory that an engine works with.
const MIN_MEMORY: u64 = 16 << 20;

#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) data_dir: PathBuf,
    pub(super) http: SocketAddr,
    pub(super) push: Option<PushSettings>,
    /// How long rows stay that were handed over.
    pub(super) keep: Option<Duration>,
    pub(super) memory_bytes: usize,
}

/// Where rows go, and when.
#[derive(Debug, Clone)]
pub(super) struct PushSettings {
    pub(super) url: String,
    pub(super) credentials: Credentials,
    pub(super) every: Duration,
    pub(super) bytes_per_second: Option<u64>,
}

fn command() -> Command {
    let flag = |name: &'static str, value: &'static str| Arg::new(name).long(name).value_name(value);
    let time = |name| flag(name, "TIME").value_parser(duration);
    let bytes = |name| flag(name, "SIZE").value_parser(size);
    Command::new("arc-edge")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Take line protocol over HTTP, keep it on disk, and push it to an arc-server whenever there is a line to it")
        .after_help(
            "Writes go to POST /write, /api/v2/write or /api/v1/write/line-protocol, as Telegraf and the InfluxDB clients send \
             them, and are on disk when they are answered. GET /health says what was pushed when.",
        )
        .arg(flag("data-dir", "PATH").required(true).value_parser(value_parser!(PathBuf)).help("Where rows are kept"))
        .arg(
            flag("http", "ADDRESS")
                .default_value("127.0.0.1:8086")
                .value_parser(value_parser!(SocketAddr))
                .help("Where writes come in; an address of this machine alone, as nobody has to log in"),
        )
        .arg(flag("to", "URL").help("Server that rows go to, as https://HOST:PORT; nothing is pushed without"))
        .arg(time("every").default_value("1m").help("How often rows are pushed, like 30s"))
        .arg(bytes("bytes-per-second").help("Push no faster than this, like 256KiB"))
        .arg(time("keep").help("Remove rows that are older than this, like 30d, once the server has them; they stay without"))
        .arg(bytes("memory").default_value("16MiB").help("Memory that rows may take before they are in files"))
        .args(arguments())
}

/// Reads the settings; what is wrong with them is printed, and the status to end with returned.
pub(super) fn read(
    given: impl IntoIterator<Item = OsString>,
    environment: &[(OsString, OsString)],
) -> Result<Settings, ExitCode> {
    let matches = command().try_get_matches_from(given).map_err(|told| {
        // There is nobody to tell if that fails.
        let _ = told.print();
        if told.use_stderr() { ExitCode::from(CANNOT_RUN) } else { ExitCode::SUCCESS }
    })?;
    settings(&matches, environment).map_err(|reason| {
        eprintln!("arc-edge: {reason}");
        ExitCode::from(CANNOT_RUN)
    })
}

fn settings(matches: &ArgMatches, environment: &[(OsString, OsString)]) -> Result<Settings, String> {
    let time = |name: &str| matches.get_one::<Duration>(name).copied();
    let http = *matches.get_one::<SocketAddr>("http").ok_or("--http is missing")?;
    if !http.ip().is_loopback() {
        return Err(format!("--http is {http}; expected an address of this machine alone, such as 127.0.0.1:8086"));
    }
    let push = match matches.get_one::<String>("to") {
        Some(url) if !url.starts_with("https://") && !url.starts_with("http://") => {
            return Err(format!("--to is {url:?}; expected https://HOST:PORT or http://HOST:PORT"));
        }
        Some(url) => Some(PushSettings {
            url: url.clone(),
            credentials: Credentials::read(matches, environment).map_err(|error| chain(&error))?,
            every: time("every").unwrap_or(Duration::from_secs(60)),
            bytes_per_second: matches.get_one::<u64>("bytes-per-second").copied(),
        }),
        None => None,
    };
    if time("keep").is_some() && push.is_none() {
        return Err("--keep removes rows that were pushed, and nothing is without --to".to_owned());
    }
    let memory = matches.get_one::<u64>("memory").copied().unwrap_or(MIN_MEMORY);
    if memory < MIN_MEMORY {
        return Err(format!("--memory is {memory} bytes; at least 16MiB was expected"));
    }
    Ok(Settings {
        data_dir: matches.get_one::<PathBuf>("data-dir").cloned().unwrap_or_default(),
        http,
        push,
        keep: time("keep"),
        memory_bytes: usize::try_from(memory).map_err(|_| "--memory is more than there can be")?,
    })
}

/// Splits a number from its unit.
fn parts(text: &str) -> Option<(u64, &str)> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    Some((number.parse().ok()?, unit.trim()))
}

/// Reads a length of time: a whole number and `s`, `m`, `h` or `d`.
fn duration(text: &str) -> Result<Duration, String> {
    let seconds = parts(text).and_then(|(number, unit)| {
        let unit = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            "d" => 86_400,
            _ => return None,
        };
        number.checked_mul(unit)
    });
    let seconds = seconds.filter(|seconds| (1..=1 << 32).contains(seconds));
    seconds.map(Duration::from_secs).ok_or_else(|| "expected a length of time such as 30s, 5m, 12h or 7d".to_owned())
}

/// Reads a size: a whole number and nothing, `KiB`, `MiB` or `GiB`.
fn size(text: &str) -> Result<u64, String> {
    let bytes = parts(text).and_then(|(number, unit)| {
        let unit = match unit {
            "" => 1,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            _ => return None,
        };
        number.checked_mul(unit)
    });
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| "expected a size such as 256KiB or 64MiB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(flags: &str) -> Result<Settings, String> {
        let matches = command().try_get_matches_from(["arc-edge"].into_iter().chain(flags.split(' ')));
        settings(&matches.map_err(|error| error.to_string())?, &[("ARC_TOKEN".into(), "t".into())])
    }

    #[test]
    fn what_is_right_is_read() {
        let settings =
            given("--data-dir /d --to https://c:1 --every 30s --keep 7d --memory 32MiB --bytes-per-second 1KiB");
        let Settings { data_dir, http, push, keep, memory_bytes } = settings.unwrap();
        assert_eq!((data_dir, http.to_string(), memory_bytes), ("/d".into(), "127.0.0.1:8086".to_owned(), 32 << 20));
        assert_eq!(keep, Some(Duration::from_secs(7 * 86_400)));
        let push = push.unwrap();
        assert_eq!((push.every, push.bytes_per_second), (Duration::from_secs(30), Some(1024)));
        assert!(given("--data-dir /d").unwrap().push.is_none());
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (flags, expected) in [
            ("--http 127.0.0.1:0", "--data-dir"),
            ("--data-dir /d --http 0.0.0.0:8086", "this machine alone"),
            ("--data-dir /d --http here", "invalid value 'here'"),
            ("--data-dir /d --to s3://bucket", "expected https://HOST:PORT"),
            ("--data-dir /d --keep 7d", "nothing is without --to"),
            ("--data-dir /d --memory 1MiB", "at least 16MiB"),
            ("--data-dir /d --memory 0", "expected a size"),
            ("--data-dir /d --memory 99999999999GiB", "expected a size"),
            ("--data-dir /d --every 0s", "expected a length of time"),
            ("--data-dir /d --every 5", "expected a length of time"),
            ("--data-dir /d --every 99999999999999d", "expected a length of time"),
            ("--data-dir /d --to http://c:1 --token-file /nowhere/t", "/nowhere/t"),
        ] {
            let said = given(flags).unwrap_err();
            assert!(said.contains(expected), "{flags}: {said}");
        }
    }
}
