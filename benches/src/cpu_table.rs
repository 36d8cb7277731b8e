//! A day of host metrics as record batches: the table that queries and flushes are measured on.
//!
//! Every host reports every `interval` from 2025-01-01T00:00:00Z on; tags that never change, fields
//! that walk between 0 and 100, first floats, then integers: how many of each says a [`CpuShape`].
//! Rows are in order of arrival.

use std::{sync::Arc, time::Duration};

use arrow::{
    array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray},
    datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit},
    error::ArrowError,
};

use crate::{
    hosts::{CPU_FIELDS, Host, TAG_KEYS},
    random::Random,
    walk::{Walk, two_decimals, whole},
};

/// 2025-01-01T00:00:00Z.
const START_NS: i64 = 1_735_689_600_000_000_000;

/// How many columns of which kind a table has, at most ten tags and ten fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuShape {
    /// The first of [`TAG_KEYS`].
    pub tags: usize,
    /// Fields that are floats, the first of [`CPU_FIELDS`].
    pub floats: usize,
    /// Fields that are integers.
    pub integers: usize,
    /// Whether floats keep all digits; they have two decimals otherwise.
    pub full_digits: bool,
}

impl CpuShape {
    /// Ten tags, five floats of two decimals, five integers.
    pub const MIXED: Self = Self { tags: 10, floats: 5, integers: 5, full_digits: false };
    /// One tag, three floats.
    pub const IOT: Self = Self { tags: 1, floats: 3, integers: 0, full_digits: false };
    /// Two tags, two floats.
    pub const SHORT: Self = Self { tags: 2, floats: 2, integers: 0, full_digits: false };
    /// Ten tags, ten integers.
    pub const TSBS: Self = Self { tags: 10, floats: 0, integers: 10, full_digits: false };
    /// Ten tags, ten floats that do not repeat.
    pub const FLOATS: Self = Self { tags: 10, floats: 10, integers: 0, full_digits: true };

    fn fields(self) -> usize {
        self.floats + self.integers
    }
}

/// The rows of a number of hosts, tick after tick, without end.
#[derive(Debug)]
pub struct CpuTable {
    hosts: Vec<(Host, Walk)>,
    shape: CpuShape,
    schema: SchemaRef,
    time_ns: i64,
    interval_ns: i64,
}

impl CpuTable {
    /// Starts a table of [`CpuShape::MIXED`]; the same seed gives the same rows.
    #[must_use]
    pub fn new(seed: u64, hosts: usize, interval: Duration) -> Self {
        Self::with_shape(CpuShape::MIXED, seed, hosts, interval)
    }

    /// Starts a table.
    #[must_use]
    pub fn with_shape(shape: CpuShape, seed: u64, hosts: usize, interval: Duration) -> Self {
        let walk = |number| Walk::new(Random::part(seed, (1 << 40) + number as u64), shape.fields());
        Self {
            hosts: (0..hosts).map(|number| (Host::new(seed, number), walk(number))).collect(),
            shape,
            schema: Arc::new(schema(shape)),
            time_ns: START_NS,
            interval_ns: i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX),
        }
    }

    /// Makes the rows of the next `ticks` reports of all hosts.
    ///
    /// # Errors
    ///
    /// If the columns do not fit their schema, which would be a bug.
    pub fn take(&mut self, ticks: usize) -> Result<RecordBatch, ArrowError> {
        let rows = ticks * self.hosts.len();
        let mut times = Vec::with_capacity(rows);
        let mut fields = vec![Vec::with_capacity(rows); self.shape.fields()];
        for _ in 0..ticks {
            for (_, walk) in &mut self.hosts {
                times.push(self.time_ns);
                fields.iter_mut().zip(walk.advance()).for_each(|(column, value)| column.push(*value));
            }
            self.time_ns += self.interval_ns;
        }
        let mut columns: Vec<ArrayRef> = vec![Arc::new(TimestampNanosecondArray::from(times).with_timezone("UTC"))];
        for index in 0..self.shape.tags {
            let values: Vec<&str> =
                self.hosts.iter().filter_map(|(host, _)| host.tags.get(index)).map(String::as_str).collect();
            columns.push(Arc::new(StringArray::from(values.repeat(ticks))));
        }
        for (index, values) in fields.into_iter().enumerate() {
            columns.push(if index < self.shape.floats {
                let digits = if self.shape.full_digits { |value| value } else { two_decimals };
                Arc::new(Float64Array::from_iter_values(values.into_iter().map(digits)))
            } else {
                Arc::new(Int64Array::from_iter_values(values.into_iter().map(whole)))
            });
        }
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
    }
}

fn schema(shape: CpuShape) -> Schema {
    let time = Field::new("time", DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())), false);
    let tags = TAG_KEYS.into_iter().take(shape.tags).map(|key| Field::new(key, DataType::Utf8, true));
    let of_field = |index| if index < shape.floats { DataType::Float64 } else { DataType::Int64 };
    let fields = CPU_FIELDS.into_iter().take(shape.fields()).enumerate();
    let fields = fields.map(|(index, key)| Field::new(key, of_field(index), true));
    Schema::new(std::iter::once(time).chain(tags).chain(fields).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array as _, AsArray as _};

    use super::*;

    #[test]
    fn rows_are_in_order_of_arrival_and_go_on_in_the_next_batch() {
        let mut table = CpuTable::new(42, 3, Duration::from_secs(10));
        let (first, second) = (table.take(2).unwrap(), table.take(1).unwrap());
        assert_eq!((first.num_rows(), first.num_columns(), second.num_rows()), (6, 21, 3));
        let times = |batch: &RecordBatch| {
            let column = batch.column(0).as_primitive::<arrow::datatypes::TimestampNanosecondType>().clone();
            column.values().iter().map(|time| (time - START_NS) / 1_000_000_000).collect::<Vec<_>>()
        };
        assert_eq!(times(&first), [0, 0, 0, 10, 10, 10]);
        assert_eq!(times(&second), [20, 20, 20]);
        let names: Vec<_> = first.column(1).as_string::<i32>().iter().flatten().collect();
        assert_eq!(names, ["host_0", "host_1", "host_2", "host_0", "host_1", "host_2"]);
        assert_eq!(first.columns().iter().map(|column| column.null_count()).sum::<usize>(), 0);
    }

    #[test]
    fn a_seed_names_one_table() {
        let batch = |seed| CpuTable::new(seed, 2, Duration::from_secs(1)).take(5).unwrap();
        assert_eq!(batch(1), batch(1));
        assert_ne!(batch(1), batch(2));
    }
}
