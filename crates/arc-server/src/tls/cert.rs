//! `arc-server cert`: a certificate that vouches for itself, for machines among which no authority is needed.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{SystemTime, UNIX_EPOCH},
};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::pki_types::ServerName;

use super::TlsError;
use crate::{auth, errors::chain, timestamp};

/// Names that it is for in any case.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
const DAY_SECONDS: u64 = 86_400;

/// Returns the command, for the command line's definition.
pub(crate) fn command() -> Command {
    Command::new("cert")
        .about("Make a certificate that vouches for itself, and its key")
        .after_help("Clients take it for their own with --ca-file cert.pem, and verify=cert.pem or the like elsewhere.")
        .arg(
            Arg::new("name")
                .long("name")
                .value_name("NAMES")
                .value_delimiter(',')
                .action(ArgAction::Append)
                .help("Names and addresses that the server is called by, beside localhost and the machine's own name"),
        )
        .arg(
            Arg::new("to")
                .long("to")
                .value_name("FOLDER")
                .value_parser(value_parser!(PathBuf))
                .default_value(".")
                .help("Folder for cert.pem and key.pem"),
        )
        .arg(
            Arg::new("days")
                .long("days")
                .value_name("N")
                .value_parser(value_parser!(u64).range(1..=3_650))
                .default_value("730")
                .help("Days that it is valid"),
        )
        .arg(Arg::new("force").long("force").action(ArgAction::SetTrue).help("Replace files that are there"))
}

/// Runs the command.
pub(crate) fn run(arguments: &ArgMatches) -> ExitCode {
    match make(arguments) {
        Ok(text) => {
            // Whoever reads may have gone; there is nobody to tell then.
            let _ = writeln!(std::io::stdout(), "{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("arc-server: {}", chain(&error));
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a command that makes files")]
fn make(arguments: &ArgMatches) -> Result<String, TlsError> {
    let folder = arguments.get_one::<PathBuf>("to").map_or(Path::new("."), PathBuf::as_path);
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    if !arguments.get_flag("force") {
        for path in [&cert, &key] {
            if path.exists() {
                let source = std::io::ErrorKind::AlreadyExists.into();
                return Err(TlsError::Io { action: "create (--force replaces it)", path: path.clone(), source });
            }
        }
    }
    let asked = arguments.get_many::<String>("name").into_iter().flatten().cloned();
    for name in asked.clone() {
        check_name(&name)?;
    }
    let mut names: Vec<String> = asked.chain(LOCAL.map(str::to_owned)).chain(sysinfo::System::host_name()).collect();
    names.sort();
    names.dedup();
    let days = arguments.get_one::<u64>("days").copied().unwrap_or(730);
    let (chain, private) = generate(&names, days)?;
    let failed = |path: &Path, source| TlsError::Io { action: "create", path: path.into(), source };
    std::fs::create_dir_all(folder).map_err(|source| failed(folder, source))?;
    auth::write_private(&key, private.as_bytes()).map_err(|error| TlsError::Make(crate::errors::chain(&error)))?;
    std::fs::write(&cert, chain).map_err(|source| failed(&cert, source))?;
    Ok(format!(
        "{} and {} are for {}, for {days} days\narc-server --tls-cert {} --tls-key {}",
        cert.display(),
        key.display(),
        names.join(", "),
        cert.display(),
        key.display()
    ))
}

/// Refuses what no client could call a server by.
fn check_name(name: &str) -> Result<(), TlsError> {
    match ServerName::try_from(name.strip_prefix("*.").unwrap_or(name)) {
        Ok(_) => Ok(()),
        Err(_) => Err(TlsError::Make(format!("--name {name:?}: expected a name of a host, or an address"))),
    }
}

/// Makes a certificate for these names, and its key, in PEM.
pub(super) fn generate(names: &[String], days: u64) -> Result<(String, String), TlsError> {
    let failed = |error: rcgen::Error| TlsError::Make(error.to_string());
    let mut params = CertificateParams::new(names.to_vec()).map_err(failed)?;
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, "Arc");
    params.distinguished_name = subject;
    // A day's grace for clocks that are behind.
    let ((year, month, day), (until, in_month, on)) = (date(-1), date(i64::try_from(days).unwrap_or(i64::MAX)));
    params.not_before = rcgen::date_time_ymd(year, month, day);
    params.not_after = rcgen::date_time_ymd(until, in_month, on);
    let key = KeyPair::generate().map_err(failed)?;
    let cert = params.self_signed(&key).map_err(failed)?;
    Ok((cert.pem(), key.serialize_pem()))
}

/// Returns year, month and day, so many days from today.
#[expect(clippy::disallowed_methods, reason = "certificates are valid by the clock on the wall")]
fn date(from_now: i64) -> (i32, u8, u8) {
    let today = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / DAY_SECONDS;
    let day = i64::try_from(today).unwrap_or_default().saturating_add(from_now);
    let text = timestamp::format(day.saturating_mul(86_400_000_000_000));
    let mut parts = text.get(..10).unwrap_or_default().split('-');
    let year = parts.next().and_then(|year| year.parse().ok()).unwrap_or(2000);
    let mut next = || parts.next().and_then(|part| part.parse().ok()).unwrap_or(1);
    (year, next(), next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_hosts_and_addresses() {
        for name in ["db1", "db.example.org", "*.example.org", "10.0.0.1", "fe80::1"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", "bad name!", "https://db1", "db1:8000", "*", "a..b"] {
            let told = check_name(name).unwrap_err().to_string();
            assert!(told.contains(&format!("{name:?}")) && told.contains("expected"), "{told}");
        }
    }

    #[test]
    fn a_certificate_is_valid_from_yesterday_on() {
        let ((year, month, day), (later, ..)) = (date(-1), date(3_650));
        assert!(year >= 2025 && (1..=12).contains(&month) && (1..=31).contains(&day));
        assert!((year + 9..=year + 11).contains(&later));
        let (cert, key) = generate(&["localhost".to_owned(), "10.0.0.1".to_owned()], 30).unwrap();
        assert!(cert.starts_with("-----BEGIN CERTIFICATE-----") && key.contains("PRIVATE KEY"));
    }
}
