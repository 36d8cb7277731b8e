//! Record batches into columns: whole arrays, checked once each.
//!
//! A write of batches is all or nothing: the first thing that does not fit refuses it. Small
//! batches are copied into columns; large ones stay in the body that they came in (`kept`).

mod expanded;
mod file;
#[cfg(feature = "import")]
mod reader;
mod stream;
mod tags;
#[cfg(test)]
mod tests;
mod time;
mod types;
mod zero_copy;

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, RecordBatch},
    buffer::ScalarBuffer,
    compute::cast,
    datatypes::{DataType, Field, TimeUnit},
    util::display::array_value_to_string,
};
use bytes::Bytes;

use self::{tags::TagColumn, time::time_values, zero_copy::BorrowedBatches};
use super::{
    staged::{Context, Staged, StagedTable, TableIndex, check_column_name, check_distinct, no_tags_later, type_name},
    times::TimeChecks,
};
use crate::{
    Error, Result,
    arrays::{
        exact::{Conversion, convert, plain},
        numbers_as_text::{Floats, becomes_text, to_texts},
    },
    buffer::{encoded, owned},
    catalog::comes_back,
    datafile::is_storable,
    model::{ColumnKind, TIME_COLUMN, check_row_bytes, check_type, tag_type, time_type},
    registry::{check_name, invalid_name},
};

pub use expanded::expanded_bytes;
pub(crate) use stream::of_file;
pub(crate) use time::with_whole_times;
#[cfg(feature = "import")]
pub(crate) use {
    file::{FileStream, needs_footer},
    reader::ArrowReader,
    types::odd_columns,
};

/// Key in the metadata of a schema: with the value `keep`, integers of new columns have the width that they came with.
pub(crate) const INTEGER_WIDTH: &str = "arc.integer_width";
pub(crate) const KEEP: &str = "keep";

/// The columns of a batch that have any value, by index in the table.
type BatchColumns = Vec<(usize, ArrayRef)>;

/// What a body is decoded within. Replay, which decodes what was accepted, knows no limit, and its
/// bodies are part of something larger.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    /// What the values may take that are compressed or shared in the stream.
    pub(crate) most_bytes: usize,
    /// Whether rows may stay in the body.
    pub(crate) may_keep: bool,
}

/// Decodes an Arrow IPC stream into rows of `table`.
///
/// # Errors
///
/// [`Error::InvalidPayload`], [`Error::InvalidName`] or [`Error::SchemaConflict`]; nothing is
/// stored then.
pub(crate) fn decode(
    body: &Bytes,
    table: &str,
    time_column: Option<&str>,
    terms: Terms,
    context: &Context<'_>,
) -> Result<Staged> {
    let staged = decode_within(body, table, time_column, terms, context)?;
    // What decides whether a column can be widened looks at the rows that are copied, and converts
    // these.
    let keeps_other_types = staged.tables.iter().any(|table| {
        let schema = table.grown_schema();
        table.kept.chunks.iter().any(|chunk| !chunk.has_types_of(&schema))
    });
    if keeps_other_types {
        return decode_within(body, table, time_column, Terms { may_keep: false, ..terms }, context);
    }
    Ok(staged)
}

fn decode_within(
    body: &Bytes,
    table: &str,
    time_column: Option<&str>,
    terms: Terms,
    context: &Context<'_>,
) -> Result<Staged> {
    check_name(table).map_err(|reason| invalid_name("table", table, reason))?;
    let mut staged = Staged::new(context.database);
    let at = TableIndex::default().by_name(&mut staged, table, !context.tags.is_empty()).map_err(invalid)?;
    let Some(into) = staged.tables.get_mut(at) else { return Err(Error::internal("a table is gone")) };
    if !context.tags.is_empty() && !into.has_primary_key() {
        return Err(invalid(no_tags_later(into.name())));
    }
    let mut batches = Batches {
        table: into,
        time_column: time_column.unwrap_or(TIME_COLUMN),
        rows: 0,
        keeps_width: false,
        budget: terms.most_bytes,
        kept: BorrowedBatches::new(body, terms.may_keep),
        has_own_times: false,
        context,
    };
    let fed: Result<(), StreamFault> = stream::batches(body, terms.most_bytes, |batch| Ok(batches.append(batch)?));
    fed.map_err(|fault| match fault {
        StreamFault::Stream(reason) => invalid(reason),
        StreamFault::Batch(error) => error,
    })?;
    let has_own_times = batches.has_own_times;
    let kept = batches.kept.finish()?;
    if context.is_checked() && !into.added.is_empty() {
        let columns = into.base.schema.columns.iter().chain(&into.added);
        check_row_bytes(into.name(), columns.map(|column| &column.data_type)).map_err(invalid)?;
    }
    if context.tags.is_empty() && into.has_primary_key() {
        let kept = kept.chunks.iter().flat_map(|chunk| chunk.series.iter().copied().zip(chunk.time.iter().copied()));
        let copied = into.rows.series.iter().copied().zip(into.rows.time.iter().copied());
        check_distinct(into.name(), kept.chain(copied)).map_err(invalid)?;
    }
    into.kept = kept;
    staged.has_own_times = has_own_times;
    Ok(staged)
}

/// Why a stream was refused: for its form, or for what is in it.
enum StreamFault {
    Stream(String),
    Batch(Error),
}

impl From<String> for StreamFault {
    fn from(reason: String) -> Self {
        Self::Stream(reason)
    }
}

impl From<Error> for StreamFault {
    fn from(error: Error) -> Self {
        Self::Batch(error)
    }
}

fn invalid(reason: String) -> Error {
    Error::InvalidPayload { format: "Arrow", reason }
}

/// The batches of one write on their way into a table.
struct Batches<'a> {
    table: &'a mut StagedTable,
    time_column: &'a str,
    /// Rows of the batches before.
    rows: usize,
    /// Whether integers of new columns keep their width.
    keeps_width: bool,
    /// Bytes that values may still take beyond their buffers.
    budget: usize,
    kept: BorrowedBatches,
    has_own_times: bool,
    context: &'a Context<'a>,
}

impl Batches<'_> {
    fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        self.check_names(batch)?;
        let Some(time) = batch.column_by_name(self.time_column) else {
            return Err(invalid(format!("there is no column {:?} for the time", self.time_column)));
        };
        let mut time = time_values(time, self.time_column, self.context.precision).map_err(invalid)?;
        if self.context.times == TimeChecks::All {
            time = self.fit_times(&time)?;
        }
        let schema = batch.schema();
        self.keeps_width = schema.metadata().get(INTEGER_WIDTH).is_some_and(|width| width == KEEP);
        let is_kept = self.kept.takes(batch.num_rows(), self.table.rows.len());
        let (mut tags, mut columns) = (Vec::new(), BatchColumns::new());
        for (field, array) in schema.fields().iter().zip(batch.columns()) {
            let name = field.name().as_str();
            if name == self.time_column {
                continue;
            }
            if self.table.has_primary_key() && self.is_tag(name) {
                tags.push(self.tag(name, array)?);
            } else {
                self.reserve(name, array)?;
                let fitted = self.fitting(name, array)?;
                // What is copied is encoded when it is in the buffer.
                let encoded = if is_kept { encoded(array)? } else { None };
                columns.extend(fitted.map(|(index, texts)| (index, encoded.unwrap_or(texts))));
            }
        }
        let series = match self.table.has_primary_key() {
            true => tags::resolve(&mut self.table.table.series.write(), &tags, batch.num_rows())?,
            false => Vec::new(),
        };
        self.rows += batch.num_rows();
        if is_kept {
            return self.kept.add(time, series, columns);
        }
        let rows = &mut self.table.rows;
        let before = rows.len();
        for (index, array) in columns {
            let array = if is_plain(array.data_type()) { array } else { owned(&array)? };
            rows.column(index, array.data_type(), before).append_array(&array)?;
        }
        rows.series.extend(series);
        rows.time.extend_from_slice(&time);
        Ok(())
    }

    /// Returns the times that the rows get.
    fn fit_times(&mut self, times: &ScalarBuffer<i64>) -> Result<ScalarBuffer<i64>> {
        let rules = self.table.time_rules(self.context);
        let fit = |(row, time): (usize, &i64)| {
            rules.fit(*time).map_err(|reason| invalid(format!("row {}: {reason}", self.rows + row + 1)))
        };
        let fitted: ScalarBuffer<i64> = times.iter().enumerate().map(fit).collect::<Result<_>>()?;
        self.has_own_times |= fitted != *times;
        Ok(fitted)
    }

    /// Checks that no column comes twice or is of a type that nobody knows here, and that all declared tags are there.
    fn check_names(&self, batch: &RecordBatch) -> Result<()> {
        let schema = batch.schema();
        if self.context.is_checked() {
            schema.fields().iter().try_for_each(|field| check_extension(field))?;
        }
        let mut names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        names.sort_unstable();
        if let Some([name, _]) = names.array_windows().find(|[one, next]| one == next) {
            return Err(invalid(format!("column {name:?} comes twice")));
        }
        match self.context.tags.iter().find(|tag| names.binary_search(&tag.as_str()).is_err()) {
            Some(tag) => Err(invalid(format!("there is no column {tag:?}, which was declared a tag"))),
            None => Ok(()),
        }
    }

    fn is_tag(&self, name: &str) -> bool {
        let known = || self.table.position(name).and_then(|index| self.table.column(index));
        self.context.tags.iter().any(|tag| tag == name) || known().is_some_and(|column| column.kind == ColumnKind::Tag)
    }

    /// Checks a tag column, and proposes it if it is new.
    fn tag<'n>(&mut self, name: &'n str, array: &ArrayRef) -> Result<TagColumn<'n>> {
        match self.table.position(name).and_then(|index| self.table.column(index)) {
            Some(column) if column.kind == ColumnKind::Field => {
                return Err(conflict(self.table, name, &column.data_type, type_name(&tag_type())));
            }
            Some(_) => {}
            None => {
                check_column_name("tag", name).and_then(|()| self.table.check_column_count(1)).map_err(invalid)?;
                self.table.add(name, ColumnKind::Tag, tag_type());
            }
        }
        let tag = TagColumn::new(name, array)?;
        tag.ok_or_else(|| conflict(self.table, name, &tag_type(), type_name(array.data_type())))
    }

    /// Returns a column of a batch in the type of the table's, and which that is; it is proposed if it is new.
    fn fitting(&mut self, name: &str, array: &ArrayRef) -> Result<Option<(usize, ArrayRef)>> {
        // A column without any value decides nothing, and its rows have none.
        if *array.data_type() == DataType::Null {
            return Ok(None);
        }
        let mut array = plain(array).map_err(|e| invalid(e.to_string()))?;
        let existing = self.table.position(name).and_then(|index| self.table.column(index));
        let existing = existing.map(|column| column.data_type.clone());
        if *array.data_type() != DataType::Utf8 && self.table.rules(self.context).are_texts(name, existing.as_ref()) {
            array = text_of(name, &array)?;
        }
        let (index, data_type) = match (self.table.position(name), existing) {
            (Some(index), Some(data_type)) => (index, data_type),
            _ => {
                array = self.new_column(name, &array)?;
                let data_type = array.data_type().clone();
                (self.table.add(name, ColumnKind::Field, data_type.clone()), data_type)
            }
        };
        self.reserve_growth(name, &array, &data_type)?;
        let lossy = match converted(&array, &data_type)? {
            Conversion::Exact(same) => return Ok(Some((index, same))),
            Conversion::Lossy(row) => Some(row),
            Conversion::Unrelated => None,
        };
        let (own, are_floats) = own_type(&array)?;
        let Some(wider) = self.table.wider(index, &own, are_floats, self.context) else {
            let way_out = self.table.rules(self.context).way_out(&own, &data_type);
            return Err(self.misfit(name, &data_type, (&array, lossy), way_out));
        };
        self.table.widen(index, wider.clone())?;
        let array = match wider {
            DataType::Utf8 => text_of(name, &array)?,
            _ => cast(&array, &wider).map_err(|e| invalid(e.to_string()))?,
        };
        Ok(Some((index, array)))
    }

    /// Checks a new column, and returns its values in the type that it gets: one for all numbers of a kind and one for all
    /// times, so that the first write decides no width and no unit; the own one where that cannot be every value.
    fn new_column(&mut self, name: &str, array: &ArrayRef) -> Result<ArrayRef> {
        check_column_name("column", name).and_then(|()| self.table.check_column_count(1)).map_err(invalid)?;
        let own = array.data_type();
        if !is_storable(own) {
            return Err(invalid(format!("column {name:?} has the type {own}, which Parquet cannot hold")));
        }
        if !comes_back(own) {
            return Err(invalid(format!("column {name:?} has a type that cannot be kept; it may be nested too deep")));
        }
        if !self.context.is_checked() {
            return Ok(Arc::clone(array));
        }
        check_type(name, own).map_err(invalid)?;
        // Nothing becomes of narrow ones, which those that may change their type do.
        if own.is_integer() && self.keeps_width && !self.table.rules(self.context).widens() {
            return Ok(Arc::clone(array));
        }
        let widest = widest_type(own);
        self.reserve_growth(name, array, &widest)?;
        if widest == time_type()
            && let Conversion::Exact(array) =
                converted(array, &self.table.rules(self.context).times().unit.column_type())?
        {
            return Ok(array);
        }
        match (converted(array, &widest)?, own) {
            (Conversion::Exact(array), _) => Ok(array),
            (_, DataType::Timestamp(unit, _)) => {
                let utc = DataType::Timestamp(*unit, Some("UTC".into()));
                match converted(array, &utc)? {
                    Conversion::Exact(array) => Ok(array),
                    _ => Err(Error::internal("a time is another one in UTC")),
                }
            }
            _ => Ok(Arc::clone(array)),
        }
    }

    /// Says why a column does not take an array, and the row that it cannot have if there is one.
    fn misfit(
        &self,
        name: &str,
        existing: &DataType,
        (array, lossy): (&ArrayRef, Option<usize>),
        way_out: &'static str,
    ) -> Error {
        let mut got = type_name(array.data_type());
        if let Some(row) = lossy {
            let value = array_value_to_string(array, row).unwrap_or_default();
            got = format!("{got}, and {value} in row {} cannot be one", self.rows + row + 1);
        }
        conflict(self.table, name, existing, got + way_out)
    }

    /// Counts what a column takes that gets wider values.
    fn reserve_growth(&mut self, name: &str, array: &ArrayRef, to: &DataType) -> Result<()> {
        let width = |data_type: &DataType| data_type.primitive_width().unwrap_or_default();
        let bytes = width(to).saturating_sub(width(array.data_type())).saturating_mul(array.len());
        self.budget = self.budget.checked_sub(bytes).ok_or_else(|| {
            invalid(format!(
                "column {name:?} takes {bytes} bytes more as {to}, more than one write may; send fewer rows"
            ))
        })?;
        Ok(())
    }

    /// Counts what a column takes beyond its buffers.
    fn reserve(&mut self, name: &str, array: &ArrayRef) -> Result<()> {
        let bytes = expanded_bytes(array);
        // Offsets into the text of one column have 31 bits.
        let left = self.budget.checked_sub(bytes).filter(|_| i32::try_from(bytes).is_ok());
        self.budget = left.ok_or_else(|| {
            invalid(format!("column {name:?} repeats values: they take {bytes} bytes, more than one write may"))
        })?;
        Ok(())
    }
}

/// Returns which of the plain types an array is of, or could be, and whether floats can hold its
/// values.
fn own_type(array: &ArrayRef) -> Result<(DataType, bool)> {
    let data_type = array.data_type();
    if data_type.is_integer() || data_type.is_floating() {
        let are_floats = matches!(converted(array, &DataType::Float64)?, Conversion::Exact(_));
        return Ok((DataType::Float64, are_floats));
    }
    Ok((data_type.clone(), false))
}

fn converted(array: &ArrayRef, to: &DataType) -> Result<Conversion> {
    // The text of a decimal is not that of the number that it is: what a replay makes of it, where the column has become
    // one of texts since, would not be what was there (decision 023).
    if array.data_type().is_decimal() != to.is_decimal() {
        return Ok(Conversion::Unrelated);
    }
    convert(array, to).map_err(|e| invalid(e.to_string()))
}

fn text_of(name: &str, array: &ArrayRef) -> Result<ArrayRef> {
    scalar_texts(array).map_err(|reason| invalid(format!("column {name:?} {reason}")))
}

/// Returns scalars of any type as texts.
fn scalar_texts(array: &ArrayRef) -> Result<ArrayRef, String> {
    if *array.data_type() == DataType::Utf8 {
        return Ok(Arc::clone(array));
    }
    let data_type = array.data_type();
    if becomes_text(data_type) {
        return to_texts(array, Floats::Plain).map_err(|e| e.to_string());
    }
    if !data_type.is_temporal() && !data_type.is_decimal() {
        return Err(format!("is to be text, which nothing of the type {data_type} is made"));
    }
    let texts = cast(array, &DataType::Utf8).map_err(|e| format!("cannot be made text: {e}"))?;
    match texts.null_count() == array.null_count() {
        true => Ok(texts),
        false => Err(format!("has values of the type {data_type} that have no text")),
    }
}

/// Refuses an extension type whose values would become other ones: the number of a period is no time. Texts and lists are
/// what they are.
fn check_extension(field: &Field) -> Result<()> {
    let data_type = field.data_type();
    let is_number = data_type.is_numeric() || data_type.is_temporal();
    match field.extension_type_name() {
        Some(extension) if is_number || matches!(data_type, DataType::FixedSizeBinary(_) | DataType::Struct(_)) => {
            let name = field.name();
            Err(invalid(format!(
                "column {name:?} has the extension type {extension}, of which only the storage is known here ({data_type}); \
                 convert it to a type of Arrow first"
            )))
        }
        _ => Ok(()),
    }
}

fn conflict(table: &StagedTable, column: &str, existing: &DataType, got: String) -> Error {
    Error::SchemaConflict {
        table: table.name().to_owned(),
        column: column.to_owned(),
        existing: type_name(existing),
        got,
    }
}

/// Returns the type of a new column for values of another: as wide as any of their kind.
fn widest_type(own: &DataType) -> DataType {
    use DataType::{
        Binary, BinaryView, Date32, Date64, Duration, Float16, Float32, Float64, Int8, Int16, Int32, Int64,
        LargeBinary, Time32, Time64, Timestamp, UInt8, UInt16, UInt32,
    };
    match own {
        Int8 | Int16 | Int32 | UInt8 | UInt16 | UInt32 => Int64,
        Float16 | Float32 => Float64,
        Timestamp(..) => time_type(),
        Date64 => Date32,
        Time32(_) | Time64(_) => Time64(TimeUnit::Nanosecond),
        Duration(_) => Duration(TimeUnit::Nanosecond),
        LargeBinary | BinaryView => Binary,
        other => other.clone(),
    }
}

/// Returns whether the values of a column are copied as they are appended.
fn is_plain(data_type: &DataType) -> bool {
    use DataType::{Boolean, Float64, Int64, UInt64, Utf8};
    matches!(data_type, Float64 | Int64 | UInt64 | Boolean | Utf8)
}
