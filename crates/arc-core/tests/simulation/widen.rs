//! Writers that change the types of the same columns at the same time, under one seed.
//!
//! Each column gets its values from all writers, so that whichever comes first decides what the others change. What was
//! acknowledged is what is read, in memory and in files.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use arc_core::{
    ColumnTypes, Engine, OnConflict, Options,
    sync::{
        schedule::{self, Draws, Schedule, Strategy},
        thread::{Builder, sleep},
    },
    vfs::CrashFs,
};
use arrow::{array::AsArray, compute::cast, datatypes::DataType};

use crate::{
    core::{JumpingClock, Run, SeededRandom},
    disk::{Disk, Weather},
    rows::{self, KINDS},
};

const ROOT: &str = "/store";
const MOST_STEPS: u64 = 300_000;
const COLUMNS: usize = 6;

/// Runs one seed.
pub(crate) fn run(seed: u64) -> Run {
    let mut draws = Draws::new(seed ^ 0x77_6964_656e);
    let strategy = if draws.one_in(2) {
        Strategy::Priorities { changes: 1 + draws.below(8), within: 200 + draws.below(2_000) }
    } else {
        Strategy::Random { one_in: 1 + draws.below(4) }
    };
    let schedule = Schedule { seed, strategy, most_steps: MOST_STEPS, slow: None };
    let disk = Disk::new(CrashFs::new(), seed);
    let outcome = schedule::run(&schedule, move || work(&disk, seed, &mut draws));
    Run { hash: outcome.hash, steps: outcome.steps, images: 0, failure: outcome.failure }
}

fn work(disk: &Disk, seed: u64, draws: &mut Draws) {
    let mut options = Options::default();
    (options.compaction, options.max_resident_bytes, options.memory_bytes) = (false, 0, 64 << 20);
    (options.wal_segment_bytes, options.flush_after) = (64 << 10, Duration::from_secs(1 << 30));
    options.column_types = ColumnTypes::new().on_conflict(OnConflict::Widen);
    let builder = Engine::builder(ROOT).options(options).vfs(Arc::new(disk.clone()));
    let engine = builder.clock(Arc::new(JumpingClock::new())).random(Arc::new(SeededRandom::new(seed))).open().unwrap();
    disk.set(Weather { waits_one_in: draws.below(3), longest: Duration::from_micros(500), ..Weather::default() });
    let mut expected = BTreeMap::new();
    let mut threads = Vec::new();
    for writer in 0..2 + draws.below(3) {
        let mut lines = Vec::new();
        for column in 0..COLUMNS {
            let (value, text) = KINDS[usize::try_from(draws.below(KINDS.len() as u64)).unwrap()];
            expected.insert((writer.to_string(), format!("c{column}")), text);
            lines.push(format!("m,w={writer} c{column}={value} {column}"));
        }
        let engine = engine.clone();
        let thread = Builder::new().name(format!("writer {writer}")).spawn(move || {
            for line in lines {
                assert_eq!(engine.write_lp("d", line.as_bytes()).unwrap().points, 1);
            }
        });
        threads.push(thread.unwrap());
    }
    for _ in 0..draws.below(3) {
        sleep(Duration::from_micros(draws.below(1_000)));
        engine.flush().unwrap();
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    check(&engine, disk, &expected);
    engine.flush().unwrap();
    check(&engine, disk, &expected);
}

/// Checks that each value reads as the text of what was written.
fn check(engine: &Engine, disk: &Disk, expected: &BTreeMap<(String, String), &str>) {
    let mut found = BTreeMap::new();
    for batch in rows::batches(engine, disk.fs(), "d", "m").unwrap() {
        let texts = |name: &str| cast(batch.column_by_name(name).unwrap(), &DataType::Utf8).unwrap();
        let writers = texts("w");
        for column in batch.schema().fields().iter().map(|field| field.name()).filter(|name| name.starts_with('c')) {
            for (writer, text) in writers.as_string::<i32>().iter().zip(texts(column).as_string::<i32>()) {
                // As arrow writes a float that is an integer.
                let Some(text) = text.map(|text| text.strip_suffix(".0").unwrap_or(text).to_owned()) else { continue };
                found.insert((writer.unwrap().to_owned(), column.clone()), text);
            }
        }
    }
    let found: BTreeMap<_, _> = found.iter().map(|(at, text)| (at.clone(), text.as_str())).collect();
    assert_eq!(found, *expected);
}
