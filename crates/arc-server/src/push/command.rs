//! `arc-server push`: the rows of a data directory that no server has open, to a running server or another such directory.
//!
//! Ends with 0 if everything is there, 1 if something failed, 2 if it was told something it cannot do. However it ends, the
//! next one goes on where it was.

use std::{
    ffi::OsString,
    io::{IsTerminal, Write},
    process::ExitCode,
    time::{Duration, Instant},
};

use arc_core::{Engine, Error, PushOptions, PushProgress, PushReport, PushTarget, Result};
use arc_edge::{Credentials, PushServer};
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::json;

use crate::{
    config::{Config, byte_size},
    errors::chain,
    server::open_engine,
};

const FAILED: u8 = 1;
const CANNOT_RUN: u8 = 2;
/// How often people are told how far it is.
const TOLD_EVERY: Duration = Duration::from_millis(500);
const AFTER_HELP: &str = "\
Each row arrives once, however often this is called and however it ends: the other side keeps a note of what it has in the
commit that takes the rows in. Deletes and drops of rows that were sent before are not sent.";

/// Returns the command, for the command line's definition.
pub(crate) fn command() -> Command {
    let to = Arg::new("to").long("to").value_name("URL|PATH").required(true);
    let rate = Arg::new("bytes-per-second").long("bytes-per-second").value_name("SIZE").value_parser(byte_size);
    Command::new("push")
        .about("Hand the rows of a data directory that no server has open to another one, each once")
        .after_help(AFTER_HELP)
        .arg(to.help("Server, as https://HOST:PORT or http://HOST:PORT, or a data directory that no server has open"))
        .arg(rate.help("Send no faster than this, like 256KiB; as fast as it goes unless given"))
        .args(arc_edge::arguments())
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print JSON instead of text"))
}

/// Runs the command.
pub(crate) fn run(arguments: &ArgMatches, config: &Config, environment: &[(OsString, OsString)]) -> ExitCode {
    let to = arguments.get_one::<String>("to").cloned().unwrap_or_default();
    match push(&to, arguments, config, environment) {
        Ok(report) => {
            print(&report, &to, arguments.get_flag("json"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("arc-server: {}", chain(&error));
            ExitCode::from(exit_code(&error))
        }
    }
}

fn push(to: &str, arguments: &ArgMatches, config: &Config, environment: &[(OsString, OsString)]) -> Result<PushReport> {
    if let Some((scheme, _)) = to.split_once("://").filter(|(scheme, _)| !["http", "https"].contains(scheme)) {
        let reason = format!(
            "{scheme}:// is no target; expected http://, https:// or a folder. A server that has its \
                              data in a bucket takes rows over HTTP"
        );
        return Err(Error::InvalidOption { option: "to", reason });
    }
    let mut options = PushOptions::default();
    options.bytes_per_second = arguments.get_one::<u64>("bytes-per-second").copied();
    // The other side first: without it there is nothing to do here.
    let (target, centre): (Box<dyn PushTarget>, Option<Engine>) = if to.contains("://") {
        (Box::new(PushServer::connect(to, &Credentials::read(arguments, environment)?)?), None)
    } else {
        let centre = Engine::builder(to).options(config.engine_options()).open()?;
        (Box::new(centre.clone()), Some(centre))
    };
    let engine = open_engine(config)?;
    let mut shown = Shown::default();
    let pushed = engine.push(target.as_ref(), &options, &mut |progress| shown.show(progress));
    shown.end();
    let closed = engine.close();
    let closed = closed.and(centre.map_or(Ok(()), |centre| centre.close()));
    pushed.and_then(|report| closed.map(|()| report))
}

/// Tells people at a terminal how far it is.
#[derive(Debug, Default)]
struct Shown(Option<Instant>);

impl Shown {
    fn show(&mut self, progress: &PushProgress) {
        let is_due = self.0.is_none_or(|last| last.elapsed() >= TOLD_EVERY);
        if !is_due || !std::io::stderr().is_terminal() {
            return;
        }
        self.0 = Some(Instant::now());
        let PushProgress { files, files_there, bytes, bytes_there, .. } = progress;
        eprint!("\r{files_there} of {files} files, {} of {} KiB", bytes_there >> 10, bytes >> 10);
    }

    fn end(&self) {
        if self.0.is_some() {
            eprintln!();
        }
    }
}

fn print(report: &PushReport, to: &str, as_json: bool) {
    let PushReport { cuts, files, rows, bytes, sent_bytes, .. } = *report;
    let text = if as_json {
        json!({ "cuts": cuts, "files": files, "rows": rows, "bytes": bytes, "sent_bytes": sent_bytes }).to_string()
    } else if cuts == 0 {
        format!("{to} has everything")
    } else {
        format!("{to}: {rows} rows in {files} data files ({bytes} bytes, {sent_bytes} sent now)")
    };
    // Whoever reads may have gone; there is nobody to tell then.
    let _ = writeln!(std::io::stdout(), "{text}");
}

fn exit_code(error: &Error) -> u8 {
    match error {
        Error::InUse { .. }
        | Error::NotADataDirectory { .. }
        | Error::NewerFormat { .. }
        | Error::InvalidOption { .. }
        | Error::Diverged { .. } => CANNOT_RUN,
        _ => FAILED,
    }
}
