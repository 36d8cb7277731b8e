//! Some rows of a chunk as queries see them: a column is made when it is asked for, and of these
//! rows only.
//!
//! Owns the way from a chunk to columns of a table's schema. Never copies a chunk, and keeps
//! nothing that it makes: tags are made from the series in less time than it would take to read
//! them from memory that they were kept in.

use std::{ops::Range, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array},
    buffer::ScalarBuffer,
    compute::take,
    datatypes::{ArrowNativeType, SchemaRef},
};

use super::{
    column::converted,
    gather::time_array,
    rows::Chunk,
    series::{SeriesId, SeriesIndex},
};
use crate::{
    Error, Result,
    model::{ColumnKind, TableSchema},
    sync::RwLock,
};

/// What all chunks of a table have in common.
#[derive(Debug)]
struct TableColumns {
    schema: Arc<TableSchema>,
    arrow: SchemaRef,
    /// By position in `arrow`, the index in the table's schema; the time has none.
    indices: Vec<Option<usize>>,
    series: Arc<RwLock<SeriesIndex>>,
}

/// Makes the rows of a table's chunks.
#[derive(Debug, Clone)]
pub(crate) struct ChunkReader(Arc<TableColumns>);

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct ChunkRows {
    table: Arc<TableColumns>,
    chunk: Arc<Chunk>,
    selection: Selection,
}

/// Which rows of a chunk.
#[derive(Debug, Clone)]
enum Selection {
    Range(Range<usize>),
    /// Ascending or not.
    Chosen(UInt32Array),
}

impl TableColumns {
    fn is_tag(&self, index: usize) -> bool {
        self.schema.columns.get(index).is_some_and(|column| column.kind == ColumnKind::Tag)
    }
}

impl ChunkReader {
    pub(crate) fn new(schema: Arc<TableSchema>, series: Arc<RwLock<SeriesIndex>>) -> Self {
        let of = |kind| schema.columns.iter().enumerate().filter(move |(_, column)| column.kind == kind);
        let indices = of(ColumnKind::Tag).chain(of(ColumnKind::Field)).map(|(index, _)| Some(index));
        let indices = std::iter::once(None).chain(indices).collect();
        Self(Arc::new(TableColumns { arrow: schema.arrow(), indices, schema, series }))
    }

    /// Returns all rows of a chunk of the table.
    pub(crate) fn rows(&self, chunk: &Arc<Chunk>) -> ChunkRows {
        let selection = Selection::Range(0..chunk.len());
        ChunkRows { table: Arc::clone(&self.0), chunk: Arc::clone(chunk), selection }
    }
}

impl ChunkRows {
    pub(crate) fn len(&self) -> usize {
        match &self.selection {
            Selection::Range(rows) => rows.len(),
            Selection::Chosen(rows) => rows.len(),
        }
    }

    /// Returns the rows for which `mask` holds, which has no nulls.
    #[must_use]
    pub(crate) fn filter(&self, mask: &BooleanArray) -> Self {
        if mask.true_count() == self.len() { self.clone() } else { self.chosen(mask.values().set_indices()) }
    }

    /// Returns the rows with these numbers among them, in that order.
    #[must_use]
    pub(crate) fn chosen(&self, numbers: impl Iterator<Item = usize>) -> Self {
        // A chunk has far fewer rows than 2^32.
        let position = |row: usize| u32::try_from(row).unwrap_or(u32::MAX);
        self.with(Selection::Chosen(match &self.selection {
            Selection::Range(rows) => {
                UInt32Array::from_iter_values(numbers.map(|n| position(rows.start.saturating_add(n))))
            }
            Selection::Chosen(rows) => {
                UInt32Array::from_iter_values(numbers.filter_map(|n| rows.values().get(n).copied()))
            }
        }))
    }

    fn with(&self, selection: Selection) -> Self {
        Self { table: Arc::clone(&self.table), chunk: Arc::clone(&self.chunk), selection }
    }

    /// Returns the time of each row.
    pub(crate) fn times(&self) -> ScalarBuffer<i64> {
        self.of(&self.chunk.time)
    }

    fn of<T: ArrowNativeType>(&self, all: &ScalarBuffer<T>) -> ScalarBuffer<T> {
        match &self.selection {
            Selection::Range(rows) => all.slice(rows.start, rows.len()),
            Selection::Chosen(rows) => {
                rows.values().iter().map(|row| all.get(*row as usize).copied().unwrap_or_default()).collect()
            }
        }
    }

    /// Returns the column at a position in the table's columns.
    pub(crate) fn column(&self, position: usize) -> Result<ArrayRef> {
        match self.table.indices.get(position) {
            None => Err(Error::internal(format!("a table has no column {position}"))),
            Some(None) => Ok(time_array(self.times())),
            Some(Some(index)) => self.tag_or_field(*index),
        }
    }

    fn tag_or_field(&self, index: usize) -> Result<ArrayRef> {
        let Some(column) = self.table.schema.columns.get(index) else {
            return Err(Error::internal(format!("a schema has no column {index}")));
        };
        if column.kind == ColumnKind::Tag {
            let series: ScalarBuffer<SeriesId> = self.of(&self.chunk.series);
            return self.table.series.read().tag_column(&column.name, &series);
        }
        match (self.chunk.column(index), &self.selection) {
            (None, _) => Ok(new_null_array(&column.data_type, self.len())),
            (Some(array), Selection::Range(rows)) => converted(&array.slice(rows.start, rows.len()), &column.data_type),
            (Some(array), Selection::Chosen(rows)) => converted(&take(array, rows, None)?, &column.data_type),
        }
    }

    /// Returns the columns at these selection in the table's columns, as `schema` names them.
    pub(crate) fn batch(&self, schema: &SchemaRef, selection: &[usize]) -> Result<RecordBatch> {
        let columns = selection.iter().map(|position| self.column(*position)).collect::<Result<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(self.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
    }

    /// Returns the columns at these selection in the table's columns.
    pub(crate) fn project(&self, selection: &[usize]) -> Result<RecordBatch> {
        self.batch(&Arc::new(self.table.arrow.project(selection)?), selection)
    }

    /// Returns the columns of these names, each once.
    pub(crate) fn named<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<RecordBatch> {
        let selection = names.into_iter().map(|name| Ok(self.table.arrow.index_of(name)?));
        let mut selection = selection.collect::<Result<Vec<_>>>()?;
        selection.sort_unstable();
        selection.dedup();
        self.project(&selection)
    }

    /// Returns whether the chunk has a column of the table's schema, by its index there.
    fn has(&self, index: usize) -> bool {
        self.table.is_tag(index) || self.chunk.column(index).is_some()
    }

    /// Returns all columns but fields that no row has.
    pub(crate) fn all(&self) -> Result<RecordBatch> {
        let selection =
            self.table.indices.iter().enumerate().filter(|(_, index)| index.is_none_or(|index| self.has(index)));
        self.project(&selection.map(|(position, _)| position).collect::<Vec<_>>())
    }
}

/// What only queries ask for.
#[cfg(feature = "query")]
impl ChunkRows {
    /// Returns up to `count` rows from `start` on.
    #[must_use]
    pub(crate) fn slice(&self, start: usize, count: usize) -> Self {
        let start = start.min(self.len());
        let count = count.min(self.len() - start);
        self.with(match &self.selection {
            Selection::Range(rows) => Selection::Range(rows.start + start..rows.start + start + count),
            Selection::Chosen(rows) => Selection::Chosen(rows.slice(start, count)),
        })
    }

    /// Returns whether no row has a value of this column, as far as that can be told without
    /// looking.
    pub(crate) fn lacks(&self, name: &str) -> bool {
        self.table.schema.position(name).is_some_and(|index| !self.has(index))
    }

    /// Returns whether each row is known to have a value of this column.
    pub(crate) fn is_never_null(&self, name: &str) -> bool {
        match self.table.schema.position(name) {
            None => name == crate::model::TIME_COLUMN,
            Some(index) if self.table.is_tag(index) => {
                self.table.series.read().all_have(name, &self.of(&self.chunk.series))
            }
            Some(index) => self.chunk.column(index).is_some_and(|array| array.logical_null_count() == 0),
        }
    }
}

#[cfg(test)]
#[cfg(feature = "query")]
mod tests {
    use arrow::{
        array::{AsArray, UInt64Array},
        compute::{filter_record_batch, take_record_batch},
        datatypes::{DataType, Int64Type},
    };

    use super::*;
    use crate::{
        buffer::{Rows, Scalar},
        model::{Column, tag_type},
    };

    /// A table of a field that rows lack, a tag and a field, and a chunk of ten rows, of which
    /// every third lacks the tag.
    fn rows() -> ChunkRows {
        let column = |name: &str, kind, data_type| Column { name: name.into(), kind, data_type };
        let columns = vec![
            column("none", ColumnKind::Field, DataType::Utf8),
            column("host", ColumnKind::Tag, tag_type()),
            column("x", ColumnKind::Field, DataType::Int64),
        ];
        let mut series = SeriesIndex::default();
        let mut rows = Rows::default();
        for n in 0..10_i64 {
            let host = n.to_string();
            let tags = (n % 3 != 0).then_some(("host", host.as_str()));
            rows.set(2, &DataType::Int64, Scalar::Integer(n * 10)).unwrap();
            rows.end_row(100 - n, Some(series.resolve(tags.into_iter()).unwrap()));
        }
        let schema = TableSchema { database: "db".into(), table: "m".into(), has_primary_key: true, columns };
        let reader = ChunkReader::new(Arc::new(schema), Arc::new(RwLock::new(series)));
        reader.rows(&Arc::new(rows.into_chunk().unwrap()))
    }

    #[test]
    fn columns_are_those_of_the_rows_that_are_left() {
        let rows = rows();
        let all = rows.project(&[0, 1, 2, 3]).unwrap();
        assert_eq!(
            all.schema().fields().iter().map(|f| f.name().as_str()).collect::<Vec<_>>(),
            ["time", "host", "none", "x"]
        );
        let mask: BooleanArray = (0..6).map(|n| Some(n % 2 == 0)).collect();
        let numbers = UInt64Array::from(vec![2, 0, 2]);
        let expected = take_record_batch(&filter_record_batch(&all.slice(3, 6), &mask).unwrap(), &numbers).unwrap();
        let found = rows.slice(3, 6).filter(&mask).chosen([2, 0, 2, 7].into_iter());
        let shown = |batch: &RecordBatch| {
            let pretty = arrow::util::pretty::pretty_format_batches(std::slice::from_ref(batch)).unwrap();
            pretty.to_string()
        };
        assert_eq!(shown(&found.project(&[0, 1, 2, 3]).unwrap()), shown(&expected));
        assert_eq!((found.len(), found.times().to_vec()), (3, vec![93, 97, 93]));
        assert_eq!(found.slice(1, 9).column(3).unwrap().as_primitive::<Int64Type>().values(), &[30, 70]);
        assert_eq!(found.slice(5, 1).len(), 0);
        assert_eq!(rows.named(["x", "time", "x"]).unwrap().num_columns(), 2);
        assert!(rows.column(4).is_err());
    }

    #[test]
    fn it_is_known_which_columns_have_nulls() {
        let rows = rows();
        let never = |rows: &ChunkRows| ["time", "host", "none", "x", "no"].map(|name| rows.is_never_null(name));
        assert_eq!(never(&rows), [true, false, false, true, false]);
        assert_eq!(never(&rows.slice(1, 2)), [true, true, false, true, false]);
        assert_eq!(["time", "host", "none", "x"].map(|name| rows.lacks(name)), [false, false, true, false]);
        assert_eq!(rows.all().unwrap().num_columns(), 3);
    }
}
