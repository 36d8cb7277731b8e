//! The command `store probe`: whether an object store keeps the promises that an engine lives by.
//!
//! Needs no data directory, and changes nothing of one. Ends with 0 if the store keeps them, 1 if it breaks one or a request
//! failed, 2 if the command cannot be run as it was given.

use std::{io::Write as _, process::ExitCode};

use arc_core::{
    Error,
    store::{ProbeReport, probe},
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::{Value, json};

use crate::{
    config::{Config, Taker, arguments},
    errors::chain,
};

const FAILED: u8 = 1;
const CANNOT_RUN: u8 = 2;

/// Returns the command, for the command line's definition.
pub(crate) fn command() -> Command {
    let json = Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print JSON instead of text");
    let probe = Command::new("probe")
        .about("Try whether an object store does what an engine needs of it, and leave nothing there")
        .after_help(
            "Puts some 70 small objects below probe/ of the prefix and removes them; may run beside servers. Ends with 0 if the \
             store keeps its promises, 1 if it breaks one or does not answer, 2 if it cannot be asked.",
        )
        .arg(json)
        .args(arguments(Taker::Directory));
    Command::new("store").about("Ask an object store").subcommand_required(true).subcommand(probe)
}

/// Runs the command.
pub(crate) fn run(matches: &ArgMatches, config: &Config) -> ExitCode {
    let as_json = matches.subcommand_matches("probe").is_some_and(|probe| probe.get_flag("json"));
    let storage = match config.object_store.open() {
        Ok(Some(storage)) => storage,
        Ok(None) => {
            let reason = "it is missing; expected --object-store-url s3://bucket/prefix".to_owned();
            return fail(&Error::InvalidOption { option: "object_store_url", reason });
        }
        Err(error) => return fail(&error),
    };
    match probe(storage) {
        Ok(report) => {
            let text = if as_json { to_json(&report).to_string() } else { report.to_string() };
            // Whoever reads may have gone; there is nobody to tell then.
            let _ = writeln!(std::io::stdout(), "{text}");
            ExitCode::SUCCESS
        }
        Err(error) => fail(&error),
    }
}

fn to_json(report: &ProbeReport) -> Value {
    let kept = report
        .kept
        .iter()
        .map(|kept| json!({"promise": kept.promise, "requests": kept.requests, "seconds": kept.took.as_secs_f64()}));
    json!({"kept": kept.collect::<Vec<_>>()})
}

fn fail(error: &Error) -> ExitCode {
    eprintln!("arc-server: {}", chain(error));
    ExitCode::from(if matches!(error, Error::InvalidOption { .. }) { CANNOT_RUN } else { FAILED })
}
