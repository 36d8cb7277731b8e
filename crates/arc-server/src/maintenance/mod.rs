//! Commands for a data directory that no server has open: `verify`, `repair`, `backup`, `restore`, `unpack`; and `branch`, for
//! one that may be open, too.
//!
//! Each calls one function of the engine and prints what it says, as text or as JSON. Ends with 0 if all is well, 1 if
//! something is damaged or went wrong, 2 if the command cannot be run as it was given.

mod json;

use std::{fmt::Display, io::Write, path::Path, path::PathBuf, process::ExitCode, time::Duration};

use arc_core::{
    BackupReport, BranchReport, CompactionReport, Engine, Error, PastMoment, RestoreReport, store::ObjectStorage,
    time_of_text,
};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use serde_json::Value;

use crate::{
    config::{Config, Taker, arguments},
    errors::chain,
    kept,
    server::open_engine,
};

const FAILED: u8 = 1;
const CANNOT_RUN: u8 = 2;

/// Returns the commands, for the command line's definition.
pub(crate) fn commands() -> [Command; 6] {
    let json = Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print JSON instead of text");
    let folder = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("PATH").value_parser(value_parser!(PathBuf)).required(true).help(help)
    };
    [
        Command::new("verify")
            .about("Check a data directory that no server has open, and change nothing")
            .after_help("Ends with 0 if it is clean, 1 if anything is damaged, 2 if it cannot be checked.")
            .arg(json.clone())
            .args(arguments(Taker::Directory)),
        Command::new("repair")
            .about("Say what it takes to mend a data directory that no server has open, and what is given up by it")
            .after_help(
                "Changes nothing without --apply. Ends with 0 if all is well, 1 if something is or stays damaged, \
                 2 if it cannot be checked.",
            )
            .arg(Arg::new("apply").long("apply").action(ArgAction::SetTrue).help("Do it, and verify what came of it"))
            .arg(json.clone())
            .args(arguments(Taker::Directory)),
        Command::new("backup")
            .about("Copy a data directory that no server has open; see --backup-dir for one that is")
            .arg(folder("to", "Folder of the backup: absent, empty, or an earlier backup to bring up to date"))
            .arg(json.clone())
            .args(arguments(Taker::Engine)),
        Command::new("restore")
            .about("Copy a backup to a data directory that is absent or empty, checking every byte")
            .arg(folder("from", "Folder of the backup"))
            .arg(json.clone())
            .args(arguments(Taker::Directory)),
        branch_command()
            .arg(folder("to", "Folder of the branch, or a place such as s3://bucket/prefix: absent or empty"))
            .arg(json.clone()),
        Command::new("unpack")
            .about("Give all small tables Parquet files of their own in a data directory that no server has open")
            .after_help("Rows of many small tables share a file, a pack, in which other programs do not look.")
            .arg(json)
            .args(arguments(Taker::Engine)),
    ]
}

fn branch_command() -> Command {
    let time = |text: &str| time_of_text(text).ok_or("expected a time such as 2026-01-31T12:00:00Z");
    Command::new("branch")
        .about("Make a data directory that begins as another one is now, or was, and goes its own way")
        .after_help(
            "The other one may be in use: it is only read. Data files are shared by hard links where both are on one file \
             system, copied by the object store where both are in one bucket, and copied by this command otherwise.",
        )
        .arg(
            Arg::new("at")
                .long("at")
                .value_name("TIME")
                .value_parser(time)
                .conflicts_with("snapshot")
                .help("Begin as it was at this time, within its history"),
        )
        .arg(Arg::new("snapshot").long("snapshot").value_name("NAME").help("Begin as this snapshot has it"))
        .args(arguments(Taker::Directory))
}

/// Runs the command `name` if it is one of these.
pub(crate) fn run(name: &str, arguments: &ArgMatches, config: &Config) -> Option<ExitCode> {
    let as_json = || arguments.get_flag("json");
    let folder = |name: &str| arguments.get_one::<PathBuf>(name).cloned().unwrap_or_default();
    let path = config.data_dir.as_path();
    Some(match name {
        "verify" => verify(config, as_json()),
        "repair" => repair(path, arguments.get_flag("apply"), as_json()),
        "backup" => {
            let to = folder("to");
            let done = backup(&to, config).and_then(|report| kept::copy_all(path, &to).map(|()| report));
            finish(done, as_json(), json::backup, |report| backup_text(report, &to))
        }
        "branch" => {
            let to = folder("to");
            let done = branch(&to, arguments, config).and_then(|report| take_kept(path, &to).map(|()| report));
            finish(done, as_json(), json::branch, |report| branch_text(report, &to))
        }
        "restore" => {
            let from = folder("from");
            let done = arc_core::restore(&from, path).and_then(|report| kept::copy_all(&from, path).map(|()| report));
            finish(done, as_json(), json::restore, |report| restore_text(report, path))
        }
        "unpack" => finish(unpack(config), as_json(), json::unpack, |report| {
            format!("{}: {} data files have files of their own now", path.display(), report.moved_files)
        }),
        _ => return None,
    })
}

fn verify(config: &Config, as_json: bool) -> ExitCode {
    let path = config.data_dir.as_path();
    let verified = config.object_store.open().and_then(|storage| match storage {
        Some(storage) => arc_core::verify_in_store(path, storage),
        None => arc_core::verify(path),
    });
    match verified {
        Ok(report) => {
            if as_json {
                print(&json::verify(&report));
            } else {
                print(&report);
                if !report.is_clean() && config.object_store.url.is_none() {
                    print(&format!("What can be done about it: arc-server repair --data-dir {}", path.display()));
                }
            }
            ExitCode::from(if report.is_clean() { 0 } else { FAILED })
        }
        Err(error) => fail(CANNOT_RUN, &error),
    }
}

fn repair(path: &Path, apply: bool, as_json: bool) -> ExitCode {
    let plan = match arc_core::plan_repair(path) {
        Ok(plan) => plan,
        Err(error) => return fail(CANNOT_RUN, &error),
    };
    let report = if apply && !plan.is_empty() { Some(arc_core::repair(path, &plan)) } else { None };
    let report = match report.transpose() {
        Ok(report) => report,
        Err(error) => return fail(exit_code(&error), &error),
    };
    if as_json {
        print(&json::repair(&plan, report.as_ref()));
    } else {
        print(&plan);
        match &report {
            Some(report) => print(&format!("Done.\n{report}")),
            None if plan.is_empty() => {}
            None => print(&format!(
                "Nothing was changed. To do it: arc-server repair --apply --data-dir {}",
                path.display()
            )),
        }
    }
    let is_well = report.map_or(plan.is_empty(), |report| report.is_clean()) && plan.hopeless.is_empty();
    ExitCode::from(if is_well { 0 } else { FAILED })
}

/// Opens the directory as a server would, which replays its log, and copies it.
fn backup(to: &Path, config: &Config) -> Result<BackupReport, Error> {
    let engine = open_existing(config)?;
    let report = engine.backup(to)?;
    engine.close()?;
    Ok(report)
}

/// Reads the directory, whoever writes to it meanwhile.
fn branch(to: &Path, arguments: &ArgMatches, config: &Config) -> Result<BranchReport, Error> {
    let named = arguments.get_one::<String>("snapshot").map(|name| PastMoment::Snapshot(name.clone()));
    let moment = named.or_else(|| arguments.get_one::<i64>("at").map(|time_ns| PastMoment::Time(*time_ns)));
    // Before anything is opened, so that a word that is wrong is all that is said.
    let bucket = address(to).map(|url| ObjectStorage::from_url(url, config.object_store.endpoint.as_deref()));
    let bucket = bucket.transpose().map_err(|error| match error {
        Error::InvalidOption { reason, .. } => Error::BadTarget { path: to.to_owned(), reason },
        other => other,
    })?;
    let builder = Engine::builder(&config.data_dir).options(config.engine_options());
    let builder = match config.object_store.open()? {
        Some(storage) => builder.object_store(storage),
        None => builder,
    };
    let engine = builder.open_reader()?;
    match (bucket, moment) {
        (Some(bucket), moment) => engine.branch_in_store(bucket, moment.as_ref()),
        (None, Some(moment)) => engine.branch_at(to, &moment),
        (None, None) => engine.branch(to),
    }
}

/// Returns a target that is no folder.
fn address(to: &Path) -> Option<&str> {
    to.to_str().filter(|to| to.contains("://"))
}

/// Takes along what the server keeps beside the engine's files; says what cannot be, for a bucket has none of it.
fn take_kept(from: &Path, to: &Path) -> Result<(), Error> {
    if address(to).is_none() {
        return kept::copy_all(from, to);
    }
    for name in kept::found(from) {
        eprintln!("arc-server: {name} stays behind: copy it to the data directory that opens the branch");
    }
    Ok(())
}

/// Opens the directory as a server would that packs nothing and merges nothing, and has nobody who reads what is replaced.
fn unpack(config: &Config) -> Result<CompactionReport, Error> {
    let mut config = config.clone();
    config.engine.compaction = false;
    (config.engine.pack_bytes, config.engine.compaction_grace) = (0, Duration::ZERO);
    let engine = open_existing(&config)?;
    engine.flush()?;
    let report = engine.unpack()?;
    engine.close()?;
    Ok(report)
}

fn open_existing(config: &Config) -> Result<Engine, Error> {
    let path = config.data_dir.as_path();
    if !arc_core::is_data_directory(path) {
        let reason = "it has no marker".to_owned();
        return Err(Error::NotADataDirectory { path: path.into(), reason });
    }
    open_engine(config)
}

fn finish<R>(
    done: Result<R, Error>,
    as_json: bool,
    json: impl FnOnce(&R) -> Value,
    text: impl FnOnce(&R) -> String,
) -> ExitCode {
    match done {
        Ok(report) if as_json => print(&json(&report)),
        Ok(report) => print(&text(&report)),
        Err(error) => return fail(exit_code(&error), &error),
    }
    ExitCode::SUCCESS
}

/// Whether the command was given something it cannot work on, or something is wrong with what it works on.
fn exit_code(error: &Error) -> u8 {
    match error {
        Error::InUse { .. }
        | Error::NotADataDirectory { .. }
        | Error::NewerFormat { .. }
        | Error::OtherStore { .. }
        | Error::BadTarget { .. }
        | Error::OutsideHistory { .. }
        | Error::SnapshotNotFound { .. }
        | Error::InvalidOption { .. } => CANNOT_RUN,
        _ => FAILED,
    }
}

fn backup_text(report: &BackupReport, to: &Path) -> String {
    let BackupReport { files, rows, bytes, kept_files, linked_files, copied_files, removed_files, log_bytes, .. } =
        report;
    format!(
        "{}: {files} data files with {rows} rows in {bytes} bytes: {kept_files} were there, {linked_files} linked, \
         {copied_files} copied, {removed_files} old ones removed; {log_bytes} bytes of the log",
        to.display()
    )
}

fn branch_text(report: &BranchReport, to: &Path) -> String {
    let BranchReport { number, files, rows, bytes, linked_files, copied_files, store_copied_files, frames, .. } =
        report;
    let begins = format!(
        "{}: begins as commit {number}, with {files} data files with {rows} rows in {bytes} bytes",
        to.display()
    );
    if let Some(url) = address(to) {
        return format!(
            "{begins}: {store_copied_files} copied by the object store, {copied_files} by this command. \
             To go on from there: arc-server --data-dir NEW_FOLDER --object-store-url {url}"
        );
    }
    let copied = if *copied_files > 0 { ", for no link to them can be made there" } else { "" };
    format!("{begins}: {linked_files} linked, {copied_files} copied{copied}; {frames} frames of the log")
}

fn restore_text(report: &RestoreReport, to: &Path) -> String {
    let RestoreReport { files, rows, bytes, frames, .. } = report;
    format!("{}: {files} data files with {rows} rows in {bytes} bytes, {frames} frames of the log", to.display())
}

fn print(text: &dyn Display) {
    // Whoever reads may have gone; there is nobody to tell then.
    let _ = writeln!(std::io::stdout(), "{text}");
}

fn fail(code: u8, error: &Error) -> ExitCode {
    eprintln!("arc-server: {}", chain(error));
    ExitCode::from(code)
}
