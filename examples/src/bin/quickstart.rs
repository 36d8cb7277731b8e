//! Opens a store, writes two readings of a pump, asks for their average, closes.

use std::error::Error;

use arc_core::Engine;
use arrow::{array::AsArray as _, datatypes::Float64Type, util::pretty::pretty_format_batches};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;

    let engine = Engine::open(folder.path().join("data"))?;
    let written = engine.write_lp(
        "plant",
        b"pump,id=7 rpm=1450i 1700000000000000000\n\
          pump,id=7 rpm=1550i 1700000001000000000",
    )?;
    println!("stored {} points; they survive loss of power: durability {}", written.points, written.durability);
    assert_eq!((written.points, written.rejected_points), (2, 0));

    let answer = engine.sql("plant", "SELECT id, avg(rpm) AS rpm FROM pump GROUP BY id").await?;
    let batches = answer.collect().await?;
    println!("{}", pretty_format_batches(&batches)?);
    let averages: Vec<f64> =
        batches.iter().flat_map(|batch| batch.column(1).as_primitive::<Float64Type>().values()).copied().collect();
    assert_eq!(averages, [1500.0]);

    engine.close()?;
    Ok(())
}
