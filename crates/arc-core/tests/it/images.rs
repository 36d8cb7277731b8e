//! Losses of power in random scenarios: writes at every durability to tables with and without a
//! key, flushes, merges, drops and restarts in an order drawn from a seed.
//!
//! The short round runs with the other tests; the long one, of `ARC_TEST_IMAGES` states of the disk
//! from the seed `ARC_TEST_SEED` on, is asked for:
//!
//! ```sh
//! ARC_TEST_IMAGES=100000 ARC_TEST_SEED=1 cargo test --release -p arc-core --test it -- images:: --ignored --nocapture
//! ```

use std::{collections::BTreeSet, sync::Arc};

use arc_core::{
    Durability, Engine, WriteOptions,
    vfs::{CrashFs, Image, RealVfs, Vfs},
};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, TimestampNanosecondArray};

use crate::{
    crash::{Sent, Write, check, disk, engine, numbers, root},
    support::{HandClock, check_crashed, in_columns},
};

/// States of the disk after each operation of a scenario.
const IMAGES_PER_CUT: usize = 4;
const STEPS: u64 = 24;
/// Databases and tables, and where the numbers of their points begin: a table with a key, one that
/// appends, one that is dropped, and one that is dropped with its database.
const TABLES: [(&str, &str, i64); 4] =
    [("d", "m", 0), ("d", "appended", 1_000_000), ("d", "dropped", 2_000_000), ("e", "m", 3_000_000)];

/// Numbers drawn from a seed (SplitMix64).
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % end
    }
}

/// Times of points: in order, late, or of another day.
fn time(n: i64, draws: &mut Draws) -> i64 {
    match draws.below(4) {
        0 => n - 2_000,
        1 => n - 86_400_000_000_000,
        _ => n,
    }
}

/// A write of `points`; returns whether a power cut must not lose it.
fn write(engine: &Engine, (database, table): (&str, &str), points: &[i64], draws: &mut Draws) -> bool {
    let durability = match draws.below(4) {
        0 => Durability::Process,
        1 => Durability::Memory,
        _ => Durability::Disk,
    };
    let options = WriteOptions::new().durability(durability);
    let pending = if table != "appended" {
        let column = draws.below(5);
        let line = |n: &i64| format!("{table},client=c{} n={n}i,f{column}=1 {}\n", n % 2, time(*n, draws));
        let body: String = points.iter().map(line).collect();
        let body = if draws.below(2) == 0 { in_columns(&body) } else { body };
        engine.submit_lp(database, body.into_bytes().into(), &options)
    } else {
        let times = points.iter().map(|n| time(*n, draws));
        let times: ArrayRef = Arc::new(TimestampNanosecondArray::from_iter_values(times).with_timezone("UTC"));
        let numbers: ArrayRef = Arc::new(Int64Array::from(points.to_vec()));
        let batch = RecordBatch::try_from_iter([("time", times), ("n", numbers)]).unwrap();
        engine.submit_batches(database, table, &[batch], &options)
    };
    assert_eq!(pending.unwrap().wait().unwrap().points, points.len() as u64);
    durability == Durability::Disk
}

/// Does what the seed says, with two restarts, of which one follows no close.
fn scenario(fs: &CrashFs, seed: u64) -> Vec<Write> {
    let mut draws = Draws(seed);
    let vfs: Arc<dyn Vfs> = Arc::new(fs.clone());
    let clock = HandClock::default();
    let open = || engine(Arc::clone(&vfs), &root().join("arc-crash"), &clock).unwrap();
    let operations = || fs.operations();
    let (mut sent, mut next, mut open_engine) = (Sent { operations: &operations, writes: Vec::new() }, 0, open());
    for step in 0..STEPS {
        match draws.below(10) {
            9 => drop(open_engine.unpack().unwrap()),
            0 => drop(open_engine.flush().unwrap()),
            1 => drop(open_engine.compact().unwrap()),
            2 => {
                let (database, table, first) = TABLES[2 + usize::from(draws.below(2) == 1)];
                let drop = || match table {
                    "dropped" => open_engine.drop_table(database, table),
                    _ => open_engine.drop_database(database),
                };
                sent.take_away(|n| (first..first + 1_000_000).contains(&n), || drop().is_ok());
            }
            _ => {
                let (database, table, first) = TABLES[[0, 0, 1, 1, 2, 3][usize::try_from(draws.below(6)).unwrap()]];
                let count = i64::try_from(1 + draws.below(5)).unwrap();
                let points: Vec<i64> = (first + next..first + next + count).collect();
                next += count;
                let begun = fs.operations();
                let is_safe = write(&open_engine, (database, table), &points, &mut draws);
                let acknowledged = is_safe.then(|| fs.operations());
                sent.writes.push(Write { points, begun, acknowledged, deleted: None });
            }
        }
        if step % 8 == 7 {
            if step == 7 {
                open_engine.close().unwrap();
            }
            drop(open_engine);
            open_engine = open();
        }
    }
    sent.writes
}

/// Opens what the crash left and returns the points in it.
fn survivors(image: &Image) -> BTreeSet<i64> {
    let dir = tempfile::tempdir().unwrap();
    image.write_to(dir.path()).unwrap();
    let inside = root().join("arc-crash");
    let path = dir.path().join(inside.strip_prefix("/").unwrap_or(&inside));
    let mut found = BTreeSet::new();
    let open = || engine(Arc::new(RealVfs), &path, &HandClock::default()).unwrap();
    check_crashed(&path, open, |engine| {
        for n in numbers(engine, &TABLES.map(|(database, table, _)| (database, table))) {
            assert!(found.insert(n), "point {n} came twice");
        }
    });
    found
}

/// Goes through scenarios from `seed` on until it has checked so many images, after every
/// `stride`-th operation.
fn round(seed: u64, images: usize, stride: usize) {
    let (mut checked, mut scenarios) = (0, 0);
    while checked < images {
        let fs = disk();
        let seed = seed + scenarios;
        let writes = scenario(&fs, seed);
        for cut in fs.power_cuts().step_by(stride) {
            let operations = cut.operations();
            for image in cut.images(seed << 32 | operations as u64, IMAGES_PER_CUT).take(images - checked) {
                checked += 1;
                let case = format!("seed {seed}, after {operations} operations");
                check(&writes, operations, &survivors(&image), &case);
            }
        }
        scenarios += 1;
        if scenarios % 10 == 0 {
            println!("{checked} images, {scenarios} scenarios, seeds up to {seed}");
        }
    }
    println!(
        "{checked} images of {scenarios} scenarios from seed {seed} on: no point lost, none twice, none from the future"
    );
}

#[test]
fn random_scenarios_survive_a_loss_of_power_at_any_moment() {
    // Wide enough apart that whole scenarios are passed.
    round(1, 150, 11);
}

#[test]
#[ignore = "the long round; docs/reliability.md has its results"]
fn a_long_round_of_random_scenarios_survives_losses_of_power() {
    let setting = |name, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    round(setting("ARC_TEST_SEED", 1), usize::try_from(setting("ARC_TEST_IMAGES", 20_000)).unwrap(), 1);
}
