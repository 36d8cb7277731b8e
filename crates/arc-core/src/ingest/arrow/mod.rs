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
    compute::cast,
    datatypes::DataType,
};
use bytes::Bytes;

use self::{tags::TagColumn, time::time_values, zero_copy::BorrowedBatches};
use super::staged::{
    Context, Staged, StagedTable, TableIndex, check_column_name, check_distinct, no_tags_later, type_name,
};
use crate::{
    Error, Result,
    arrays::numbers_as_text::{Floats, becomes_text, to_texts},
    buffer::{encoded, owned},
    catalog::comes_back,
    datafile::is_storable,
    model::{ColumnKind, TIME_COLUMN, check_row_bytes, check_type, tag_type},
    registry::{check_name, invalid_name},
};

pub use expanded::expanded_bytes;
pub(crate) use stream::of_file;
#[cfg(feature = "import")]
pub(crate) use {
    file::{FileStream, needs_footer},
    reader::ArrowReader,
    types::odd_columns,
};

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
        budget: terms.most_bytes,
        kept: BorrowedBatches::new(body, terms.may_keep),
        context,
    };
    let fed: Result<(), StreamFault> = stream::batches(body, terms.most_bytes, |batch| Ok(batches.append(batch)?));
    fed.map_err(|fault| match fault {
        StreamFault::Stream(reason) => invalid(reason),
        StreamFault::Batch(error) => error,
    })?;
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
    /// Bytes that values may still take beyond their buffers.
    budget: usize,
    kept: BorrowedBatches,
    context: &'a Context<'a>,
}

impl Batches<'_> {
    fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        self.check_names(batch)?;
        let Some(time) = batch.column_by_name(self.time_column) else {
            return Err(invalid(format!("there is no column {:?} for the time", self.time_column)));
        };
        let time = time_values(time, self.time_column, self.context.precision).map_err(invalid)?;
        let schema = batch.schema();
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
                let fitted = fitting(self.table, name, array, self.context)?;
                // What is copied is encoded when it is in the buffer.
                let encoded = if is_kept { encoded(array)? } else { None };
                columns.extend(fitted.map(|(index, texts)| (index, encoded.unwrap_or(texts))));
            }
        }
        let series = match self.table.has_primary_key() {
            true => tags::resolve(&mut self.table.table.series.write(), &tags, batch.num_rows())?,
            false => Vec::new(),
        };
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

    /// Checks that no column comes twice, and that all declared tags are there.
    fn check_names(&self, batch: &RecordBatch) -> Result<()> {
        let schema = batch.schema();
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
                return Err(conflict(
                    self.table,
                    name,
                    SentTypes { existing: &column.data_type, got: &tag_type() },
                    "",
                ));
            }
            Some(_) => {}
            None => {
                check_column_name("tag", name).and_then(|()| self.table.check_column_count(1)).map_err(invalid)?;
                self.table.add(name, ColumnKind::Tag, tag_type());
            }
        }
        let tag = TagColumn::new(name, array)?;
        tag.ok_or_else(|| conflict(self.table, name, SentTypes { existing: &tag_type(), got: array.data_type() }, ""))
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

/// Text in any of its Arrow forms becomes `Utf8`; every other type stays.
fn plain(array: &ArrayRef) -> Result<ArrayRef> {
    let text = match array.data_type() {
        DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => {
            matches!(values.as_ref(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
        }
        _ => false,
    };
    if text { cast(array, &DataType::Utf8).map_err(|e| invalid(e.to_string())) } else { Ok(Arc::clone(array)) }
}

/// Returns an array as one of another type, if that can be and alters no value.
fn exact(array: &ArrayRef, data_type: &DataType) -> Result<Option<ArrayRef>> {
    if !widens(array.data_type(), data_type) {
        return Ok(None);
    }
    let other = cast(array, data_type).map_err(|e| invalid(e.to_string()))?;
    let back = cast(&other, array.data_type()).ok();
    Ok((back.as_ref() == Some(array)).then_some(other))
}

/// Returns which of the plain types an array is of, or could be, and whether floats can hold its
/// values.
fn own_type(array: &ArrayRef) -> Result<(DataType, bool)> {
    let data_type = array.data_type();
    if data_type.is_integer() || data_type.is_floating() {
        let are_floats = *data_type == DataType::Float64 || exact(array, &DataType::Float64)?.is_some();
        return Ok((DataType::Float64, are_floats));
    }
    Ok((data_type.clone(), false))
}

/// Says why a column does not take an array.
fn misfit(table: &StagedTable, name: &str, types: SentTypes<'_>, way_out: &'static str) -> Error {
    if widens(types.got, types.existing) {
        let reason = "is of floats, which cannot hold all of its integers exactly";
        return invalid(format!("column {name:?} {reason}{way_out}"));
    }
    conflict(table, name, types, way_out)
}

/// The type of a column in the table, and that of what was sent.
#[derive(Clone, Copy)]
struct SentTypes<'t> {
    existing: &'t DataType,
    got: &'t DataType,
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

fn conflict(table: &StagedTable, column: &str, types: SentTypes<'_>, way_out: &'static str) -> Error {
    Error::SchemaConflict {
        table: table.name().to_owned(),
        column: column.to_owned(),
        existing: type_name(types.existing),
        got: type_name(types.got) + way_out,
    }
}

/// Returns a column of a batch in the type of the table's, and which that is; it is proposed if it
/// is new.
fn fitting(
    table: &mut StagedTable,
    name: &str,
    array: &ArrayRef,
    context: &Context<'_>,
) -> Result<Option<(usize, ArrayRef)>> {
    // A column without any value decides nothing, and its rows have none.
    if *array.data_type() == DataType::Null {
        return Ok(None);
    }
    let mut array = plain(array)?;
    let existing = table.position(name).and_then(|index| table.column(index)).map(|column| &column.data_type);
    if *array.data_type() != DataType::Utf8 && table.rules(context).are_texts(name, existing) {
        array = text_of(name, &array)?;
    }
    let index = match table.position(name) {
        Some(index) => index,
        None => {
            check_column_name("column", name).and_then(|()| table.check_column_count(1)).map_err(invalid)?;
            if !is_storable(array.data_type()) {
                return Err(invalid(format!(
                    "column {name:?} has the type {}, which Parquet cannot hold",
                    array.data_type()
                )));
            }
            if !comes_back(array.data_type()) {
                return Err(invalid(format!(
                    "column {name:?} has a type that cannot be kept; it may be nested too deep"
                )));
            }
            if context.is_checked() {
                check_type(name, array.data_type()).map_err(invalid)?;
            }
            table.add(name, ColumnKind::Field, table.rules(context).arrow_type_of_new(array.data_type()))
        }
    };
    let Some(column) = table.column(index) else { return Err(Error::internal("a column is gone")) };
    let mut data_type = column.data_type.clone();
    if *array.data_type() != data_type {
        array = match exact(&array, &data_type)? {
            Some(same) => same,
            None => {
                let (own, are_floats) = own_type(&array)?;
                let Some(wider) = table.wider(index, &own, are_floats, context) else {
                    let way_out = table.rules(context).way_out(&own, &data_type);
                    return Err(misfit(
                        table,
                        name,
                        SentTypes { existing: &data_type, got: array.data_type() },
                        way_out,
                    ));
                };
                table.widen(index, wider.clone())?;
                data_type = wider;
                match data_type {
                    DataType::Utf8 => text_of(name, &array)?,
                    _ => cast(&array, &data_type).map_err(|e| invalid(e.to_string()))?,
                }
            }
        };
    }
    Ok(Some((index, array)))
}

/// Returns whether values of one type can be those of another; that none is altered is checked by
/// converting back.
fn widens(from: &DataType, to: &DataType) -> bool {
    match to {
        DataType::Float64 => from.is_integer() || matches!(from, DataType::Float32 | DataType::Float16),
        DataType::Int64 => from.is_integer() && *from != DataType::UInt64,
        DataType::UInt64 => from.is_unsigned_integer(),
        _ => false,
    }
}

/// Returns whether the values of a column are copied as they are appended.
fn is_plain(data_type: &DataType) -> bool {
    use DataType::{Boolean, Float64, Int64, UInt64, Utf8};
    matches!(data_type, Float64 | Int64 | UInt64 | Boolean | Utf8)
}
