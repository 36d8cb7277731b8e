//! Writes with the engine, closes it, and reads the files with plain DataFusion: the data is not
//! locked in.

use std::{
    error::Error,
    path::{Path, PathBuf},
};

use arc_core::{Engine, datafile::DataFile};
use arrow::{array::RecordBatch, util::pretty::pretty_format_batches};
use datafusion::prelude::{ParquetReadOptions, SessionContext};

const SQL: &str = "SELECT host, count(*) AS samples, min(time) AS first, max(time) AS last, sum(usage) AS usage \
                   FROM cpu GROUP BY host ORDER BY host";
const DAY_NS: i64 = 86_400_000_000_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");

    let (files, of_engine) = write(&data).await?;
    println!("the engine is closed; {} Parquet files stay", files.len());
    assert_eq!(files.len(), 3, "one for each day");

    let of_datafusion = read(&files).await?;
    println!("{}", pretty_format_batches(&of_datafusion)?);
    assert_eq!(text(&of_datafusion)?, text(&of_engine)?);
    println!("the engine answered the same");
    Ok(())
}

/// Writes three days of two hosts; returns the data files and the engine's answer.
async fn write(data: &Path) -> Result<(Vec<PathBuf>, Vec<RecordBatch>), Box<dyn Error>> {
    let engine = Engine::open(data)?;
    let lines: Vec<String> = (0..3)
        .flat_map(|day| (0..100).map(move |minute| day * DAY_NS + minute * 60_000_000_000))
        .flat_map(|time| ["a", "b"].map(|host| format!("cpu,host={host} usage={}i {time}", time % 7)))
        .collect();
    let written = engine.write_lp("fleet", lines.join("\n").as_bytes())?;
    assert_eq!((written.points, written.rejected_points), (600, 0));
    let answer = engine.sql("fleet", SQL).await?.collect().await?;
    engine.flush()?;
    let path = |file: &DataFile| engine.path().join(&file.path);
    let files = engine.data_files("fleet", "cpu")?.iter().map(|file| path(file)).collect();
    engine.close()?;
    Ok((files, answer))
}

/// Nothing of arc from here on.
async fn read(files: &[PathBuf]) -> Result<Vec<RecordBatch>, Box<dyn Error>> {
    let context = SessionContext::new();
    let paths: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let table = context.read_parquet(paths, ParquetReadOptions::default()).await?;
    context.register_table("cpu", table.into_view())?;
    Ok(context.sql(SQL).await?.collect().await?)
}

fn text(batches: &[RecordBatch]) -> Result<String, Box<dyn Error>> {
    Ok(pretty_format_batches(batches)?.to_string())
}
