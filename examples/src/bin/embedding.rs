//! An application that brings its own settings, writes Arrow batches with tags, deals with rejected
//! lines, and looks at the files.

use std::{error::Error, sync::Arc, time::Duration};

use arc_core::{Durability, Engine, ErrorKind, WriteOptions};
use arrow::{
    array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMillisecondArray},
    util::pretty::pretty_format_batches,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let engine = Engine::builder(folder.path().join("data"))
        .durability(Durability::Process)
        .flush_after(Duration::from_secs(10))
        .flush_bytes(16 << 20)
        .open()?;

    write_batches(&engine)?;
    write_lines(&engine)?;
    show_latest(&engine).await?;
    show_files(&engine)?;
    Ok(engine.close()?)
}

/// Writes columns as they are. Tag and time identify a row, so that the second write completes the
/// first.
fn write_batches(engine: &Engine) -> Result<(), Box<dyn Error>> {
    let options = WriteOptions::new().tags(["room"]).time_column("measured_at").durability(Durability::Disk);
    for (column, values) in [("temperature", vec![21.5, 19.0]), ("humidity", vec![40.0, 55.0])] {
        let batch = RecordBatch::try_from_iter([
            ("measured_at", Arc::new(TimestampMillisecondArray::from(vec![1_700_000_000_000; 2])) as ArrayRef),
            ("room", Arc::new(StringArray::from(vec!["kitchen", "cellar"]))),
            (column, Arc::new(Float64Array::from(values))),
        ])?;
        let written = engine.submit_batches("home", "climate", &[batch], &options)?.wait()?;
        println!("{column}: stored {} rows, durability {}", written.points, written.durability);
        assert_eq!((written.points, written.durability), (2, Durability::Disk));
    }
    Ok(())
}

/// Writes line protocol of which one line is bad: the others are stored, and the receipt names it.
fn write_lines(engine: &Engine) -> Result<(), Box<dyn Error>> {
    let body = b"climate,room=attic temperature=25.5 1700000000000000000\n\
                 climate,room=attic temperature=\"warm\" 1700000001000000000\n";
    let written = engine.write_lp("home", body)?;
    for rejected in &written.rejected {
        println!("line {} was not stored: {}", rejected.line, rejected.reason);
    }
    assert_eq!((written.points, written.rejected_points), (1, 1));

    // Batches are all or nothing: what does not fit the table is an error.
    let batch = RecordBatch::try_from_iter([
        ("time", Arc::new(TimestampMillisecondArray::from(vec![0])) as ArrayRef),
        ("temperature", Arc::new(StringArray::from(vec!["warm"]))),
    ])?;
    let refused = engine.write_batch("home", "climate", &batch).err().ok_or("text was stored as a number")?;
    println!("a batch was not stored: {refused}");
    assert_eq!(refused.kind(), ErrorKind::SchemaConflict);
    Ok(())
}

async fn show_latest(engine: &Engine) -> Result<(), Box<dyn Error>> {
    let sql = "SELECT room, temperature, humidity FROM climate ORDER BY room";
    let text = pretty_format_batches(&engine.sql("home", sql).await?.collect().await?)?.to_string();
    println!("{text}");
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>().join(" ");
    let rows: Vec<String> = text.lines().skip(3).filter(|line| line.starts_with('|')).map(cells).collect();
    assert_eq!(rows, [" attic 25.5  ", " cellar 19.0 55.0 ", " kitchen 21.5 40.0 "]);
    Ok(())
}

fn show_files(engine: &Engine) -> Result<(), Box<dyn Error>> {
    let report = engine.flush()?;
    println!("flushed {} rows", report.rows);
    let files = engine.data_files("home", "climate")?;
    for file in &files {
        println!("{} ({} rows, {} bytes)", engine.path().join(&file.path).display(), file.rows, file.bytes);
        assert!(engine.path().join(&file.path).is_file());
    }
    assert!(!files.is_empty());
    Ok(())
}
