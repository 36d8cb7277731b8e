//! `arc-server sql`: one statement over a data directory, whether or not a server has it.
//!
//! Opens the directory to read, as any number of others may, and changes nothing in it. Ends with 0 if all rows are printed, 1
//! if something failed, 2 if it cannot be run as it was given.

use std::{
    io::{self, Read as _, Write as _},
    process::ExitCode,
};

use arc_core::{Engine, Error, Statement};
use clap::{Arg, ArgMatches, Command};
use futures::StreamExt;

use super::{
    cells::TimeForm,
    csv::Csv,
    encode::Encoder,
    lines::{Around, Nulls, Objects},
    table::Table,
};
use crate::{
    config::Config,
    errors::{Failure, chain},
};

const FAILED: u8 = 1;
const CANNOT_RUN: u8 = 2;

/// Returns the command, for the command line's definition.
pub(crate) fn command() -> Command {
    let option = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    Command::new("sql")
        .about("Ask a data directory, also while a server writes it")
        .after_help("Sees all that is acknowledged, in data files or not. Changes nothing.")
        .arg(
            Arg::new("statement")
                .value_name("SQL")
                .required(true)
                .help("The statement; - reads it from the standard input"),
        )
        .arg(option("database", "NAME", "Database of names that have none").alias("db").default_value("default"))
        .arg(
            option("format", "FORMAT", "table, csv or ndjson")
                .default_value("table")
                .value_parser(["table", "csv", "ndjson"]),
        )
}

/// Runs the command.
pub(crate) fn run(arguments: &ArgMatches, config: &Config) -> ExitCode {
    let text = |name: &str| arguments.get_one::<String>(name).cloned().unwrap_or_default();
    let asked = match text("statement").as_str() {
        "-" => {
            let mut sql = String::new();
            io::stdin().read_to_string(&mut sql).map(|_| sql).map_err(|e| e.to_string())
        }
        sql => Ok(sql.to_owned()),
    };
    let sql = match asked {
        Ok(sql) => sql,
        Err(error) => return fail(CANNOT_RUN, &format!("cannot read the statement: {error}")),
    };
    let builder = Engine::builder(&config.data_dir).options(config.engine_options());
    let engine = match builder.open_reader() {
        Ok(engine) => engine,
        Err(error) => return fail(CANNOT_RUN, &chain(&error)),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(FAILED, &format!("cannot start the threads for queries: {error}")),
    };
    match runtime.block_on(print(&engine, &text("database"), &sql, &text("format"))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(FAILED, &error),
    }
}

/// Prints the rows of an answer as they come.
async fn print(engine: &Engine, database: &str, sql: &str, format: &str) -> Result<(), String> {
    let told = |error: Error| chain(&error);
    let statement = Statement::parse(sql).map_err(told)?;
    if statement.kind().is_change() {
        return Err(chain(&Error::ReadOnly));
    }
    let mut answer = engine.query(database, &statement, None).await.map_err(told)?;
    let of_failure = |failure: Failure| failure.message;
    let schema = answer.schema();
    let mut encoder: Encoder = match format {
        "csv" => Box::new(Csv::open(&schema, TimeForm::Padded)),
        "ndjson" => Box::new(Objects::open(&schema, Around::Lines, Nulls::Kept, TimeForm::Zoned).map_err(of_failure)?),
        _ => Box::new(Table::open(&schema)),
    };
    while let Some(batch) = answer.next().await {
        encoder.append(&batch.map_err(told)?).map_err(of_failure)?;
        if !written(&mut encoder)? {
            return Ok(());
        }
    }
    while !encoder.finish().map_err(of_failure)? {}
    if encoder.encoded().last().is_some_and(|last| *last != b'\n') {
        encoder.encoded().push(b'\n');
    }
    written(&mut encoder).map(drop)
}

/// Prints what is encoded; false if whoever reads it has gone.
fn written(encoder: &mut Encoder) -> Result<bool, String> {
    let bytes = std::mem::take(encoder.encoded());
    match io::stdout().write_all(&bytes) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true).map_err(|e| format!("cannot print: {e}")),
    }
}

fn fail(code: u8, message: &str) -> ExitCode {
    eprintln!("arc-server: {message}");
    ExitCode::from(code)
}
