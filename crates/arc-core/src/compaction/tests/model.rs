//! Any history in any files: merging any of them that may be merged changes no row.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use arrow::{
    array::{Array, AsArray, RecordBatch},
    datatypes::{Float64Type, Int64Type, TimestampNanosecondType},
};
use proptest::{collection::vec, option, prelude::*};

use super::{
    super::{
        Keep, MAX_BATCH_BYTES, MergeJob, MergeSource, MergeTask, Settings,
        cursor::value,
        order::{by_version, output},
        plan, run,
    },
    fake::DAY_NS,
};
use crate::{
    Engine, Options,
    datafile::{ParquetOptions, read_data_file},
    model::{DataFile, TableSchema},
    vfs::CrashFs,
};

/// Folder of the engine in the file system in memory. With queries its temporary folder is made for
/// real.
fn root() -> PathBuf {
    std::env::temp_dir().join("arc-compaction")
}

/// A point as it is sent: (host, rack), time, and the fields that it carries.
#[derive(Debug, Clone)]
struct Point {
    tags: (Option<u8>, Option<u8>),
    time: i64,
    fields: Fields,
}

/// x, y, s.
type Fields = (Option<i64>, Option<i32>, Option<u8>);
type PrimaryKey = (Option<String>, Option<String>, i64);
type Row = (Option<i64>, Option<f64>, Option<String>);
type Rows = BTreeMap<PrimaryKey, Row>;

fn point() -> impl Strategy<Value = Point> {
    let tags = (option::of(0..3_u8), option::weighted(0.3, 0..2_u8));
    // Two days, and few enough times that primary keys repeat.
    let time = (0..2_i64, 0..8_i64).prop_map(|(day, hour)| day * DAY_NS + hour);
    let fields = (option::of(0..9_i64), option::of(0..9_i32), option::of(0..9_u8));
    (tags, time, fields).prop_map(|(tags, time, fields)| Point {
        tags,
        time,
        fields: if fields == (None, None, None) { (Some(0), None, None) } else { fields },
    })
}

fn line(point: &Point) -> String {
    let Point { tags: (host, rack), time, fields: (x, y, s) } = point;
    let tag = |name, value: Option<u8>| value.map_or_else(String::new, |v| format!(",{name}={name}{v}"));
    let fields: Vec<String> =
        [x.map(|x| format!("x={x}i")), y.map(|y| format!("y={y}")), s.map(|s| format!("s=\"s{s}\""))]
            .into_iter()
            .flatten()
            .collect();
    format!("m{}{} {} {time}\n", tag("host", *host), tag("rack", *rack), fields.join(","))
}

fn merge_into(rows: &mut Rows, primary_key: PrimaryKey, (x, y, s): Row) {
    let row = rows.entry(primary_key).or_default();
    *row = (x.or(row.0), y.or(row.1), s.or(row.2.take()));
}

fn expected(history: &[(Vec<Point>, bool)]) -> Rows {
    let mut rows = Rows::new();
    for Point { tags: (host, rack), time, fields: (x, y, s) } in history.iter().flat_map(|(round, _)| round) {
        let tag = |name: &str, value: &Option<u8>| value.map(|v| format!("{name}{v}"));
        let row = (*x, y.map(f64::from), s.map(|s| format!("s{s}")));
        merge_into(&mut rows, (tag("host", host), tag("rack", rack), *time), row);
    }
    rows
}

/// The live files of one table, apart from any engine.
struct Files {
    vfs: CrashFs,
    schema: Arc<TableSchema>,
    live: Vec<Arc<DataFile>>,
    written: u64,
}

impl Files {
    /// Writes each round of points and flushes it, and starts the engine anew where told to.
    fn of(history: &[(Vec<Point>, bool)]) -> Self {
        let vfs = CrashFs::new();
        let options = Options {
            wal_segment_bytes: 64 << 10,
            flush_after: Duration::from_secs(1 << 30),
            compaction: false,
            ..Options::default()
        };
        let open = || Engine::builder(root()).options(options.clone()).vfs(Arc::new(vfs.clone())).open().unwrap();
        let mut engine = open();
        for (round, restart) in history {
            if *restart {
                drop(engine);
                engine = open();
            }
            let lines: String = round.iter().map(line).collect();
            assert_eq!(engine.write_lp("d", lines.as_bytes()).unwrap().rejected_points, 0);
            engine.flush().unwrap();
        }
        let (schema, live) = (engine.schema("d", "m").unwrap(), engine.data_files("d", "m").unwrap());
        Self { vfs, schema, live, written: 0 }
    }

    fn merge(&mut self, task: &MergeTask, target_bytes: u64) {
        let job = MergeJob {
            source: MergeSource { vfs: &self.vfs, root: &root() },
            schema: &self.schema,
            task,
            keep: Keep::default(),
            tombstones: &[],
            batch_bytes: MAX_BATCH_BYTES,
            target_bytes,
            options: &ParquetOptions::default(),
            time_unit: crate::FileTimeUnit::default(),
            pack: None,
            cancelled: &AtomicBool::new(false),
        };
        let day = task.day;
        let made = run(&job, || {
            self.written += 1;
            format!("data/d/m/day={day}/{}.parquet", self.written)
        });
        self.live.retain(|file| !task.files.contains(file));
        self.live.extend(made.unwrap().into_iter().map(Arc::new));
    }

    /// Reads all rows as a query does: those on time, which must be unique, and late ones over
    /// them.
    fn rows(&self) -> Rows {
        let mut rows = Rows::new();
        let on_time = self.live.iter().map(Arc::as_ref).filter(|file| !file.late);
        for file in on_time.chain(by_version(&self.live)) {
            let (_, batches) = read_data_file(&self.vfs, &root(), file).unwrap();
            let read: Vec<(PrimaryKey, Row)> = batches.iter().flat_map(rows_of).collect();
            assert!(read.is_sorted_by(|a, b| self.key(&a.0) < self.key(&b.0)), "{} is not sorted", file.path);
            for (primary_key, row) in read {
                assert!(file.late || !rows.contains_key(&primary_key), "{primary_key:?} is on time twice");
                merge_into(&mut rows, primary_key, row);
            }
        }
        rows
    }

    /// Returns what rows are sorted by: the tags in the order of their creation, and the time.
    fn key<'r>(&self, (host, rack, time): &'r PrimaryKey) -> (Vec<&'r Option<String>>, i64) {
        let tags = self.schema.tags().map(|tag| if &*tag.name == "host" { host } else { rack });
        (tags.collect(), *time)
    }
}

fn rows_of(batch: &RecordBatch) -> Vec<(PrimaryKey, Row)> {
    let tag = |name: &str, row: usize| {
        batch.column_by_name(name).and_then(|tag| value(tag.as_dictionary(), row)).map(str::to_owned)
    };
    let set = |name: &str, row: usize| batch.column_by_name(name).filter(|column| column.is_valid(row));
    let times = batch.column(0).as_primitive::<TimestampNanosecondType>();
    let row = |row: usize| {
        let x = set("x", row).map(|x| x.as_primitive::<Int64Type>().value(row));
        let y = set("y", row).map(|y| y.as_primitive::<Float64Type>().value(row));
        let s = set("s", row).map(|s| s.as_string::<i32>().value(row).to_owned());
        ((tag("host", row), tag("rack", row), times.value(row)), (x, y, s))
    };
    (0..batch.num_rows()).map(row).collect()
}

/// What is merged next.
#[derive(Debug, Clone)]
enum Step {
    /// Of the files of one day those whose bit is set, if that is allowed; parted in the middle of
    /// their time or not.
    Any(i64, u32, bool),
    /// All that the planner plans, and what it plans then: files to a merge, whether the day is
    /// over, target bytes, columns that may be open, rows of a slice.
    Planned(usize, bool, u64, usize, u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..2_i64, any::<u32>(), any::<bool>()).prop_map(|(day, bits, parted)| Step::Any(day, bits, parted)),
        1 => (
            2..5_usize,
            any::<bool>(),
            prop::sample::select(vec![1, 3000, 1 << 30]),
            prop::sample::select(vec![1, 4096]),
            prop::sample::select(vec![1, 10, 1 << 20]),
        )
            .prop_map(|(files, is_over, target, columns, slice)| Step::Planned(files, is_over, target, columns, slice)),
    ]
}

fn apply(files: &mut Files, step: &Step) {
    match step {
        Step::Any(day, bits, parted) => {
            let partition: Vec<Arc<DataFile>> =
                files.live.iter().filter(|file| file.day().days() == *day).cloned().collect();
            let chosen: Vec<Arc<DataFile>> = (0..)
                .zip(&partition)
                .filter(|(bit, _)| bits >> (bit % 32) & 1 == 1)
                .map(|(_, file)| file.clone())
                .collect();
            let Some(output) = output(&partition, |file| chosen.iter().any(|chosen| **chosen == *file)) else { return };
            let mut ordered = chosen;
            ordered.sort_by_key(|file| (file.late, if file.late { file.version() } else { (0, 0) }));
            let Some(day) = ordered.first().map(|file| file.day()) else { return };
            let times = ordered.iter().flat_map(|file| [file.min_time, file.max_time]);
            let middle = times.clone().min().into_iter().chain(times.max()).sum::<i64>() / 2;
            let cuts = if *parted { vec![middle] } else { Vec::new() };
            files.merge(&MergeTask { day, files: ordered, output, cuts, may_drop_old: false, is_last: false }, 1 << 30);
        }
        Step::Planned(files_to_merge, is_over, target_bytes, open_columns, slice_rows) => {
            let settings = Settings {
                files: *files_to_merge,
                target_bytes: *target_bytes,
                open_columns: *open_columns,
                quiet_ns: 0,
                slice_rows: *slice_rows,
            };
            let now = if *is_over { i64::MAX } else { i64::MIN };
            for round in 0.. {
                assert!(round < 64, "there is no end to it: {:?}", files.live);
                let plan = plan(&files.schema, &files.live, now, &settings);
                if plan.tasks.is_empty() {
                    break;
                }
                plan.tasks.iter().for_each(|task| files.merge(task, *target_bytes));
            }
            if *is_over && *target_bytes > 1 << 20 && *open_columns > 1 {
                // One file for each day, unless it has many rows; on time.
                let few = *slice_rows < 1 << 20 || files.live.len() <= 2;
                assert!(few && files.live.iter().all(|file| !file.late), "{:?}", files.live);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn merges_change_no_row(
        history in vec((vec(point(), 1..10), prop::bool::weighted(0.2)), 1..8),
        steps in vec(step(), 1..6),
    ) {
        let expected = expected(&history);
        let mut files = Files::of(&history);
        prop_assert_eq!(&files.rows(), &expected, "before any merge");
        for step in &steps {
            apply(&mut files, step);
            prop_assert_eq!(&files.rows(), &expected, "after {:?}", step);
        }
    }
}
