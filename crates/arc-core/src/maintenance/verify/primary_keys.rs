//! Whether rows that are not late are unique by primary key across the data files of a primary-key
//! table.
//!
//! Only rows with equal times can repeat each other, so only files whose times overlap are read
//! again. Identities are compared by hash, in several passes where there are many, and equal hashes
//! by what they stand for.

use std::{hash::BuildHasher, path::Path, sync::Arc};

use arrow::{
    array::{Array, AsArray, RecordBatch},
    datatypes::{Int32Type, TimestampNanosecondType},
};
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};
use parquet::arrow::ProjectionMask;

use super::VerifyReport;
use crate::{
    Result,
    datafile::OpenDataFile,
    model::{DataFile, TIME_COLUMN, TableSchema},
    vfs::Vfs,
};

/// Hashes held at a time: 64 MiB.
const MAX_HASHES: u64 = 8 << 20;

/// Repeated primary keys that are named.
const MAX_NAMED: usize = 10;

const BATCH_ROWS: usize = 8192;

const BUG: &str = "the files are as they were written, so this is a bug; please report it";

/// Times at which more than one file has rows, first and last, ascending.
type Contested = Vec<(i64, i64)>;

/// All tags that a row has, and its time.
type PrimaryKey = (Vec<(String, String)>, i64);

/// Checks the on-time files of one primary-key table against each other.
pub(super) fn check(
    vfs: &dyn Vfs,
    root: &Path,
    table: &TableSchema,
    files: &[Arc<DataFile>],
    report: &mut VerifyReport,
) -> Result<()> {
    let on_time: Vec<&DataFile> = files.iter().map(Arc::as_ref).filter(|file| !file.late).collect();
    let contested = contested(&on_time);
    let touched: Vec<&DataFile> = on_time
        .into_iter()
        .filter(|file| contested.iter().any(|(first, last)| file.min_time <= *last && file.max_time >= *first))
        .collect();
    let rows: u64 = touched.iter().map(|file| file.rows).sum();
    let passes = rows.div_ceil(MAX_HASHES).max(1);
    let reader = KeyReader { vfs, root, table, contested: &contested };
    let mut repeated = HashSet::new();
    for pass in 0..passes {
        let mut hashes = Vec::new();
        for file in &touched {
            reader.read(file, |_, _, hash| {
                if hash % passes == pass {
                    hashes.push(hash);
                }
            })?;
        }
        hashes.sort_unstable();
        let twice =
            hashes.windows(2).filter_map(|pair| (pair.first() == pair.last()).then(|| pair.first().copied())?);
        repeated.extend(twice.take(MAX_NAMED));
    }
    if repeated.is_empty() { Ok(()) } else { name(&reader, &touched, &repeated, report) }
}

/// Says which primary keys have these hashes, and in which files they are.
fn name(reader: &KeyReader<'_>, files: &[&DataFile], hashes: &HashSet<u64>, report: &mut VerifyReport) -> Result<()> {
    let mut seen: HashMap<PrimaryKey, &str> = HashMap::new();
    let mut named = 0;
    for file in files {
        reader.read(file, |batch, row, hash| {
            if !hashes.contains(&hash) {
                return;
            }
            let primary_key = primary_key(reader.table, batch, row);
            // Twice in one file is what the order of its rows shows.
            let Some(other) = seen.insert(primary_key.clone(), &file.path).filter(|other| *other != file.path) else {
                return;
            };
            if named < MAX_NAMED {
                let what = format!("the row {} is in {other} as well, though neither file is late", show(&primary_key));
                report.error(reader.root.join(&file.path), None, what, BUG);
            }
            named += 1;
        })?;
    }
    Ok(())
}

/// Returns the times at which two files or more may have rows.
fn contested(files: &[&DataFile]) -> Contested {
    let mut sorted: Vec<(i64, i64)> = files.iter().map(|file| (file.min_time, file.max_time)).collect();
    sorted.sort_unstable();
    let mut contested: Contested = Vec::new();
    let mut newest = None;
    for (min, max) in sorted {
        if let Some(newest) = newest.filter(|newest| *newest >= min) {
            let last = max.min(newest);
            match contested.last_mut().filter(|(_, end)| *end >= min) {
                Some((_, end)) => *end = last.max(*end),
                None => contested.push((min, last)),
            }
        }
        newest = newest.max(Some(max));
    }
    contested
}

struct KeyReader<'a> {
    vfs: &'a dyn Vfs,
    root: &'a Path,
    table: &'a TableSchema,
    contested: &'a Contested,
}

impl KeyReader<'_> {
    /// Hands on each row at a contested time: its batch, its row there, and the hash of its primary
    /// key.
    fn read(&self, file: &DataFile, mut take: impl FnMut(&RecordBatch, usize, u64)) -> Result<()> {
        let path = self.root.join(&file.path);
        let opened = OpenDataFile::open(self.vfs, &path)?;
        let is_wanted = |name: &str| name == TIME_COLUMN || self.table.tags().any(|tag| &*tag.name == name);
        let fields = opened.footer().schema().fields().iter().enumerate();
        let wanted = fields.filter(|(_, field)| is_wanted(field.name())).map(|(index, _)| index);
        let mask = ProjectionMask::roots(opened.footer().parquet_schema(), wanted.collect::<Vec<_>>());
        for batch in opened.rows(mask, BATCH_ROWS)? {
            let batch = batch?;
            let Some(times) = batch.column_by_name(TIME_COLUMN) else { continue };
            let times = times.as_primitive::<TimestampNanosecondType>().values();
            let hashes = self.hashes(&batch, times);
            for (row, (time, hash)) in times.iter().zip(hashes).enumerate() {
                let at = self.contested.partition_point(|(_, last)| last < time);
                if self.contested.get(at).is_some_and(|(first, _)| first <= time) {
                    take(&batch, row, hash);
                }
            }
        }
        Ok(())
    }

    /// Hashes the primary keys of all rows: times and values of tags, each value once.
    fn hashes(&self, batch: &RecordBatch, times: &[i64]) -> Vec<u64> {
        let hasher = FixedState::with_seed(0x41_52_43);
        let mut sums = vec![0_u64; times.len()];
        for tag in self.table.tags() {
            let Some(column) =
                batch.column_by_name(&tag.name).and_then(|column| column.as_dictionary_opt::<Int32Type>())
            else {
                continue;
            };
            let values = column.values().as_string::<i32>();
            let of_value: Vec<u64> =
                values.iter().map(|value| value.map_or(0, |value| hasher.hash_one((&*tag.name, value)))).collect();
            for (sum, key) in sums.iter_mut().zip(column.keys_iter()) {
                let hash = key.and_then(|key| of_value.get(key)).copied().unwrap_or(0);
                *sum = sum.wrapping_add(hash);
            }
        }
        sums.into_iter().zip(times).map(|(sum, time)| hasher.hash_one((sum, *time))).collect()
    }
}

fn primary_key(table: &TableSchema, batch: &RecordBatch, row: usize) -> PrimaryKey {
    let value = |name: &str| {
        let column = batch.column_by_name(name)?.as_dictionary_opt::<Int32Type>()?;
        let value = column.downcast_dict::<arrow::array::StringArray>()?;
        let key = column.key(row)?;
        value.values().is_valid(key).then(|| value.values().value(key).to_owned())
    };
    let tags = table.tags().filter_map(|tag| Some((tag.name.to_string(), value(&tag.name)?)));
    let time = batch
        .column_by_name(TIME_COLUMN)
        .and_then(|times| times.as_primitive::<TimestampNanosecondType>().values().get(row).copied());
    (tags.collect(), time.unwrap_or(0))
}

fn show((tags, time): &PrimaryKey) -> String {
    let tags: String = tags.iter().map(|(name, value)| format!("{name}={value},")).collect();
    format!("{{{tags}time={time}}}")
}
