//! Durability `remote` and a store that is taken over: what was acknowledged is there exactly once.

mod doors;
mod double;
mod outages;
#[cfg(feature = "object-store-aws")]
mod s3;
mod takeover;

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use arrow::{
    array::{ArrayRef, AsArray, Int64Array, RecordBatch},
    datatypes::Int64Type,
};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use self::double::Seen;
use crate::{
    Durability, Engine, EngineBuilder, Options, PendingWrite, Result, WriteOptions,
    datafile::read_whole,
    store::{ObjectStorage, StoreOptions},
};

/// An engine that flushes and merges only when told to, and puts as soon as it can.
fn builder(path: &Path, store: &Arc<Seen>, timeout: Duration) -> EngineBuilder {
    let options =
        StoreOptions { request_timeout: timeout, tries: 4, first_pause: Duration::ZERO, ..StoreOptions::default() };
    let storage = ObjectStorage::new(Arc::clone(store) as _, "p").options(options).take_over(true);
    let options = Options {
        flush_after: Duration::from_secs(1 << 30),
        compaction: false,
        history: Duration::ZERO,
        wal_segment_bytes: 64 << 10,
        remote_interval: Duration::ZERO,
        ..Options::default()
    };
    Engine::builder(path).options(options).object_store(storage)
}

/// A machine with a disk, whose store answers or hangs for good.
fn open(path: &Path, store: &Arc<Seen>) -> Engine {
    builder(path, store, Duration::from_secs(60)).open().unwrap()
}

/// Queues a row with this number for a table that merges no rows: one that is stored twice is there twice.
fn submit(engine: &Engine, n: i64, durability: Durability) -> Result<PendingWrite> {
    let column = |value: i64| -> ArrayRef { Arc::new(Int64Array::from(vec![value])) };
    let batch = RecordBatch::try_from_iter([("time", column(n)), ("n", column(n))]).unwrap();
    engine.submit_batches("d", "rows", &[batch], &WriteOptions::new().durability(durability))
}

fn write(engine: &Engine, n: i64, durability: Durability) -> Result<()> {
    let written = submit(engine, n, durability)?.wait()?;
    assert_eq!((written.points, written.durability), (1, durability));
    Ok(())
}

/// Returns the numbers of all rows, and how often each is there.
fn stored(engine: &Engine) -> BTreeMap<i64, usize> {
    let Ok(view) = engine.view("d", "rows") else { return BTreeMap::new() };
    let shared = engine.writer().unwrap();
    let in_file = |file: &Arc<crate::model::DataFile>| {
        let bytes = Bytes::from(read_whole(shared.vfs.as_ref(), &shared.root, file).unwrap());
        let batches = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap().build().unwrap();
        batches.map(std::result::Result::unwrap).collect::<Vec<_>>()
    };
    let buffered = view.buffers.iter().map(|part| part.batch().unwrap());
    let mut found = BTreeMap::new();
    for batch in view.files.iter().flat_map(in_file).chain(buffered) {
        for n in batch.column_by_name("n").unwrap().as_primitive::<Int64Type>().values() {
            *found.entry(*n).or_default() += 1;
        }
    }
    found
}

/// Checks that all that was acknowledged is there once, and of the rest nothing more than once or unasked.
fn check(found: &BTreeMap<i64, usize>, acknowledged: &[i64], sent: i64, case: &str) {
    for n in acknowledged {
        assert_eq!(found.get(n), Some(&1), "{case}: row {n} was acknowledged; there are {found:?}");
    }
    for (n, count) in found {
        assert!(*count == 1 && (0..sent).contains(n), "{case}: row {n} is there {count} times");
    }
}
