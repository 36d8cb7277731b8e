//! How columns are laid out for clients: by default as the oldest readers know it, without dictionaries and views.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, RecordBatch, RecordBatchOptions},
    compute::cast,
    datatypes::{DataType, Field, FieldRef, Schema, SchemaRef},
    error::ArrowError,
};
use hyper::HeaderMap;

use crate::{errors::Failure, http::params::header};

/// Header that asks for dictionaries.
const DICTIONARY: &str = "x-arc-arrow-dictionary";

/// Returns whether a client wants dictionary columns (tags) as dictionaries.
pub(crate) fn keeps_dictionaries(headers: &HeaderMap) -> Result<bool, Failure> {
    match header(headers, DICTIONARY)? {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(other) => Err(unknown(DICTIONARY, other, "true or false")),
    }
}

/// Returns the failure for a header with a value that is not known.
pub(crate) fn unknown(name: &str, value: &str, expected: &str) -> Failure {
    Failure::bad_request(format!("header {name}: {value:?} is not valid; expected {expected}"))
}

/// Returns the columns as they are sent.
pub(crate) fn readable(schema: &Schema, keep_dictionaries: bool) -> SchemaRef {
    let fields: Vec<FieldRef> = schema.fields().iter().map(|field| column(field, keep_dictionaries)).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Returns the same rows in the layout of `schema`, which [`readable`] made.
pub(crate) fn converted(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().zip(schema.fields()).map(|(column, field)| cast(column, field.data_type()));
    // Without columns only this says how many rows there are.
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns.collect::<Result<_, _>>()?, &rows)
}

/// Refuses columns of one name, for forms whose readers would keep one of them.
pub(super) fn check_names(schema: &Schema) -> Result<(), Failure> {
    let mut names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    names.sort_unstable();
    let twice = names.windows(2).find_map(|pair| match pair {
        [first, second] if first == second => Some(*first),
        _ => None,
    });
    let advice = "give them different names with AS, or ask for a format that takes them, such as csv";
    twice.map_or(Ok(()), |name| {
        Err(Failure::bad_request(format!("more than one column of the answer is called {name:?}: {advice}")))
    })
}

/// Returns how many bytes the rows of a batch take, whatever else is in its buffers.
pub(crate) fn size(batch: &RecordBatch) -> usize {
    let of = |column: &ArrayRef| column.to_data().get_slice_memory_size().unwrap_or(usize::MAX / 1024);
    batch.columns().iter().map(of).fold(0, usize::saturating_add)
}

/// Returns the column as it is sent.
fn column(field: &FieldRef, keep_dictionaries: bool) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Dictionary(key, value) if keep_dictionaries => {
            DataType::Dictionary(key.clone(), Box::new(plain(value)))
        }
        other => plain(other),
    };
    Arc::new(Field::clone(field).with_data_type(data_type))
}

/// Returns the type with the same values in the plainest layout.
fn plain(data_type: &DataType) -> DataType {
    let inner = |field: &FieldRef| column(field, false);
    match data_type {
        DataType::Dictionary(_, values) => plain(values),
        DataType::RunEndEncoded(_, values) => plain(values.data_type()),
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::List(field) | DataType::ListView(field) => DataType::List(inner(field)),
        DataType::LargeList(field) | DataType::LargeListView(field) => DataType::LargeList(inner(field)),
        DataType::FixedSizeList(field, length) => DataType::FixedSizeList(inner(field), *length),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
        other => other.clone(),
    }
}
