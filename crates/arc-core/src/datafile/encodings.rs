//! Chooses how each column is encoded.
//!
//! Owns the writer properties of data files (docs/format.md, "Data files"). Every choice is one
//! that was measured; any Parquet reader takes all of them.

use arrow::{
    array::{Array, ArrayRef, AsArray, PrimitiveArray},
    datatypes::{ArrowPrimitiveType, DataType, Field, Float32Type, Float64Type, Schema},
};
use hashbrown::HashSet;
use parquet::{
    basic::Encoding,
    file::{
        metadata::{KeyValue, SortingColumn},
        properties::{DEFAULT_DICTIONARY_PAGE_SIZE_LIMIT, DEFAULT_PAGE_SIZE, EnabledStatistics, WriterProperties},
    },
    schema::types::{ColumnPath, SchemaDescriptor},
};

use super::{
    DataFileSpec, ParquetOptions,
    encode::{EncodingPlan, WordEncoding},
};
use crate::Result;

/// Version of docs/format.md, "Data files".
pub(crate) const FORMAT: &str = "1";

/// Values of a float column that are looked at before its encoding is chosen.
const SAMPLE_VALUES: usize = 10_000;

/// Some values of a column, by which its encoding is chosen.
pub(super) struct Sample {
    pub(super) arrays: Vec<ArrayRef>,
    /// Every how manieth value is to be looked at.
    pub(super) step: usize,
    /// Rows that would share a dictionary.
    pub(super) rows: usize,
}

impl Sample {
    /// Returns every how manieth of so many values is enough.
    pub(super) fn step(rows: usize) -> usize {
        rows.div_ceil(SAMPLE_VALUES).max(1)
    }
}

/// Returns how each column of a file is encoded. `sample` is asked for columns whose values matter.
pub(super) fn plans(spec: &DataFileSpec<'_>, sample: impl Fn(usize) -> Result<Sample>) -> Result<Vec<EncodingPlan>> {
    let sorted_by_series = spec.sorted_by.iter().any(|name| spec.tags.contains(&name.as_str()));
    let fields = spec.schema.fields().iter().enumerate();
    fields.map(|(index, field)| choose(index, field, sorted_by_series, || sample(index))).collect()
}

/// Returns the properties of a file, with what the library needs to encode columns itself.
pub(super) fn writer_properties(
    spec: &DataFileSpec<'_>,
    descriptor: &SchemaDescriptor,
    plans: &[EncodingPlan],
    options: &ParquetOptions,
) -> Result<WriterProperties> {
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("arc version ", env!("CARGO_PKG_VERSION")).into())
        .set_compression(options.compression()?)
        .set_max_row_group_row_count(None)
        .set_data_page_row_count_limit(options.page_rows)
        .set_data_page_size_limit(options.dictionary_bytes.min(DEFAULT_PAGE_SIZE))
        .set_dictionary_page_size_limit(options.dictionary_bytes.min(DEFAULT_DICTIONARY_PAGE_SIZE_LIMIT))
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_sorting_columns(Some(sorting_columns(spec, descriptor)))
        .set_key_value_metadata(Some(key_values(spec)?));
    for (field, plan) in spec.schema.fields().iter().zip(plans) {
        let path = ColumnPath::from(field.name().as_str());
        let encoding = match (field.data_type(), plan.words) {
            (data_type, WordEncoding::Delta) if is_integer(data_type) => Encoding::DELTA_BINARY_PACKED,
            (DataType::Float32 | DataType::Float64, WordEncoding::ByteStreams) => Encoding::BYTE_STREAM_SPLIT,
            _ => continue,
        };
        builder = builder.set_column_encoding(path.clone(), encoding);
        builder = builder.set_column_dictionary_enabled(path, plan.dictionary);
    }
    Ok(builder.build())
}

/// Returns how a column is encoded whose rows are in any order.
pub(super) fn plan_of(field: &Field, sample: Sample) -> Result<EncodingPlan> {
    choose(usize::MAX, field, false, || Ok(sample))
}

fn choose(
    index: usize,
    field: &Field,
    sorted_by_series: bool,
    sample: impl FnOnce() -> Result<Sample>,
) -> Result<EncodingPlan> {
    // With a dictionary the encoding is the fallback, used from where the dictionary is full.
    let (words, dictionary) = match field.data_type() {
        // Neighbours in time are equal distances apart: about one bit a value.
        DataType::Timestamp(..) if index == 0 => (WordEncoding::Delta, false),
        // Measured values mostly have few digits and repeat: a dictionary takes 1.8 bytes a value
        // there, where splitting byte streams makes the file 2.2 times larger. On full-digit values
        // a dictionary only fails late.
        DataType::Float64 => (WordEncoding::ByteStreams, !mostly_distinct(&sample()?, distinct_sample::<Float64Type>)),
        DataType::Float32 => (WordEncoding::ByteStreams, !mostly_distinct(&sample()?, distinct_sample::<Float32Type>)),
        // Sorted by series, neighbours are close; in order of arrival, series alternate and only
        // repeats help.
        _ => (WordEncoding::Delta, !sorted_by_series),
    };
    Ok(EncodingPlan { words, dictionary })
}

fn is_integer(data_type: &DataType) -> bool {
    data_type.is_integer()
        || matches!(
            data_type,
            DataType::Timestamp(..)
                | DataType::Date32
                | DataType::Date64
                | DataType::Time32(_)
                | DataType::Time64(_)
                | DataType::Duration(_)
        )
}

/// Values looked at so far, and the distinct ones of them.
#[derive(Default)]
struct SampledValues {
    seen: usize,
    distinct: HashSet<u64, foldhash::fast::FixedState>,
}

/// Returns whether over half of the values would be distinct, going by a sample. The sample is
/// spread over all rows: sorted rows begin with one series, which says little of the others.
fn mostly_distinct(sample: &Sample, take: fn(&ArrayRef, usize, &mut SampledValues)) -> bool {
    let mut found = SampledValues::default();
    let values: usize = sample.arrays.iter().map(|array| array.len().div_ceil(sample.step)).sum();
    found.distinct.reserve(values.min(SAMPLE_VALUES));
    for array in &sample.arrays {
        take(array, sample.step, &mut found);
    }
    expected_distinct(&found, sample.rows) * 2.0 > sample.rows as f64
}

/// Returns how many distinct values `rows` values are likely to have. Gauges of two decimals have
/// some 10,000: most of 10,000 sampled values are the only ones of their kind then, and yet a
/// dictionary of all is small.
fn expected_distinct(sample: &SampledValues, rows: usize) -> f64 {
    let (seen, distinct) = (sample.seen as f64, sample.distinct.len() as f64);
    if sample.distinct.len() * 100 > sample.seen * 99 {
        return rows as f64;
    }
    // Of v values that are equally likely, n draws meet v (1 - e^(-n/v)). That grows with v: halve
    // the interval.
    let met = |values: f64, draws: f64| values * -(-draws / values).exp_m1();
    let (mut low, mut high) = (distinct.max(1.0), 100.0 * seen.max(1.0));
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if met(middle, seen) < distinct { low = middle } else { high = middle }
    }
    met(high, rows as f64)
}

fn distinct_sample<T: ArrowPrimitiveType>(array: &ArrayRef, step: usize, sample: &mut SampledValues)
where
    T::Native: FloatBits,
{
    let array: &PrimitiveArray<T> = array.as_primitive();
    for index in (0..array.len()).step_by(step).filter(|index| array.is_valid(*index)) {
        sample.seen += 1;
        sample.distinct.insert(array.value(index).bits());
    }
}

trait FloatBits {
    fn bits(self) -> u64;
}

impl FloatBits for f32 {
    fn bits(self) -> u64 {
        u64::from(self.to_bits())
    }
}

impl FloatBits for f64 {
    fn bits(self) -> u64 {
        self.to_bits()
    }
}

/// Leaves out columns that the file does not have: they are null throughout, which changes no
/// order.
fn sorting_columns(spec: &DataFileSpec<'_>, descriptor: &SchemaDescriptor) -> Vec<SortingColumn> {
    let leaf_of = |name: &String| {
        let root = column_index(&spec.schema, name)?;
        let leaf = (0..descriptor.num_columns()).find(|leaf| descriptor.get_column_root_idx(*leaf) == root)?;
        i32::try_from(leaf).ok()
    };
    let leaves = spec.sorted_by.iter().filter_map(leaf_of);
    leaves.map(|column_idx| SortingColumn { column_idx, descending: false, nulls_first: true }).collect()
}

fn column_index(schema: &Schema, name: &str) -> Option<usize> {
    schema.fields().iter().position(|field| field.name() == name)
}

fn key_values(spec: &DataFileSpec<'_>) -> Result<Vec<KeyValue>> {
    let tags = serde_json::to_string(spec.tags).map_err(|e| crate::Error::internal(format!("tags as JSON: {e}")))?;
    Ok(vec![
        KeyValue::new("arc:format".into(), FORMAT.to_owned()),
        KeyValue::new("arc:tags".into(), tags),
        KeyValue::new("arc:late".into(), spec.late.to_string()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_repeats_in_a_sample_tell_of_many_in_all_rows() {
        // Every n-th value of a sequence of `values` values that are drawn evenly.
        let sample = |values: u64| {
            let mut sample = SampledValues { seen: SAMPLE_VALUES, ..SampledValues::default() };
            let mut state = 1_u64;
            for _ in 0..SAMPLE_VALUES {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                sample.distinct.insert((state >> 33) % values);
            }
            sample
        };
        for (values, rows, expected) in [
            (10, 1_000_000, 10.0),
            (10_000, 131_072, 10_000.0),
            (10_000, 10_000, 6_321.0),
            (100_000, 131_072, 73_000.0),
            (1 << 31, 131_072, 131_072.0),
        ] {
            let found = expected_distinct(&sample(values), rows);
            assert!((found - expected).abs() < expected / 20.0, "{values} values in {rows} rows: {found}");
        }
        assert!(expected_distinct(&SampledValues::default(), 5) <= 5.0);
    }
}
