//! Rows of one table in columns: what a decoder fills, what the tail of a buffer is, and the
//! immutable chunk it becomes.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, MutableArrayData, make_array},
    buffer::ScalarBuffer,
    datatypes::DataType,
};

use super::{
    CELL_BYTES,
    column::{ColumnValues, converted, empty_vec},
    dictionary_texts::{is_dictionary, padded},
    scalar::Scalar,
    series::SeriesId,
    staged_rows::StagedRow,
};
use crate::{
    Result,
    model::{Column, TableSchema, fixed_bytes},
};

/// Most rows to make space for before they come: what is said of a request may be wrong.
const MAX_EXPECTED: usize = 16 * 1024;

/// Most cells that a row counts for: of rows beyond that, none stands with another.
const MAX_WIDE_CELLS: usize = u32::MAX as usize;

/// Growing rows of one table.
///
/// Columns are addressed by their index in the table's schema and may be shorter than the rows:
/// what is missing at their end is null. In a primary-key table the tags stand in `series`, not in
/// `columns`.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// Nanoseconds since the epoch, one a row.
    pub(crate) time: Vec<i64>,
    /// Series of each row; empty in an append-only table.
    pub(crate) series: Vec<SeriesId>,
    columns: Vec<Option<ColumnValues>>,
    /// How many rows new columns make space for.
    expected: usize,
    /// Empty columns with memory, by index: what new columns are made of first.
    spare: Vec<Option<ColumnValues>>,
}

impl Rows {
    /// Makes space for `rows` rows, at once or when a column comes.
    pub(crate) fn expect(&mut self, rows: usize) {
        self.expected = rows.min(MAX_EXPECTED);
        self.time.reserve(self.expected);
    }

    /// Makes empty rows that have space for so many in a primary-key table.
    pub(super) fn with_row_capacity(rows: usize) -> Self {
        let (time, series) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        Self { time, series, expected: rows, ..Self::default() }
    }

    /// Makes empty rows that have space for as many as these.
    pub(super) fn successor(&self) -> Self {
        let rows = self.len();
        Self {
            time: Vec::with_capacity(rows),
            series: Vec::with_capacity(self.series.len()),
            columns: Vec::new(),
            expected: rows,
            spare: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.time.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.time.is_empty()
    }

    /// Returns whether there is memory for further rows.
    pub(super) fn has_memory(&self) -> bool {
        self.time.capacity() > self.time.len()
    }

    /// Returns column `index`, made if it is new and filled with nulls up to `rows` values.
    pub(crate) fn column(&mut self, index: usize, data_type: &DataType, rows: usize) -> &mut ColumnValues {
        if self.columns.len() <= index {
            self.columns.resize_with(index + 1, || None);
        }
        #[expect(clippy::indexing_slicing, reason = "resized above to hold it")]
        let column = self.columns[index].get_or_insert_with(|| {
            let spare =
                self.spare.get_mut(index).and_then(Option::take).filter(|spare| spare.data_type() == *data_type);
            spare.unwrap_or_else(|| ColumnValues::with_capacity(data_type, self.expected))
        });
        column.push_nulls(rows.saturating_sub(column.len()));
        column
    }

    /// Puts a value into column `index` of the row that is being built (row number `self.len()`); a
    /// value that the row has already is replaced.
    pub(crate) fn set(&mut self, index: usize, data_type: &DataType, value: Scalar<'_>) -> Result<()> {
        let row = self.len();
        let column = self.column(index, data_type, row);
        if column.len() > row {
            column.pop();
        }
        column.push(value)
    }

    /// Puts a value of the column's own type into the row that is being built. `false`, and no
    /// value, where the column is not there yet, has another type, or has a value of that row
    /// already.
    #[inline(always)]
    pub(crate) fn put(&mut self, index: usize, value: Scalar<'_>) -> bool {
        let row = self.time.len();
        match self.columns.get_mut(index) {
            Some(Some(column)) => column.put(row, value),
            _ => false,
        }
    }

    /// Takes the value back that column `index` has in the row that is being built, if any.
    pub(crate) fn take_back(&mut self, index: usize) {
        let row = self.len();
        if let Some(Some(column)) = self.columns.get_mut(index)
            && column.len() > row
        {
            column.pop();
        }
    }

    /// Drops all columns from `index` on.
    pub(crate) fn forget_columns(&mut self, index: usize) {
        self.columns.truncate(index);
    }

    /// Returns column `index` as it is.
    pub(crate) fn values(&self, index: usize) -> Option<&ColumnValues> {
        self.columns.get(index).and_then(Option::as_ref)
    }

    /// Ends the row that is being built.
    #[inline]
    pub(crate) fn end_row(&mut self, time: i64, series: Option<SeriesId>) {
        self.time.push(time);
        self.series.extend(series);
    }

    /// Puts a whole column in place; it must have as many values as there are rows in the end.
    pub(crate) fn put_column(&mut self, index: usize, values: ColumnValues) {
        if self.columns.len() <= index {
            self.columns.resize_with(index + 1, || None);
        }
        if let Some(slot) = self.columns.get_mut(index) {
            *slot = Some(values);
        }
    }

    /// Puts a column in place of another, or takes it away; returns what was there.
    pub(crate) fn replace_column(&mut self, index: usize, values: Option<ColumnValues>) -> Option<ColumnValues> {
        self.columns.get_mut(index).and_then(|slot| std::mem::replace(slot, values))
    }

    /// Appends all of `other`, or those of its rows that `select` names.
    pub(crate) fn append(&mut self, other: &Self, select: Option<&[u32]>) -> Result<()> {
        let base = self.len();
        for (index, column) in other.columns.iter().enumerate() {
            let Some(column) = column else { continue };
            let target = self.column(index, &column.data_type(), base);
            match select {
                None => target.append(column)?,
                Some(rows) => target.append_rows(column, rows)?,
            }
        }
        match select {
            None => {
                self.time.extend_from_slice(&other.time);
                self.series.extend_from_slice(&other.series);
            }
            Some(rows) => {
                self.time.extend(rows.iter().filter_map(|row| other.time.get(*row as usize)));
                self.series.extend(rows.iter().filter_map(|row| other.series.get(*row as usize)));
            }
        }
        Ok(())
    }

    /// Returns whether a column has another type than in `other`.
    pub(super) fn differ(&self, other: &Self) -> bool {
        let both = self.columns.iter().zip(&other.columns);
        both.into_iter().any(|columns| matches!(columns, (Some(one), Some(other)) if one.differs(other)))
    }

    /// Appends one row. `false`, and nothing, where a column has another type than the row's value.
    pub(crate) fn append_staged(&mut self, row: &StagedRow<'_>) -> Result<bool> {
        for (index, value) in row.values() {
            if self.put(index, value) {
                continue;
            }
            if self.values(index).is_some_and(|column| !value.is_of(&column.data_type())) {
                row.values().for_each(|(index, _)| self.take_back(index));
                return Ok(false);
            }
            // The first value of the column in this tail.
            self.set(index, &value.data_type(), value)?;
        }
        self.end_row(row.time, Some(row.series));
        Ok(true)
    }

    /// Reads something of the end of each column.
    #[inline]
    pub(super) fn touch(&self) -> u64 {
        let columns = self.columns.iter().flatten().fold(0, |seen, column| seen ^ column.touch());
        let series = self.series.last().map_or(0, |series| u64::from(*series));
        self.time.last().map_or(0, |time| time.cast_unsigned()) ^ series ^ columns
    }

    /// Returns the number of columns up to the last that has values.
    pub(crate) fn width(&self) -> usize {
        self.columns.len()
    }

    /// Returns the number of cells, rows by columns up to the last that has values, also of those
    /// that are empty.
    pub(super) fn cells(&self) -> usize {
        self.len() * self.columns.len()
    }

    /// Returns how many cells more than one each the columns have in a row, of these rows and
    /// `others` together: those of values that take their bytes also where they are null.
    pub(super) fn wide_cells(&self, others: &Self) -> usize {
        let columns = self.columns.len().max(others.columns.len());
        let cells = |index: usize| {
            let data_type = self.values(index).or_else(|| others.values(index))?.arrow_type()?;
            Some((fixed_bytes(data_type) / CELL_BYTES).saturating_sub(1))
        };
        (0..columns).filter_map(cells).fold(0, usize::saturating_add).min(MAX_WIDE_CELLS)
    }

    /// Returns the number of columns that have values, if only nulls.
    pub(crate) fn used_columns(&self) -> usize {
        self.columns.iter().flatten().count()
    }

    /// Returns the bytes of the values held, as they will be once short columns are filled with
    /// nulls.
    pub(crate) fn bytes(&self) -> usize {
        let column = |c: &ColumnValues| {
            let null = c.arrow_type().map_or(CELL_BYTES, |data_type| fixed_bytes(data_type).max(CELL_BYTES));
            c.bytes().saturating_add(self.len().saturating_sub(c.len()).saturating_mul(null))
        };
        let columns = self.columns.iter().flatten().map(column).fold(0, usize::saturating_add);
        self.time.len() * 8 + self.series.len() * 4 + columns
    }

    /// Returns the bytes of the values where each text is written out, as it may have to be.
    pub(super) fn spread_bytes(&self) -> usize {
        self.bytes() + self.columns.iter().flatten().map(ColumnValues::spread_bytes).sum::<usize>()
    }

    /// Has texts become a dictionary where they are seen to repeat.
    pub(super) fn reconsider(&mut self) {
        self.columns.iter_mut().flatten().for_each(ColumnValues::reconsider);
    }

    /// Returns a copy as an immutable chunk.
    pub(crate) fn to_chunk(&self) -> Result<Chunk> {
        let columns = self.columns.iter().map(|c| c.as_ref().map(ColumnValues::to_array).transpose());
        Chunk::new(self.time.clone().into(), self.series.clone().into(), columns.collect::<Result<_>>()?)
    }

    /// Turns the rows into an immutable chunk without copying them.
    pub(crate) fn into_chunk(self) -> Result<Chunk> {
        let columns = self.columns.into_iter().map(|c| c.map(ColumnValues::into_array).transpose());
        Chunk::new(self.time.into(), self.series.into(), columns.collect::<Result<_>>()?)
    }
}

/// Immutable rows of one table. A clone shares them.
#[derive(Debug, Clone)]
pub(crate) struct Chunk {
    pub(crate) time: ScalarBuffer<i64>,
    pub(crate) series: ScalarBuffer<SeriesId>,
    /// By index in the table's schema. A column of texts may be [encoded](is_dictionary).
    columns: Vec<Option<ArrayRef>>,
    pub(crate) min_time: i64,
    pub(crate) max_time: i64,
}

impl Chunk {
    /// Takes arrays as they are; those that are shorter than the rows are filled with nulls.
    pub(crate) fn new(
        time: ScalarBuffer<i64>,
        series: ScalarBuffer<SeriesId>,
        columns: Vec<Option<ArrayRef>>,
    ) -> Result<Self> {
        let rows = time.len();
        let columns = columns.into_iter().map(|column| column.map(|array| pad(array, rows)).transpose());
        let (min_time, max_time) = extent(&time);
        Ok(Self { min_time, max_time, time, series, columns: columns.collect::<Result<_>>()? })
    }

    pub(crate) fn len(&self) -> usize {
        self.time.len()
    }

    /// Returns the bytes of its values, about; more of the memory that they lie in may be kept.
    pub(crate) fn bytes(&self) -> usize {
        let column = |array: &ArrayRef| array.to_data().get_slice_memory_size().unwrap_or_default();
        self.time.len() * 8 + self.series.len() * 4 + self.arrays().map(column).sum::<usize>()
    }

    /// Returns a copy that takes rows.
    pub(super) fn to_rows(&self) -> Result<Rows> {
        let mut rows = Rows { time: self.time.to_vec(), series: self.series.to_vec(), ..Rows::default() };
        for (index, array) in self.columns.iter().enumerate() {
            let Some(array) = array else { continue };
            let mut values = ColumnValues::new(plain_type(array));
            values.append_array(&owned(array)?)?;
            rows.put_column(index, values);
        }
        Ok(rows)
    }

    /// Returns the same rows in memory of their own.
    pub(crate) fn copied(&self) -> Result<Self> {
        let columns = self.columns.iter().map(|column| column.as_ref().map(owned).transpose());
        Ok(Self {
            time: self.time.to_vec().into(),
            series: self.series.clone(),
            columns: columns.collect::<Result<_>>()?,
            ..*self
        })
    }

    /// Returns whether the columns have the types that they have in `schema`.
    pub(crate) fn has_types_of(&self, schema: &TableSchema) -> bool {
        let columns = self.columns.iter().zip(&schema.columns);
        columns.into_iter().all(|(array, column)| array.as_ref().is_none_or(|a| *plain_type(a) == column.data_type))
    }

    /// Returns all columns that any row has.
    pub(crate) fn arrays(&self) -> impl Iterator<Item = &ArrayRef> {
        self.columns.iter().flatten()
    }

    /// Returns empty rows that have the chunk's memory, as much of it as nothing else has.
    pub(super) fn emptied(self) -> Rows {
        let expected = self.time.len();
        Rows {
            time: empty_vec(self.time.into_inner()).unwrap_or_default(),
            series: empty_vec(self.series.into_inner()).unwrap_or_default(),
            columns: Vec::new(),
            expected,
            spare: self.columns.into_iter().map(|column| column.and_then(ColumnValues::emptied)).collect(),
        }
    }

    /// Returns column `index` of the schema, if any row has it. Texts may be
    /// [encoded](is_dictionary).
    pub(crate) fn column(&self, index: usize) -> Option<&ArrayRef> {
        self.columns.get(index).and_then(Option::as_ref)
    }

    /// Returns the rows with columns of the types that `schema` has, or `None` where they are so
    /// already.
    pub(super) fn converted(&self, schema: &TableSchema) -> Result<Option<Self>> {
        let types = || self.columns.iter().zip(&schema.columns);
        let is_other = |(array, column): (&Option<ArrayRef>, &Column)| {
            array.as_ref().is_some_and(|array| *plain_type(array) != column.data_type)
        };
        if !types().any(is_other) {
            return Ok(None);
        }
        let one = |array: &ArrayRef, data_type: &DataType| match *plain_type(array) == *data_type {
            true => Ok(Arc::clone(array)),
            false => converted(array, data_type),
        };
        let columns =
            types().map(|(array, column)| array.as_ref().map(|array| one(array, &column.data_type)).transpose());
        let (time, series) = (self.time.clone(), self.series.clone());
        let columns = columns.collect::<Result<_>>()?;
        Ok(Some(Self { time, series, columns, min_time: self.min_time, max_time: self.max_time }))
    }
}

/// Returns the type of a column that an array has values of.
fn plain_type(array: &ArrayRef) -> &DataType {
    if is_dictionary(array.data_type()) { &DataType::Utf8 } else { array.data_type() }
}

/// Copies an array out of the memory that it lies in, together with others or not.
pub(crate) fn owned(array: &ArrayRef) -> Result<ArrayRef> {
    if let Some(views) = array.as_binary_view_opt() {
        return Ok(Arc::new(views.gc()));
    }
    let data = array.to_data();
    let mut copy = MutableArrayData::new(vec![&data], false, array.len());
    copy.try_extend(0, 0, array.len())?;
    Ok(make_array(copy.freeze()))
}

/// Returns the first and the last of times that may be in any order, in one pass: eight at a time,
/// which do not wait for each other.
fn extent(times: &[i64]) -> (i64, i64) {
    let (eights, rest) = times.as_chunks::<8>();
    let (mut min, mut max) = ([i64::MAX; 8], [i64::MIN; 8]);
    for eight in eights {
        for ((min, max), time) in min.iter_mut().zip(&mut max).zip(eight) {
            *min = (*min).min(*time);
            *max = (*max).max(*time);
        }
    }
    let min = min.iter().chain(rest).copied().min().unwrap_or(i64::MAX);
    (min, max.iter().chain(rest).copied().max().unwrap_or(i64::MIN))
}

fn pad(array: ArrayRef, rows: usize) -> Result<ArrayRef> {
    if array.len() >= rows {
        return Ok(array);
    }
    if is_dictionary(array.data_type()) {
        return padded(&array, rows);
    }
    let nulls = arrow::array::new_null_array(array.data_type(), rows - array.len());
    Ok(arrow::compute::concat(&[&array, &nulls])?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Array;

    fn rows(values: &[(i64, Option<f64>)]) -> Rows {
        let mut rows = Rows::default();
        for (time, value) in values {
            if let Some(value) = value {
                rows.set(1, &DataType::Float64, Scalar::Float(*value)).unwrap();
            }
            rows.end_row(*time, Some(0));
        }
        rows
    }

    #[test]
    fn short_columns_are_null_at_their_end() {
        let chunk = rows(&[(1, None), (2, Some(2.0)), (3, None)]).into_chunk().unwrap();
        let column = chunk.column(1).unwrap();
        assert_eq!((0..3).map(|i| column.is_null(i)).collect::<Vec<_>>(), [true, false, true]);
        assert!(chunk.column(0).is_none());
        assert_eq!((chunk.min_time, chunk.max_time), (1, 3));
    }

    #[test]
    fn a_chunk_knows_its_first_and_last_time() {
        for count in 0..40_i64 {
            let times: Vec<i64> = (0..count).map(|n| n * 7 % 40 - 20).collect();
            let expected = times.iter().min().zip(times.iter().max()).map_or((i64::MAX, i64::MIN), |(a, b)| (*a, *b));
            assert_eq!(extent(&times), expected, "{times:?}");
        }
    }

    #[test]
    fn a_repeated_field_of_a_row_replaces_the_first() {
        let mut rows = Rows::default();
        rows.set(0, &DataType::Float64, Scalar::Float(1.0)).unwrap();
        rows.set(0, &DataType::Float64, Scalar::Float(2.0)).unwrap();
        rows.end_row(5, None);
        let chunk = rows.into_chunk().unwrap();
        assert_eq!(chunk.column(0).unwrap().len(), 1);
    }

    #[test]
    fn append_with_a_selection_takes_those_rows_in_order() {
        let mut all = rows(&[(1, Some(1.0))]);
        all.append(&rows(&[(2, Some(2.0)), (3, Some(3.0)), (4, None)]), Some(&[3 - 1, 0])).unwrap();
        assert_eq!(all.time, [1, 4, 2]);
        let chunk = all.into_chunk().unwrap();
        let column = chunk.column(1).unwrap();
        assert_eq!((0..3).map(|i| column.is_null(i)).collect::<Vec<_>>(), [false, true, false]);
    }
}
