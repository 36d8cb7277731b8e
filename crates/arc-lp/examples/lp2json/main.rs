//! Line protocol in, one JSON object per record out, good or bad.
//!
//! ```sh
//! cargo run -p arc-lp --example lp2json < in.lp
//! ```
//!
//! A good record becomes `{"measurement", "tags", "fields", "timestamp"}`, a bad one
//! `{"error": {"line", "kind", "offset"}}`; the format module has the details.

mod format;

use std::io::{self, Read, Write};

fn main() -> io::Result<()> {
    let mut input = Vec::new();
    io::stdin().lock().read_to_end(&mut input)?;
    let mut output = io::BufWriter::new(io::stdout().lock());
    for record in arc_lp::points(&input) {
        writeln!(output, "{}", format::record(&record))?;
    }
    output.flush()
}
