//! From what was measured to docs/performance.md: tables between marks in the text, and charts.
//!
//! `results` reads what criterion left, `parser` and `stages` say which figures go where, `server`
//! takes over the tables of `benches/measure.py` and `upkeep`, `transfer` those of
//! `benches/transfer.py`, `table` and `chart` write Markdown and SVG, `document` finds the places.
//! Never measures.

mod chart;
mod document;
mod parser;
mod results;
mod server;
mod stages;
mod table;
mod transfer;

use std::{fs, io, path::Path};

use document::Document;
use results::Results;

/// What can be redrawn.
pub const PARTS: [&str; 11] =
    ["parser", "decode", "log", "ingest", "flush", "logs", "query", "upkeep", "scale", "server", "transfer"];

/// Redraws one part of `docs` from the folder `results`, and returns what it wrote.
///
/// # Errors
///
/// If there are no results of that part, or files cannot be read or written.
pub fn redraw(part: &str, results: &Path, docs: &Path) -> io::Result<Vec<String>> {
    let mut document = Document::open(&docs.join("performance.md"))?;
    let charts = match part {
        "parser" => parser::redraw(results, &mut document)?,
        "server" | "upkeep" | "scale" => server::redraw(part, &results.join(part), &mut document)?,
        "transfer" => transfer::redraw(&results.join(part), &mut document)?,
        _ => stages::redraw(part, &Results::read(&results.join("stages"))?, &mut document)?,
    };
    fs::create_dir_all(docs.join("charts"))?;
    for (name, svg) in &charts {
        fs::write(docs.join("charts").join(name), svg)?;
    }
    document.save()?;
    let charts = charts.into_iter().map(|(name, _)| format!("docs/charts/{name}"));
    Ok(charts.chain(["docs/performance.md".to_owned()]).collect())
}

/// Returns an error that says what is wrong with the results.
fn invalid(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.into())
}
