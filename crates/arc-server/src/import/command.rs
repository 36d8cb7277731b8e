//! `arc-server import`: files into a data directory that no server has open, or into a running server.
//!
//! Ends with 0 if every row is stored, 1 if rows were refused or something failed, 2 if it was told something it cannot
//! do. An import that was interrupted is begun again with the same words.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs::File,
    io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use arc_core::{
    Engine, Error, ErrorKind, Precision,
    import::{ImportFile, ImportFormat, ImportOptions, ImportReport, ImportTarget, ImportType, TimeFormat, import},
};
use arc_edge::Credentials;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use serde_json::Value;

use super::{
    dry_run::DryRun,
    remote::Remote,
    row_counts::RowCounts,
    show::{ImportOutcome, Progress, Rejects},
};
use crate::{config::Config, errors::chain, server::open_engine};

const FAILED: u8 = 1;
const CANNOT_RUN: u8 = 2;
const AFTER_HELP: &str = "\
Line protocol (.lp), CSV (.csv, .tsv), Parquet (.parquet) and Arrow (.arrow, .arrows), each also with .gz or .zst behind it,
or alone in a .zip; - is standard input, whose format has to be said. What the types and times of a file were taken for is
printed. An import that was interrupted goes on when it is begun again with the same files and options: what is stored is
passed over, for as long as the store remembers (idempotency_window, 24 h). Files are known by their content, not their name.";

/// Returns the command, for the command line's definition.
pub(crate) fn command() -> Command {
    let files = Arg::new("files").value_name("FILES").num_args(1..).required(true);
    Command::new("import")
        .about("Store files of line protocol, CSV, Parquet or Arrow")
        .after_help(AFTER_HELP)
        .arg(files.value_parser(value_parser!(PathBuf)).help("Files to store, one after the other"))
        .arg(option("database", "NAME", "Database").alias("db").default_value("default"))
        .arg(option("table", "NAME", "Table; of line protocol the one measurement that is taken"))
        .arg(
            option("format", "FORMAT", "lp, csv, parquet or arrow; by the name of the file unless given")
                .value_parser(|text: &str| text.parse::<ImportFormat>()),
        )
        .args(time_arguments())
        .arg(option("exclude", "NAMES", "Columns to leave out, with commas between them").value_delimiter(','))
        .arg(option("tags", "NAMES", "Columns that are tags, with commas between them").value_delimiter(','))
        .args(csv_arguments())
        .arg(
            option("id", "TEXT", "A name for the import: the same file under another one is stored again")
                .default_value(""),
        )
        .arg(option(
            "url",
            "URL",
            "Server to send to, as http://127.0.0.1:8000; without it the data directory is opened",
        ))
        .args(arc_edge::arguments())
        .arg(
            option("rejected", "PATH", "File to list refused rows in, as lines of JSON")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(Arg::new("check").long("check").action(ArgAction::SetTrue).help(
            "Store nothing, and say what an import would: types, times, refused rows, rows that merge in the files",
        ))
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print JSON instead of text"))
}

fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

fn time_arguments() -> [Arg; 3] {
    let unit = "Unit of times that are numbers since 1970: ns, us, ms, s, m or h; ns for lp, else by their size";
    let column = "Column that has the time, or several with commas between them that make it together; time unless given, or \
                  timestamp, datetime, date";
    let format = "Form of times: excel, julian, ordinal, year, or a pattern like %d.%m.%Y %H:%M";
    [
        option("precision", "UNIT", unit).value_parser(|text: &str| text.parse::<Precision>()),
        option("time-column", "NAME", column),
        option("time-format", "FORMAT", format)
            .conflicts_with("precision")
            .value_parser(|text: &str| text.parse::<TimeFormat>()),
    ]
}

fn csv_arguments() -> [Arg; 4] {
    let separator = |text: &str| match text.as_bytes() {
        b"\\t" | b"tab" => Ok(b'\t'),
        [byte] if byte.is_ascii() => Ok(*byte),
        _ => Err("expected one character, or tab"),
    };
    let types = "Type of a column of CSV: float, integer, unsigned, boolean or string";
    let nulls = "What stands for no value in CSV, beside NA, null, - and their like among numbers";
    [
        option("delimiter", "CHAR", "What stands between the values of CSV: by its first line unless given")
            .value_parser(separator),
        option("skip-rows", "N", "Lines before the names of CSV").default_value("0").value_parser(value_parser!(u64)),
        option("type", "NAME=TYPE", types).action(ArgAction::Append).value_parser(column_type),
        option("null", "TEXT", nulls).action(ArgAction::Append),
    ]
}

fn column_type(text: &str) -> Result<(String, ImportType), String> {
    let (name, given) = text.rsplit_once('=').ok_or("expected NAME=TYPE")?;
    Ok((name.to_owned(), given.parse()?))
}

/// Runs the command.
pub(crate) fn run(arguments: &ArgMatches, config: &Config, environment: &[(OsString, OsString)]) -> ExitCode {
    let mut options = options(arguments);
    let is_check = arguments.get_flag("check");
    if !arguments.contains_id("url") || is_check {
        // One write may take a quarter of the memory with its points, which are larger than CSV.
        options.chunk_bytes = options.chunk_bytes.min(config.engine.memory_bytes / 64);
    }
    let target = match arguments.get_one::<String>("url") {
        Some(url) => {
            options.durability = arguments.get_one::<String>("durability").map(|_| config.engine.durability);
            let credentials = Credentials::read(arguments, environment);
            let remote = credentials.and_then(|credentials| Remote::connect(url, &credentials));
            remote.map(|remote| Some(ImportDestination::Server(Box::new(remote))))
        }
        None if is_check && config.object_store.url.is_none() && is_empty(&config.data_dir) => Ok(None),
        // Another process may have it open.
        None if is_check => open_engine(&Config { reader: true, ..config.clone() })
            .map(|engine| Some(ImportDestination::Directory(engine))),
        None => open_engine(config).map(|engine| Some(ImportDestination::Directory(engine))),
    };
    let target = target.and_then(|target| match target {
        Some(target) if !is_check => Ok((target, None)),
        real => {
            options.durability = None;
            let dry_run = DryRun::new(&std::env::temp_dir(), config.engine_options())?;
            match &real {
                Some(ImportDestination::Directory(real)) => dry_run.copy_tables(real, &options)?,
                Some(ImportDestination::Server(real)) => dry_run.copy_table(real, &options)?,
                None => {}
            }
            Ok((ImportDestination::Directory(dry_run.engine.clone()), Some(dry_run)))
        }
    });
    match target {
        Ok((target, _dry_run)) => run_into(&target, arguments, &options),
        Err(error) => fail(exit_code(&error), &error),
    }
}

/// Returns whether an import would make a data directory of a folder.
#[expect(clippy::disallowed_methods, reason = "nothing has the directory open")]
fn is_empty(folder: &Path) -> bool {
    match std::fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Where files go.
enum ImportDestination {
    Directory(Engine),
    Server(Box<Remote>),
}

fn run_into(target: &ImportDestination, arguments: &ArgMatches, options: &ImportOptions) -> ExitCode {
    let rejected = arguments.get_one::<PathBuf>("rejected");
    let mut rejects = match Rejects::create(rejected.map(PathBuf::as_path)) {
        Ok(rejects) => rejects,
        Err(source) => {
            return fail(
                CANNOT_RUN,
                &Error::Io { action: "create", path: rejected.cloned().unwrap_or_default(), source },
            );
        }
    };
    let is_check = arguments.get_flag("check");
    let files = arguments.get_many::<PathBuf>("files").into_iter().flatten();
    let (mut code, mut reports, mut tables) = (0, Vec::new(), BTreeSet::new());
    for path in files {
        match one(target, path, options, is_check, &mut rejects) {
            Ok((report, mut done)) => {
                code = code.max(if done.refused == 0 { 0 } else { FAILED });
                reports.push(report);
                tables.append(&mut done.tables);
            }
            Err(error) => {
                code = code.max(exit_code(&error));
                fail(code, &error);
                // Other files have nothing to do with what is wrong with this one, unless it is the store.
                if !matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::SchemaConflict) && path.is_file() {
                    break;
                }
            }
        }
    }
    if let ImportDestination::Directory(engine) = target
        && let Err(error) = settle(engine, &options.database, &tables)
    {
        fail(FAILED, &error);
        code = code.max(FAILED);
    }
    if let Err(source) = rejects.close() {
        fail(FAILED, &Error::Io { action: "write", path: rejected.cloned().unwrap_or_default(), source });
        code = code.max(FAILED);
    }
    print(&reports, arguments.get_flag("json"));
    ExitCode::from(code)
}

/// A file's report, as text and as JSON.
type Report = (String, Value);

/// Has other programs find by a glob what was imported, and closes the directory.
fn settle(engine: &Engine, database: &str, tables: &BTreeSet<String>) -> Result<(), Error> {
    engine.flush()?;
    tables.iter().try_for_each(|table| engine.unpack_table(database, table).map(drop))?;
    engine.close()
}

/// Imports one file; also returns what came of it.
fn one(
    target: &ImportDestination,
    path: &Path,
    options: &ImportOptions,
    is_check: bool,
    rejects: &mut Rejects,
) -> Result<(Report, ImportReport), Error> {
    let file = open(path)?;
    let name = file.name().to_owned();
    let bytes = file.length();
    let mut progress = Progress::new(&name, bytes, rejects);
    let (target, engine): (&dyn ImportTarget, _) = match target {
        ImportDestination::Directory(engine) => (engine, Some(engine)),
        ImportDestination::Server(remote) => (remote.as_ref(), None),
    };
    let before = engine.and_then(|engine| RowCounts::before(engine, options));
    let done = import(target, file, options, &mut |event| progress.event(event));
    progress.end();
    let lost = progress.failed.take();
    let report = done?;
    if let Some(source) = lost {
        return Err(Error::Io { action: "list the refused rows of", path: path.to_owned(), source });
    }
    let merged = engine.zip(before).and_then(|(engine, before)| before.merged(engine, options, &report));
    let outcome = ImportOutcome { name: &name, report: &report, merged, is_check };
    Ok(((outcome.text(), outcome.as_json()), report))
}

/// Opens a file; what can be read only once, as standard input and pipes, is laid down first.
#[expect(clippy::disallowed_methods, reason = "the file is the caller's, outside of the data directory")]
fn open(path: &Path) -> Result<ImportFile, Error> {
    let failed = |source| Error::Io { action: "read", path: path.to_owned(), source };
    let name = path.display().to_string();
    if name == "-" {
        return ImportFile::of_stream(name, &mut io::stdin().lock()).map_err(failed);
    }
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() && !metadata.is_dir() => {
            ImportFile::of_stream(name, &mut File::open(path).map_err(failed)?).map_err(failed)
        }
        _ => ImportFile::open(path),
    }
}

fn print(reports: &[Report], as_json: bool) {
    let text = match as_json {
        true => Value::from(reports.iter().map(|(_, json)| json.clone()).collect::<Vec<_>>()).to_string(),
        false => reports.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>().join("\n"),
    };
    if !text.is_empty() {
        // Whoever reads may have gone; there is nobody to tell then.
        let _ = std::io::Write::write_fmt(&mut std::io::stdout(), format_args!("{text}\n"));
    }
}

fn options(arguments: &ArgMatches) -> ImportOptions {
    let text = |name: &str| arguments.get_one::<String>(name).cloned();
    let texts = |name: &str| arguments.get_many::<String>(name).into_iter().flatten().cloned().collect();
    let mut options = ImportOptions::new();
    options.database = text("database").unwrap_or_default();
    options.table = text("table");
    options.format = arguments.get_one("format").copied();
    options.precision = arguments.get_one("precision").copied();
    options.time_column = text("time-column");
    options.time_format = arguments.get_one("time-format").cloned();
    options.exclude = texts("exclude");
    options.tags = texts("tags");
    options.delimiter = arguments.get_one("delimiter").copied();
    options.skip_rows = arguments.get_one("skip-rows").copied().unwrap_or_default();
    options.types = arguments.get_many("type").into_iter().flatten().cloned().collect();
    options.nulls = texts("null");
    options.id = text("id");
    options
}

fn exit_code(error: &Error) -> u8 {
    match error {
        Error::InUse { .. }
        | Error::NotADataDirectory { .. }
        | Error::NewerFormat { .. }
        | Error::InvalidOption { .. } => CANNOT_RUN,
        _ => FAILED,
    }
}

fn fail(code: u8, error: &Error) -> ExitCode {
    eprintln!("arc-server: {}", chain(error));
    ExitCode::from(code)
}
