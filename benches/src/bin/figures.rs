//! Redraws the tables and charts of docs/performance.md from what the benches left. `scripts/bench`
//! calls it.

use std::{path::Path, process::ExitCode};

use arc_benches::figures::{PARTS, redraw};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [results, docs, parts @ ..] = arguments.as_slice() else {
        eprintln!("usage: figures RESULTS DOCS PART...; parts: {}", PARTS.join(", "));
        return ExitCode::FAILURE;
    };
    let mut code = ExitCode::SUCCESS;
    for part in parts {
        let drawn = if PARTS.contains(&part.as_str()) {
            redraw(part, Path::new(results), Path::new(docs)).map_err(|error| error.to_string())
        } else {
            Err(format!("there is no such part; there are {}", PARTS.join(", ")))
        };
        match drawn {
            Ok(files) => println!("{part}: wrote {}", files.join(", ")),
            Err(reason) => {
                eprintln!("{part}: {reason}");
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}
