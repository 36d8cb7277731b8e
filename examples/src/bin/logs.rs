//! Writes logs to Parquet files without an engine: `logs INPUT.arrow FOLDER`.
//!
//! The input is an Arrow file of flattened OpenTelemetry logs, grouped by service.
//! `examples/python/logs.py` makes one, runs this, and compares the files with it through DuckDB.

use std::{env, error::Error, fs::File};

use arc_core::datafile::{Accumulator, ParquetWriter};
use arrow::{
    array::{AsArray, RecordBatch},
    ipc::reader::FileReader,
};

/// Counts what is worth a look.
#[derive(Default)]
struct Errors(u64);

impl Accumulator for Errors {
    type Output = u64;

    fn update(&mut self, rows: &RecordBatch) {
        let levels = rows.column_by_name("level").and_then(|column| column.as_string_opt::<i32>());
        let errors = levels.into_iter().flatten().filter(|level| *level == Some("ERROR"));
        self.0 += errors.count() as u64;
    }

    fn finish(self) -> u64 {
        self.0
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args_os().skip(1);
    let (Some(input), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("usage: logs INPUT.arrow FOLDER".into());
    };
    let input = FileReader::try_new(File::open(input)?, None)?;

    let mut writer = ParquetWriter::builder(folder, input.schema())
        .name("logs")
        // Attributes are numbers here and texts there: in the files all of them are texts.
        .text_prefixes(["resource_", "scope_", "attr_"])
        // A file ends at 10,000 rows or half a megabyte, whichever comes first, and with its
        // service.
        .max_rows(10_000)
        .max_bytes(500_000)
        .group_by(["resource_service_name"])
        .time_column("timestamp")
        .distinct(["resource_service_name", "level"])
        .threads(2)
        .open_with(Errors::default)?;
    for rows in input {
        writer.push(&rows?)?;
    }

    // Until here there was no file but temporary ones.
    for file in writer.close()? {
        let (statistics, errors) = (&file.statistics, file.accumulated);
        println!("{}: {} rows, {} bytes, {errors} errors", file.path.display(), file.rows, file.bytes);
        println!("    times {:?} to {:?}", statistics.first_time, statistics.last_time);
        for distinct in &statistics.distinct {
            println!("    {}: {:?}", distinct.column, distinct.values);
        }
    }
    Ok(())
}
