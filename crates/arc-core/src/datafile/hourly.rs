//! Aggregates of a data file by series and hour, kept in the file between its rows and its tail.
//!
//! Questions by the hour and coarser are answered from them without a look at the rows. Other
//! readers pass over them: nothing in the footer points there, the manifest does. What they say of a
//! cell, an hour of a series, depends on its rows alone, bit by bit, however these come in batches;
//! so verification can compare them. The form is in docs/format.md, "Aggregates by hour".

use std::{ops::Range, sync::Arc};

use arrow::{
    array::{
        Array, ArrayAccessor, ArrayRef, AsArray, Int64Array, PrimitiveArray, RecordBatch, StringArray,
        StringDictionaryBuilder, TimestampNanosecondArray, UInt32Array,
    },
    buffer::NullBuffer,
    compute::concat_batches,
    datatypes::{
        ArrowPrimitiveType, DataType, Field, Float64Type, Int32Type, Int64Type, Schema, TimestampNanosecondType,
        UInt64Type,
    },
};
use bytes::Bytes;
use parquet::{
    arrow::{ArrowWriter, arrow_reader::ParquetRecordBatchReaderBuilder},
    basic::{Compression, Encoding, ZstdLevel},
    errors::{ParquetError, Result as ParquetResult},
    file::properties::{EnabledStatistics, WriterProperties},
    schema::types::ColumnPath,
};

use crate::{arrays::float_order, model::TIME_COLUMN};

/// The times that a cell spans.
pub(crate) const HOUR_NS: i64 = 3_600_000_000_000;
/// Rows of a cell, on average, from which the aggregates take less than a twenty-fifth of the rows.
const MIN_CELL_ROWS: usize = 256;
/// Rows before which nothing is said of their average.
const MIN_ROWS: usize = 1 << 16;
/// Bytes that the aggregates of one file may take in memory.
const MAX_BYTES: usize = 32 << 20;
/// Bytes of a cell of one column: rows with a value, sum (in 16 bytes), least, greatest.
const CELL_BYTES: usize = 40;

/// Names of the block's columns. Those of tags and values have the name of the column after them.
pub(crate) const HOUR: &str = "hour";
pub(crate) const ROWS: &str = "rows";
pub(crate) const TAG: &str = "tag:";
pub(crate) const VALUES: &str = "values:";
pub(crate) const SUM: &str = "sum:";
pub(crate) const LEAST: &str = "min:";
pub(crate) const GREATEST: &str = "max:";

/// Gathers the aggregates of a file's rows, which come in the file's order.
pub(crate) struct HourlyAggregator {
    tags: Vec<(usize, StringDictionaryBuilder<Int32Type>)>,
    /// The tags of the cell under way.
    series: Vec<Option<String>>,
    hours: Vec<i64>,
    rows: Vec<u32>,
    numbers: Vec<(usize, String, Box<dyn ColumnCells>)>,
    names: Vec<String>,
    seen: usize,
    /// Whether there are too many cells, or a sum that is out of bounds.
    is_useless: bool,
}

impl HourlyAggregator {
    /// Returns one for rows of `schema` in order of `sorted_by`; `None` where that is not the order
    /// of (tags, time).
    pub(crate) fn new(schema: &Schema, sorted_by: &[String]) -> Option<Self> {
        let (last, tags) = sorted_by.split_last()?;
        let has_time = last == TIME_COLUMN && schema.fields().first().is_some_and(|time| time.name() == TIME_COLUMN);
        let tags: Vec<usize> = tags.iter().filter_map(|tag| schema.index_of(tag).ok()).collect();
        let is_tag = |index: &usize| matches!(schema.field(*index).data_type(), DataType::Dictionary(..));
        if !has_time || !tags.iter().all(is_tag) {
            return None;
        }
        let numbers = schema.fields().iter().enumerate().filter(|(index, _)| !tags.contains(index));
        let numbers = numbers.filter_map(|(index, field)| {
            let cells: Box<dyn ColumnCells> = match field.data_type() {
                DataType::Int64 => Box::new(NumberCells::<Int64Type>::default()),
                DataType::UInt64 => Box::new(NumberCells::<UInt64Type>::default()),
                DataType::Float64 => Box::new(NumberCells::<Float64Type>::default()),
                _ => return None,
            };
            Some((index, field.name().clone(), cells))
        });
        Some(Self {
            numbers: numbers.collect(),
            names: tags.iter().map(|index| schema.field(*index).name().clone()).collect(),
            series: vec![None; tags.len()],
            tags: tags.into_iter().map(|index| (index, StringDictionaryBuilder::new())).collect(),
            hours: Vec::new(),
            rows: Vec::new(),
            seen: 0,
            is_useless: false,
        })
    }

    /// Takes the next rows.
    pub(crate) fn push(&mut self, batch: &RecordBatch) {
        if self.is_useless || batch.num_rows() == 0 {
            return;
        }
        self.is_useless = self.try_push(batch).is_none();
        self.seen += batch.num_rows();
        // Cells only become more: in whatever batches rows come, the end is the same.
        let bytes = self.hours.len() * CELL_BYTES * (self.numbers.len() + self.tags.len() + 1);
        self.is_useless |= bytes > MAX_BYTES;
    }

    /// Returns whether the rows so far say that there will be no aggregates worth their bytes.
    pub(crate) fn is_hopeless(&self) -> bool {
        self.is_useless || (self.seen >= MIN_ROWS && self.cells_are_small())
    }

    fn cells_are_small(&self) -> bool {
        self.seen < self.hours.len() * MIN_CELL_ROWS
    }

    /// Returns `None` for columns of other types than announced, and where a sum is out of bounds.
    fn try_push(&mut self, batch: &RecordBatch) -> Option<()> {
        let times = batch.column(0).as_primitive_opt::<TimestampNanosecondType>()?;
        for run in self.runs(batch, times)? {
            let first = run.start;
            let hour = times.values().get(first)?.div_euclid(HOUR_NS);
            let is_new = self.enter(batch, first, hour)?;
            if let Some(rows) = self.rows.last_mut() {
                *rows = rows.checked_add(u32::try_from(run.len()).ok()?)?;
            }
            for (index, _, cells) in &mut self.numbers {
                cells.add(batch.column(*index), run.clone(), is_new)?;
            }
        }
        Some(())
    }

    /// Returns the rows that lie in one cell each: where neither an index of a tag nor the hour changes.
    fn runs(&self, batch: &RecordBatch, times: &TimestampNanosecondArray) -> Option<Vec<Range<usize>>> {
        let tags = self.tags.iter().map(|(index, _)| batch.column(*index).as_dictionary_opt::<Int32Type>());
        let tags = tags.map(|tag| Some(tag?.keys())).collect::<Option<Vec<_>>>()?;
        let mut runs = Vec::new();
        let mut hour = 0..0;
        let mut start = 0;
        for (row, time) in times.values().iter().enumerate() {
            let is_same = hour.contains(time)
                && tags.iter().all(|tag| match (tag.is_null(row), tag.is_null(row - 1)) {
                    (false, false) => tag.values().get(row) == tag.values().get(row - 1),
                    (now, before) => now == before,
                });
            if is_same {
                continue;
            }
            if row > 0 {
                runs.push(start..row);
            }
            start = row;
            let begins = time.checked_sub(time.rem_euclid(HOUR_NS))?;
            hour = begins..begins.checked_add(HOUR_NS)?;
        }
        runs.push(start..times.len());
        Some(runs)
    }

    /// Goes on to the cell of a row; returns whether that is a new one.
    fn enter(&mut self, batch: &RecordBatch, row: usize, hour: i64) -> Option<bool> {
        let mut is_same = self.hours.last() == Some(&hour);
        for ((index, _), known) in self.tags.iter().zip(&mut self.series) {
            let tag = batch.column(*index).as_dictionary_opt::<Int32Type>()?;
            let tag = tag.downcast_dict::<StringArray>()?;
            let tag = (!tag.is_null(row)).then(|| tag.value(row));
            if known.as_deref() != tag {
                *known = tag.map(str::to_owned);
                is_same = false;
            }
        }
        if is_same {
            return Some(false);
        }
        for ((_, builder), tag) in self.tags.iter_mut().zip(&self.series) {
            builder.append_option(tag.as_deref());
        }
        self.hours.push(hour);
        self.rows.push(0);
        Some(true)
    }

    /// Returns the aggregates, if they are worth it.
    pub(crate) fn finish(self) -> Option<RecordBatch> {
        if self.is_useless || self.seen < MIN_ROWS || self.cells_are_small() { None } else { self.cells() }
    }

    /// Returns the aggregates of all rows; `None` if a sum is out of bounds.
    fn cells(mut self) -> Option<RecordBatch> {
        let mut columns: Vec<(String, ArrayRef)> = Vec::new();
        for (name, (_, tag)) in self.names.iter().zip(&mut self.tags) {
            columns.push((format!("{TAG}{name}"), Arc::new(tag.finish())));
        }
        columns.push((HOUR.to_owned(), Arc::new(Int64Array::from(self.hours))));
        let rows = UInt32Array::from(self.rows);
        for (_, name, cells) in self.numbers {
            let of_column = cells.finish(&rows)?;
            columns.extend(of_column.into_iter().map(|(kind, array)| (format!("{kind}{name}"), array)));
        }
        columns.push((ROWS.to_owned(), Arc::new(rows)));
        let fields = columns.iter().map(|(name, array)| Field::new(name, array.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        RecordBatch::try_new(schema, columns.into_iter().map(|(_, array)| array).collect()).ok()
    }
}

/// The aggregates of one column, cell by cell.
trait ColumnCells {
    /// Takes rows of the cell under way, which `is_new` begins. `None` if they are of another type.
    fn add(&mut self, values: &ArrayRef, rows: Range<usize>, is_new: bool) -> Option<()>;

    /// Returns the columns of all cells, by the beginning of their names; `None` if a sum is out of
    /// bounds.
    fn finish(self: Box<Self>, rows: &UInt32Array) -> Option<Vec<(&'static str, ArrayRef)>>;
}

/// Numbers that have aggregates.
trait Number: ArrowPrimitiveType {
    /// Parts of a sum.
    type Sum: Copy + Default;
    type Rank: Copy + Default + Ord;

    /// Adds the value that is the `at`th of its cell.
    fn add(sum: &mut Self::Sum, value: Self::Native, at: u32);
    /// Returns a sum, if it is in bounds.
    fn total(sum: Self::Sum) -> Option<Self::Native>;
    /// Returns the place of a value in the order that `min` and `max` have.
    fn rank(value: Self::Native) -> Self::Rank;
    /// Returns the value of a rank.
    fn ranked(rank: Self::Rank) -> Self::Native;
}

macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl Number for $integer {
            type Sum = i128;
            type Rank = Self::Native;

            fn add(sum: &mut i128, value: Self::Native, _at: u32) {
                *sum += i128::from(value);
            }

            fn total(sum: i128) -> Option<Self::Native> {
                sum.try_into().ok()
            }

            fn rank(value: Self::Native) -> Self::Native {
                value
            }

            fn ranked(rank: Self::Native) -> Self::Native {
                rank
            }
        }
    )*};
}

integers!(Int64Type, UInt64Type);

impl Number for Float64Type {
    /// Four sums that take turns: no addition waits for the one before, and the order is that of the
    /// rows alone.
    type Sum = [f64; 4];
    type Rank = i64;

    fn add(sum: &mut [f64; 4], value: f64, at: u32) {
        if let Some(lane) = sum.get_mut((at % 4) as usize) {
            *lane += value;
        }
    }

    fn total([a, b, c, d]: [f64; 4]) -> Option<f64> {
        Some((a + b) + (c + d))
    }

    fn rank(value: f64) -> i64 {
        float_order::rank(value)
    }

    fn ranked(rank: i64) -> f64 {
        float_order::float(rank)
    }
}

struct NumberCells<T: Number> {
    values: Vec<u32>,
    sums: Vec<T::Sum>,
    least: Vec<T::Rank>,
    greatest: Vec<T::Rank>,
}

impl<T: Number> Default for NumberCells<T> {
    fn default() -> Self {
        Self { values: Vec::new(), sums: Vec::new(), least: Vec::new(), greatest: Vec::new() }
    }
}

impl<T: Number> NumberCells<T> {
    fn add_all(&mut self, values: impl Iterator<Item = T::Native>) -> Option<()> {
        let (count, sum) = (self.values.last_mut()?, self.sums.last_mut()?);
        let (least, greatest) = (self.least.last_mut()?, self.greatest.last_mut()?);
        for value in values {
            let rank = T::rank(value);
            if *count == 0 {
                (*least, *greatest) = (rank, rank);
            }
            (*least, *greatest) = (rank.min(*least), rank.max(*greatest));
            T::add(sum, value, *count);
            *count += 1;
        }
        Some(())
    }
}

impl<T: Number> ColumnCells for NumberCells<T> {
    fn add(&mut self, values: &ArrayRef, rows: Range<usize>, is_new: bool) -> Option<()> {
        let values = values.as_primitive_opt::<T>()?;
        if is_new {
            self.values.push(0);
            self.sums.push(T::Sum::default());
            self.least.push(T::Rank::default());
            self.greatest.push(T::Rank::default());
        }
        if values.null_count() == 0 {
            return self.add_all(values.values().get(rows)?.iter().copied());
        }
        self.add_all(rows.filter(|row| !values.is_null(*row)).filter_map(|row| values.values().get(row).copied()))
    }

    fn finish(self: Box<Self>, rows: &UInt32Array) -> Option<Vec<(&'static str, ArrayRef)>> {
        let Self { values, sums, least, greatest } = *self;
        let is_never_null = values == *rows.values();
        let nulls = NullBuffer::from_iter(values.iter().map(|count| *count > 0));
        let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
        let column = |of_cells: Vec<T::Native>| -> ArrayRef {
            Arc::new(PrimitiveArray::<T>::new(of_cells.into(), nulls.clone()))
        };
        let ranked = |ranks: Vec<T::Rank>| column(ranks.into_iter().map(T::ranked).collect());
        let sums = column(sums.into_iter().map(T::total).collect::<Option<_>>()?);
        let mut columns = vec![(SUM, sums), (LEAST, ranked(least)), (GREATEST, ranked(greatest))];
        if !is_never_null {
            columns.push((VALUES, Arc::new(UInt32Array::from(values))));
        }
        Some(columns)
    }
}

/// Returns the aggregates of so many cells that bytes of a block say.
pub(super) fn decode(block: Bytes, cells: usize) -> ParquetResult<RecordBatch> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(block)?;
    // Room for as many as it says it has would be made at once.
    if usize::try_from(reader.metadata().file_metadata().num_rows()) != Ok(cells) {
        return Err(ParquetError::General(format!("the aggregates by hour are not of {cells} cells")));
    }
    let (schema, reader) = (Arc::clone(reader.schema()), reader.with_batch_size(cells.max(1)).build()?);
    let batches = reader.collect::<Result<Vec<_>, _>>()?;
    Ok(concat_batches(&schema, &batches)?)
}

/// Returns the bytes of a block.
pub(super) fn encode(aggregates: &RecordBatch) -> ParquetResult<Vec<u8>> {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_max_row_group_row_count(Some(aggregates.num_rows().max(1)));
    for field in aggregates.schema_ref().fields() {
        let path = ColumnPath::from(vec![field.name().clone()]);
        if field.name().starts_with(SUM) && field.data_type() == &DataType::Float64 {
            // Bits of a sum of floats are noise.
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_compression(path, Compression::UNCOMPRESSED);
        } else if matches!(field.data_type(), DataType::Int64 | DataType::UInt64) {
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, aggregates.schema(), Some(properties.build()))?;
    writer.write(aggregates)?;
    writer.close()?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use arrow::{
        array::{DictionaryArray, Float64Array, UInt64Array},
        util::display::array_value_to_string,
    };

    use super::*;

    /// A row: the tag, hour, minute, `f`, `i`, `u`.
    type Row<'a> = (Option<&'a str>, i64, i64, Option<f64>, Option<i64>, u64);

    fn rows(values: &[Row<'_>]) -> RecordBatch {
        let times = values.iter().map(|(_, hour, minute, ..)| hour * HOUR_NS + minute * HOUR_NS / 60);
        let hosts: DictionaryArray<Int32Type> = values.iter().map(|(host, ..)| *host).collect();
        let columns: [(&str, ArrayRef); 5] = [
            (TIME_COLUMN, Arc::new(TimestampNanosecondArray::from_iter_values(times))),
            ("host", Arc::new(hosts)),
            ("f", Arc::new(Float64Array::from_iter(values.iter().map(|row| row.3)))),
            ("i", Arc::new(Int64Array::from_iter(values.iter().map(|row| row.4)))),
            ("u", Arc::new(UInt64Array::from_iter_values(values.iter().map(|row| row.5)))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    fn aggregator(batch: &RecordBatch) -> HourlyAggregator {
        HourlyAggregator::new(batch.schema_ref(), &["host".to_owned(), TIME_COLUMN.to_owned()]).unwrap()
    }

    fn cells(batches: &[RecordBatch]) -> Option<RecordBatch> {
        let mut aggregator = aggregator(&batches[0]);
        batches.iter().for_each(|batch| aggregator.push(batch));
        aggregator.cells()
    }

    #[test]
    fn cells_have_what_their_rows_have_however_these_come() {
        let all = rows(&[
            (None, -1, 59, None, None, 0),
            (None, 0, 0, Some(-0.0), Some(1), 1),
            (Some("a"), 0, 0, Some(0.1), Some(i64::MAX), u64::MAX),
            (Some("a"), 0, 1, Some(0.2), Some(-5), 0),
            (Some("a"), 0, 2, None, Some(-1), 0),
            (Some("a"), 0, 3, Some(0.3), None, 0),
            (Some("a"), 1, 0, Some(f64::NAN), None, 7),
            (Some("a"), 1, 59, Some(-f64::INFINITY), None, 8),
            (Some("b"), 1, 30, Some(-1.5), Some(-2), 9),
        ]);
        let whole = cells(std::slice::from_ref(&all)).unwrap();
        let names: Vec<&str> = whole.schema_ref().fields().iter().map(|field| field.name().as_str()).collect();
        let of_numbers = ["sum:f", "min:f", "max:f", "values:f", "sum:i", "min:i", "max:i", "values:i"];
        let expected = [["tag:host", "hour"].as_slice(), &of_numbers, &["sum:u", "min:u", "max:u", "rows"]].concat();
        assert_eq!(names, expected, "`u` is never null");
        let cells_of = |name: &str| {
            let column = whole.column_by_name(name).unwrap();
            (0..whole.num_rows()).map(|row| array_value_to_string(column, row).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(cells_of("tag:host"), ["", "", "a", "a", "b"]);
        assert_eq!(cells_of("hour"), ["-1", "0", "0", "1", "1"]);
        assert_eq!(cells_of("rows"), ["1", "1", "4", "2", "1"]);
        assert_eq!(cells_of("sum:f"), ["", "0.0", &(0.1 + 0.2 + (0.3 + 0.0)).to_string(), "NaN", "-1.5"]);
        assert_eq!(cells_of("min:f"), ["", "0.0", "0.1", "-inf", "-1.5"]);
        assert_eq!(cells_of("max:f"), ["", "0.0", "0.3", "NaN", "-1.5"]);
        assert_eq!(cells_of("values:f"), ["0", "1", "3", "2", "1"]);
        assert_eq!(cells_of("sum:i"), ["", "1", &(i64::MAX - 6).to_string(), "", "-2"]);
        assert_eq!(cells_of("values:i"), ["0", "1", "3", "0", "1"]);
        assert_eq!(cells_of("sum:u"), ["0", "1", &u64::MAX.to_string(), "15", "9"]);
        for size in 1..all.num_rows() {
            let pieces = (0..all.num_rows()).step_by(size);
            let pieces: Vec<_> = pieces.map(|at| all.slice(at, size.min(all.num_rows() - at))).collect();
            let parts = cells(&pieces).unwrap();
            assert_eq!(parts, whole, "in batches of {size}");
            let bits = |batch: &RecordBatch| {
                batch["sum:f"].as_primitive::<Float64Type>().iter().map(|sum| sum.map(f64::to_bits)).collect::<Vec<_>>()
            };
            assert_eq!(bits(&parts), bits(&whole), "in batches of {size}");
        }
        let block = Bytes::from(encode(&whole).unwrap());
        assert_eq!(decode(block.clone(), whole.num_rows()).unwrap(), whole);
        assert!(decode(block, 4).unwrap_err().to_string().contains("not of 4 cells"));
    }

    #[test]
    fn a_sum_that_its_type_has_not_leaves_no_cells() {
        let row = |i, u| (Some("a"), 0, 0, None, Some(i), u);
        assert!(cells(&[rows(&[row(i64::MAX, 1), row(1, 1), row(-1, 1)])]).is_some());
        assert!(cells(&[rows(&[row(i64::MAX, 1), row(1, 1)])]).is_none());
        assert!(cells(&[rows(&[row(1, u64::MAX), row(1, 1)])]).is_none());
        let mut ends = aggregator(&rows(&[row(1, 1)]));
        let times = rows(&[row(1, 1)]);
        let first: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![i64::MIN]));
        let columns = [first].into_iter().chain(times.columns().iter().skip(1).cloned()).collect();
        ends.push(&RecordBatch::try_new(times.schema(), columns).unwrap());
        assert!(ends.is_useless, "its hour begins before all times");
    }

    #[test]
    fn there_are_none_of_few_rows_and_of_small_cells() {
        let minutes = |count: usize, of_hour: i64| {
            let row = |n| {
                let n = i64::try_from(n).unwrap();
                (Some("a"), n / of_hour, n % of_hour * 60 / of_hour, Some(1.0), Some(1), 1)
            };
            rows(&(0..count).map(row).collect::<Vec<_>>())
        };
        let finished = |batch: &RecordBatch| {
            let mut aggregator = aggregator(batch);
            aggregator.push(batch);
            aggregator.finish().map(|cells| cells.num_rows())
        };
        assert_eq!(finished(&minutes(MIN_ROWS, 256)), Some(256));
        assert_eq!(finished(&minutes(MIN_ROWS, 255)), None);
        assert_eq!(finished(&minutes(MIN_ROWS - 1, 256)), None);
    }

    #[test]
    fn cells_that_are_small_at_first_are_the_same_in_whatever_batches_they_come() {
        let row = |n: usize| {
            // A row an hour, then as many in one hour as make up for it.
            let hour = i64::try_from(n.min(500)).unwrap();
            (Some("a"), hour, 0, Some(1.0), Some(1), 1)
        };
        let all = rows(&(0..501 * MIN_CELL_ROWS).map(row).collect::<Vec<_>>());
        let in_batches = |size: usize| {
            let mut aggregator = aggregator(&all);
            for at in (0..all.num_rows()).step_by(size) {
                aggregator.push(&all.slice(at, size.min(all.num_rows() - at)));
            }
            aggregator.finish()
        };
        let whole = in_batches(all.num_rows());
        assert_eq!(whole.as_ref().map(RecordBatch::num_rows), Some(501));
        assert_eq!(in_batches(MIN_ROWS), whole);
    }

    #[test]
    fn only_rows_in_order_of_tags_and_time_have_any() {
        let batch = rows(&[(Some("a"), 0, 0, None, None, 1)]);
        let of = |sorted_by: &[&str]| {
            let sorted_by: Vec<String> = sorted_by.iter().map(|name| (*name).to_owned()).collect();
            HourlyAggregator::new(batch.schema_ref(), &sorted_by).is_some()
        };
        assert_eq!(
            [of(&["host", "time"]), of(&["time"]), of(&["time", "host"]), of(&[]), of(&["f", "time"])],
            [true, true, false, false, false]
        );
    }
}
