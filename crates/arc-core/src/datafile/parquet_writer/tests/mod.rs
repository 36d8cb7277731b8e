//! Tests of the writer as its users see it; what they share.

mod content;
mod failing;
mod rows;
mod splitting;
mod statistics;

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow::{
    array::{ArrayRef, Int64Array, RecordBatch, StringArray},
    compute::concat_batches,
    datatypes::{DataType, Field, Schema, SchemaRef},
};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::datafile::ParquetOptions;

/// A writer may be handed to another thread.
const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<super::ParquetWriter>();
};

/// Numbers that are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn count(&mut self, limit: u64) -> usize {
        usize::try_from(self.below(limit)).unwrap()
    }
}

fn schema(columns: &[(&str, DataType)]) -> SchemaRef {
    let fields: Vec<Field> = columns.iter().map(|(name, t)| Field::new(*name, t.clone(), true)).collect();
    Arc::new(Schema::new(fields))
}

/// Small enough that some thousand rows are many pages and row groups.
fn small_layout() -> ParquetOptions {
    ParquetOptions { row_group_rows: 700, page_rows: 64, gather_bytes: 20_000, ..ParquetOptions::default() }
}

/// Returns all rows of a file.
fn read(path: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let schema = Arc::clone(reader.schema());
    let batches: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
    concat_batches(&schema, &batches).unwrap()
}

/// Returns rows of keys and numbers: so many of one key each time.
fn groups(sizes: &[usize]) -> RecordBatch {
    let keys = sizes.iter().enumerate().flat_map(|(key, size)| std::iter::repeat_n(format!("key {key}"), *size));
    let keys: Vec<String> = keys.collect();
    let keys: ArrayRef = Arc::new(StringArray::from_iter_values(keys));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..keys.len() as i64));
    RecordBatch::try_from_iter_with_nullable([("key", keys, true), ("number", numbers, true)]).unwrap()
}

/// Returns what is in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn paths<T>(files: &[super::WrittenFile<T>]) -> Vec<PathBuf> {
    files.iter().map(|file| file.path.clone()).collect()
}
