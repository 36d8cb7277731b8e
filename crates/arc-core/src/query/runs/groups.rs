//! The groups that one partition holds until it gives them on.

use std::{mem, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, RecordBatch},
    compute::concat,
    datatypes::SchemaRef,
};
use datafusion::{common::Result, physical_plan::aggregates::AggregateExec};

use super::{
    function::{Function, Slots},
    keys::Keys,
};

/// Groups in the order in which they came; the same may be there several times.
#[derive(Debug)]
pub(super) struct Groups {
    keys: Arc<Keys>,
    functions: Vec<Function>,
    schema: SchemaRef,
    /// The keys of the groups: of each batch, column by column.
    values: Vec<Vec<ArrayRef>>,
    count: usize,
    rows: usize,
}

impl Groups {
    pub(super) fn new(partial: &AggregateExec, keys: Arc<Keys>, schema: SchemaRef) -> Result<Self> {
        let functions = partial.aggr_expr().iter().zip(partial.filter_expr());
        let functions = functions.map(|(function, filter)| Function::new(function, filter.as_ref()));
        Ok(Self { keys, functions: functions.collect::<Result<_>>()?, schema, values: Vec::new(), count: 0, rows: 0 })
    }

    /// Takes a batch of the input; returns how many runs it has.
    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<usize> {
        let runs = self.keys.runs(batch);
        let mut slots = Slots::new(self.count, &runs);
        self.values.push(self.keys.values(batch, &runs)?);
        for function in &mut self.functions {
            function.add(batch, &runs, &mut slots)?;
        }
        self.count += runs.count();
        self.rows += batch.num_rows();
        Ok(runs.count())
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Returns whether the runs of these groups are so short that a hash table does better.
    pub(super) fn are_short(&self) -> bool {
        self.rows < self.count * self.keys.rows_in_run()
    }

    pub(super) fn size(&self) -> usize {
        let keys = self.values.iter().flatten().map(|keys| keys.get_array_memory_size()).sum::<usize>();
        keys + self.functions.iter().map(Function::size).sum::<usize>()
    }

    /// Returns all groups, with the states of their aggregates, and forgets them.
    pub(super) fn take(&mut self) -> Result<RecordBatch> {
        let values = mem::take(&mut self.values);
        let width = values.first().map_or(0, Vec::len);
        let mut columns = Vec::with_capacity(self.schema.fields().len());
        for slot in 0..width {
            let parts: Vec<&dyn Array> = values.iter().filter_map(|keys| keys.get(slot)).map(|keys| &**keys).collect();
            columns.push(concat(&parts)?);
        }
        for function in &mut self.functions {
            columns.extend(function.take()?);
        }
        (self.count, self.rows) = (0, 0);
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}
