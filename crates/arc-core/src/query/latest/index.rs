//! Which row is the newest of each key, among the rows of one part.
//!
//! Pure: knows neither files nor plans. Keys are compared by their bytes in Arrow's row format,
//! which are equal for equal values whatever part and dictionary they come from.

use std::{hash::BuildHasher, ops::Range, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray, RecordBatch, TimestampNanosecondArray, UInt32Array},
    compute::{cast, partition, take},
    datatypes::{DataType, Int32Type, SchemaRef, TimestampNanosecondType},
    error::ArrowError,
    row::{RowConverter, SortField},
};
use foldhash::fast::FixedState;
use hashbrown::HashTable;

use crate::model::TIME_COLUMN;

/// The keys of an index, each once, in order of their bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KeySet {
    bytes: Vec<u8>,
    /// Where each key ends in `bytes`.
    ends: Vec<usize>,
}

impl KeySet {
    /// Returns the bytes of the keys.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(start, end)| self.bytes.get(*start..*end).unwrap_or_default())
    }

    pub(super) fn get(&self, index: usize) -> &[u8] {
        of_slot(&self.bytes, &self.ends, index)
    }

    pub(super) fn hash(&self) -> u64 {
        FixedState::default().hash_one((&self.bytes, &self.ends))
    }

    pub(super) fn size(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }
}

/// The newest row of each key.
#[derive(Debug, Clone)]
pub(super) struct Index {
    pub(super) keys: Arc<KeySet>,
    /// Time of the newest row, by index of its key.
    pub(super) times: Vec<i64>,
    /// Number of that row within its part.
    pub(super) rows: Vec<u64>,
}

impl Index {
    /// Makes one index of those of several spans of one part.
    pub(super) fn merged(mut indexes: Vec<Self>) -> Result<Self, ArrowError> {
        if indexes.len() == 1
            && let Some(index) = indexes.pop()
        {
            return Ok(index);
        }
        let mut indexing = Indexing::new(&[])?;
        for index in &indexes {
            for ((key, time), row) in index.keys.iter().zip(&index.times).zip(&index.rows) {
                indexing.note(key, *time, *row);
            }
        }
        Ok(indexing.finish())
    }

    pub(super) fn size(&self) -> usize {
        self.keys.size() + (self.times.capacity() + self.rows.capacity()) * size_of::<u64>()
    }

    /// Returns the index of these indices alone.
    pub(super) fn only(&self, indices: &[usize]) -> Self {
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(indices.len()));
        for index in indices {
            bytes.extend_from_slice(self.keys.get(*index));
            ends.push(bytes.len());
        }
        let of = |values: &[u64]| indices.iter().filter_map(|index| values.get(*index)).copied().collect();
        let times = indices.iter().filter_map(|index| self.times.get(*index)).copied().collect();
        Self { keys: Arc::new(KeySet { bytes, ends }), times, rows: of(&self.rows) }
    }

    /// Returns keys and times as a batch; `schema` has the key columns, then the time.
    pub(super) fn to_batch(&self, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
        let fields = schema.fields().iter().take(schema.fields().len().saturating_sub(1));
        let types: Vec<DataType> = fields.clone().map(|field| field.data_type().clone()).collect();
        let converter = converter(&types)?;
        let parser = converter.parser();
        let plain = converter.convert_rows(self.keys.iter().map(|key| parser.parse(key)))?;
        let mut columns =
            plain.iter().zip(&types).map(|(column, to)| cast(column, to)).collect::<Result<Vec<_>, _>>()?;
        columns.push(self.times_array());
        RecordBatch::try_new(Arc::clone(schema), columns)
    }

    pub(super) fn times_array(&self) -> ArrayRef {
        Arc::new(TimestampNanosecondArray::from_iter_values(self.times.iter().copied()).with_timezone("UTC"))
    }
}

/// Returns whether keys can have columns of this type.
pub(super) fn can_be_key(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(key, value) => **key == DataType::Int32 && **value == DataType::Utf8,
        other => matches!(
            other,
            DataType::Utf8 | DataType::Int64 | DataType::UInt64 | DataType::Boolean | DataType::Timestamp(..)
        ),
    }
}

fn converter(types: &[DataType]) -> Result<RowConverter, ArrowError> {
    let plain = |data_type: &DataType| match data_type {
        DataType::Dictionary(_, value) => value.as_ref().clone(),
        other => other.clone(),
    };
    RowConverter::new(types.iter().map(|data_type| SortField::new(plain(data_type))).collect())
}

/// An index in the making.
#[derive(Debug)]
pub(super) struct Indexing {
    converter: RowConverter,
    hasher: FixedState,
    /// Slots by the bytes of their key.
    slots: HashTable<usize>,
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Time and row of each slot.
    newest: Vec<(i64, u64)>,
}

impl Indexing {
    /// Starts with nothing, for keys of these types.
    pub(super) fn new(types: &[DataType]) -> Result<Self, ArrowError> {
        Ok(Self {
            converter: converter(types)?,
            hasher: FixedState::default(),
            slots: HashTable::new(),
            bytes: Vec::new(),
            ends: Vec::new(),
            newest: Vec::new(),
        })
    }

    /// Takes rows; `number` says which row of the part each of them is. Of rows with one time the
    /// first counts.
    pub(super) fn push(
        &mut self,
        keys: &[ArrayRef],
        times: &[i64],
        number: impl Fn(usize) -> u64,
    ) -> Result<(), ArrowError> {
        let chosen = candidates(keys, times)?;
        let columns = keys.iter().map(|column| plain_rows(column, &chosen)).collect::<Result<Vec<_>, _>>()?;
        let encoded = self.converter.convert_columns(&columns)?;
        for (row, key) in chosen.values().iter().zip(encoded.iter()) {
            let row = *row as usize;
            let Some(time) = times.get(row) else { continue };
            self.note(key.as_ref(), *time, number(row));
        }
        Ok(())
    }

    fn note(&mut self, key: &[u8], time: i64, number: u64) {
        let hash = self.hasher.hash_one(key);
        let (bytes, ends) = (&self.bytes, &self.ends);
        match self.slots.find(hash, |slot| of_slot(bytes, ends, *slot) == key) {
            Some(slot) => {
                if let Some(newest) = self.newest.get_mut(*slot).filter(|newest| time > newest.0) {
                    *newest = (time, number);
                }
            }
            None => {
                let slot = self.ends.len();
                self.bytes.extend_from_slice(key);
                self.ends.push(self.bytes.len());
                self.newest.push((time, number));
                let (bytes, ends, hasher) = (&self.bytes, &self.ends, &self.hasher);
                self.slots.insert_unique(hash, slot, |slot| hasher.hash_one(of_slot(bytes, ends, *slot)));
            }
        }
    }

    /// Returns the index of all rows that were taken.
    pub(super) fn finish(self) -> Index {
        let mut order: Vec<usize> = (0..self.ends.len()).collect();
        order.sort_unstable_by_key(|slot| of_slot(&self.bytes, &self.ends, *slot));
        let (mut bytes, mut ends) = (Vec::with_capacity(self.bytes.len()), Vec::with_capacity(order.len()));
        for slot in &order {
            bytes.extend_from_slice(of_slot(&self.bytes, &self.ends, *slot));
            ends.push(bytes.len());
        }
        let newest = order.iter().filter_map(|slot| self.newest.get(*slot).copied());
        let (times, rows) = newest.unzip();
        Index { keys: Arc::new(KeySet { bytes, ends }), times, rows }
    }
}

/// Returns the bytes of one of several keys that are after each other.
pub(super) fn of_slot<'b>(bytes: &'b [u8], ends: &[usize], slot: usize) -> &'b [u8] {
    let start = slot.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    ends.get(slot).and_then(|end| bytes.get(start..*end)).unwrap_or_default()
}

/// Returns the times of a batch.
pub(super) fn times_of(batch: &RecordBatch) -> Result<&[i64], ArrowError> {
    let times = batch.column_by_name(TIME_COLUMN).and_then(|times| times.as_primitive_opt::<TimestampNanosecondType>());
    times.map(|times| &**times.values()).ok_or_else(|| ArrowError::SchemaError("rows without a time".to_owned()))
}

/// Returns rows among which the newest row of each key is: far fewer than all where rows of a key
/// follow each other, or where the key is one dictionary.
fn candidates(keys: &[ArrayRef], times: &[i64]) -> Result<UInt32Array, ArrowError> {
    if let [key] = keys
        && let Some(dictionary) = key.as_dictionary_opt::<Int32Type>()
        && dictionary.values().len() <= times.len()
    {
        let nulls = dictionary.keys().nulls();
        let index = |row: usize, code: &i32| match nulls {
            Some(nulls) if nulls.is_null(row) => dictionary.values().len(),
            _ => usize::try_from(*code).unwrap_or_default(),
        };
        let mut newest: Vec<Option<(i64, u32)>> = vec![None; dictionary.values().len() + 1];
        for ((row, code), time) in dictionary.keys().values().iter().enumerate().zip(times) {
            if let Some(slot) = newest.get_mut(index(row, code))
                && slot.is_none_or(|(newest, _)| *time > newest)
            {
                *slot = Some((*time, u32::try_from(row).unwrap_or(u32::MAX)));
            }
        }
        return Ok(UInt32Array::from_iter_values(newest.into_iter().flatten().map(|(_, row)| row)));
    }
    let newest = |run: Range<usize>| {
        let rows = run.clone().zip(times.get(run).unwrap_or_default());
        let newest = rows.reduce(|newest, row| if row.1 > newest.1 { row } else { newest });
        newest.and_then(|(row, _)| u32::try_from(row).ok())
    };
    let codes: Vec<ArrayRef> = keys.iter().map(codes).collect();
    Ok(UInt32Array::from_iter_values(partition(&codes)?.ranges().into_iter().filter_map(newest)))
}

/// Returns what changes where the values of a column do: of a dictionary its keys.
fn codes(column: &ArrayRef) -> ArrayRef {
    match column.as_dictionary_opt::<Int32Type>() {
        Some(dictionary) => Arc::new(dictionary.keys().clone()),
        None => Arc::clone(column),
    }
}

/// Returns some rows of a column as plain values: the row format would encode each dictionary
/// whole.
fn plain_rows(column: &ArrayRef, rows: &UInt32Array) -> Result<ArrayRef, ArrowError> {
    let taken = take(column, rows, None)?;
    match taken.as_dictionary_opt::<Int32Type>() {
        Some(dictionary) => take(dictionary.values(), dictionary.keys(), None),
        None => Ok(taken),
    }
}

#[cfg(test)]
mod tests {
    use arrow::{
        array::{DictionaryArray, Int64Array, StringArray},
        datatypes::{Field, Schema},
    };

    use super::*;
    use crate::model::{tag_type, time_type};

    fn tags(values: &[Option<&str>]) -> ArrayRef {
        Arc::new(values.iter().copied().collect::<DictionaryArray<Int32Type>>())
    }

    fn text(index: &Index, types: &[DataType]) -> Vec<String> {
        let keys = types.iter().enumerate().map(|(i, data_type)| Field::new(i.to_string(), data_type.clone(), true));
        let time = Field::new(TIME_COLUMN, time_type(), false);
        let schema = Arc::new(Schema::new(keys.chain([time]).collect::<Vec<_>>()));
        let batch = index.to_batch(&schema).unwrap();
        let columns: Vec<ArrayRef> = batch.columns().iter().map(|c| cast(c, &DataType::Utf8).unwrap()).collect();
        let keys = |row| columns.iter().take(types.len()).map(move |c| c.as_string::<i32>().value(row).to_owned());
        let line = |row: usize| {
            let at = format!("{}@{}", index.times[row], index.rows[row]);
            keys(row).chain([at]).collect::<Vec<_>>().join(" ")
        };
        (0..batch.num_rows()).map(line).collect()
    }

    #[test]
    fn the_newest_row_of_each_key_is_found_whatever_the_order_and_the_dictionaries() {
        let types = [tag_type()];
        let mut indexing = Indexing::new(&types).unwrap();
        indexing.push(&[tags(&[Some("b"), Some("a"), None, Some("b")])], &[5, 9, 1, 7], |row| row as u64).unwrap();
        indexing.push(&[tags(&[Some("a"), None, Some("c"), Some("c")])], &[8, 2, 3, 3], |row| row as u64 + 4).unwrap();
        // A dictionary with more values than rows.
        let large = tags(&[Some("x"), Some("y"), Some("b")]);
        indexing.push(&[large.slice(2, 1)], &[6], |_| 8).unwrap();
        assert_eq!(text(&indexing.finish(), &types), [" 2@5", "a 9@1", "b 7@3", "c 3@6"]);
    }

    #[test]
    fn keys_of_several_columns_are_told_apart() {
        let types = [tag_type(), DataType::Int64, DataType::Utf8];
        let mut indexing = Indexing::new(&types).unwrap();
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 1, 2, 1]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["x", "x", "x", "y"]));
        let hosts = tags(&[Some("a"), Some("a"), Some("a"), Some("a")]);
        indexing.push(&[hosts, numbers, texts], &[1, 2, 3, 4], |row| row as u64).unwrap();
        assert_eq!(text(&indexing.finish(), &types), ["a 1 x 2@1", "a 1 y 4@3", "a 2 x 3@2"]);
    }

    #[test]
    fn equal_keys_make_equal_sets() {
        let set = |values: &[Option<&str>]| {
            let mut indexing = Indexing::new(&[tag_type()]).unwrap();
            indexing.push(&[tags(values)], &vec![0; values.len()], |row| row as u64).unwrap();
            indexing.finish().keys
        };
        let (one, other) = (set(&[Some("a"), Some("b"), None]), set(&[None, Some("b"), Some("a"), Some("a")]));
        assert_eq!((one.hash(), &one), (other.hash(), &other));
        assert_ne!(one, set(&[Some("ab"), None]));
        assert_eq!((0..3).map(|index| one.get(index).to_vec()).collect::<Vec<_>>(), one.iter().collect::<Vec<_>>());
    }
}
