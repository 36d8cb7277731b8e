//! What programs have in common that measure several subjects, each of which gives a table of
//! docs/performance.md.

use std::{fmt::Display, fs, io, path::PathBuf, process::ExitCode};

/// A subject: its name, and what measures it and returns its table.
pub type Subject<E> = (&'static str, Box<dyn Fn() -> Result<String, E>>);

/// Measures the subjects that the program's arguments name, all where they name none, and prints
/// their tables; after `--out DIR` they are written there as well, where `figures` looks for them.
/// Says on stderr what failed.
#[must_use]
pub fn run<E: Display + From<io::Error>>(subjects: &[Subject<E>]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (out, wanted) = match arguments.as_slice() {
        [flag, out, wanted @ ..] if flag == "--out" => (Some(PathBuf::from(out)), wanted),
        wanted => (None, wanted),
    };
    if let Some(unknown) = wanted.iter().find(|name| subjects.iter().all(|(known, _)| known != name)) {
        let known: Vec<&str> = subjects.iter().map(|(name, _)| *name).collect();
        eprintln!("no subject {unknown}; there are {}", known.join(", "));
        return ExitCode::FAILURE;
    }
    for (name, measure) in subjects.iter().filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|w| w == name)) {
        let written = measure().and_then(|table| {
            println!("\n{name}\n\n{table}");
            let Some(out) = &out else { return Ok(()) };
            fs::create_dir_all(out)?;
            Ok(fs::write(out.join(format!("{name}.md")), table)?)
        });
        if let Err(error) = written {
            eprintln!("{name}: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
