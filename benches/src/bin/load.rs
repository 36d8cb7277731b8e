//! The load generator's command line; see `--help`.

use std::{io::Write as _, process::ExitCode};

use arc_benches::load::{Options, run};
use clap::Parser as _;

fn main() -> ExitCode {
    let options = Options::parse();
    match report(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // Nothing is left to tell if standard error is gone, too.
            let _ = writeln!(std::io::stderr(), "load: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs and prints; returns whether all is well.
fn report(options: &Options) -> std::io::Result<bool> {
    let report = run(options)?;
    let mut out = std::io::stdout().lock();
    if options.json {
        writeln!(out, "{}", serde_json::to_string(&report)?)?;
    } else {
        write!(out, "{report}")?;
    }
    Ok(report.is_sound())
}
