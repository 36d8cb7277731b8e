//! How columns are laid out for clients: by default as the oldest readers know it, without dictionaries and views.

use std::sync::Arc;

use arc_core::expanded_bytes;
use arrow::{
    array::{Array, ArrayRef, RecordBatch, RecordBatchOptions},
    compute::{CastOptions, cast_with_options},
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
    // A value that has no form is an error, and not NULL.
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| cast_with_options(column, field.data_type(), &options));
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

/// Returns how many bytes the rows of a batch take once they are written out, whatever else is in its buffers.
pub(crate) fn size(batch: &RecordBatch) -> usize {
    let of = |column: &ArrayRef| {
        let own = column.to_data().get_slice_memory_size().unwrap_or(usize::MAX / 1024);
        own.saturating_add(expanded_bytes(column))
    };
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
        DataType::Map(entries, is_sorted) => DataType::Map(inner(entries), *is_sorted),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use arrow::{
        array::{
            BinaryViewArray, BooleanArray, DictionaryArray, FixedSizeListArray, Float64Array, Int64Array, ListArray,
            MapArray, NullArray, PrimitiveArray, StringArray, StringViewArray, StructArray, new_null_array,
        },
        buffer::OffsetBuffer,
        datatypes::{ArrowDictionaryKeyType, Int8Type, Int32Type, TimestampNanosecondType, UInt64Type},
    };

    use super::{
        super::{
            cells::{self, TimeForm},
            csv::Csv,
            encode::Encode,
            packed,
        },
        *,
    };

    fn dictionary<K: ArrowDictionaryKeyType>(keys: PrimitiveArray<K>, values: impl Array + 'static) -> ArrayRef {
        Arc::new(DictionaryArray::<K>::try_new(keys, Arc::new(values)).unwrap())
    }

    /// Returns columns of four rows, each laid out in its own way.
    fn leaves() -> Vec<ArrayRef> {
        let texts = StringArray::from(vec![Some("ä"), None, Some("a,\"b\"")]);
        let numbers = Float64Array::from(vec![f64::NAN, -0.0, 1e300]);
        vec![
            Arc::new(NullArray::new(4)),
            Arc::new(Int64Array::from(vec![Some(i64::MIN), None, Some(0), Some(i64::MAX)])),
            Arc::new(BooleanArray::from(vec![None, None, Some(true), Some(false)])),
            Arc::new(PrimitiveArray::<TimestampNanosecondType>::from(vec![Some(-1), None, Some(i64::MAX), Some(0)])),
            Arc::new(StringViewArray::from(vec![Some("longer than the twelve bytes of a view"), None, Some(""), None])),
            Arc::new(BinaryViewArray::from(vec![Some(&b"\xff"[..]), None, Some(b""), None])),
            dictionary::<Int32Type>(vec![Some(2), None, Some(1), Some(0)].into(), texts.clone()),
            dictionary::<UInt64Type>(vec![Some(0), Some(0), Some(2), Some(1)].into(), numbers),
            // Whatever is below a null is not looked at, and a value that is null is as good as none.
            dictionary::<Int8Type>(vec![None; 4].into(), texts),
            dictionary::<Int32Type>(vec![Some(0); 4].into(), StringArray::new_null(1)),
            dictionary::<Int32Type>(vec![None; 4].into(), StringArray::new_null(0)),
            dictionary::<UInt64Type>(vec![None; 4].into(), Int64Array::new_null(0)),
        ]
    }

    /// Returns columns that have `values` inside.
    fn nested(values: &ArrayRef) -> Vec<ArrayRef> {
        let item = || Arc::new(Field::new("item", values.data_type().clone(), true));
        let names: ArrayRef = Arc::new(StringArray::from(vec!["k", "l", "m", "n"]));
        let entry = [("keys", names.data_type().clone(), false), ("values", values.data_type().clone(), true)];
        let entry = entry.map(|(name, data_type, is_nullable)| Field::new(name, data_type, is_nullable));
        let entries = StructArray::try_new(entry.to_vec().into(), vec![names, Arc::clone(values)], None).unwrap();
        let field = Arc::new(Field::new("entries", entries.data_type().clone(), false));
        let ends = || OffsetBuffer::from_lengths([2, 0, 0, 2]);
        let valid = || Some(vec![true, false, true, true].into());
        let fields = vec![Field::clone(&item())].into();
        vec![
            Arc::new(ListArray::try_new(item(), ends(), Arc::clone(values), valid()).unwrap()),
            Arc::new(FixedSizeListArray::try_new(item(), 1, Arc::clone(values), valid()).unwrap()),
            Arc::new(StructArray::try_new(fields, vec![Arc::clone(values)], valid()).unwrap()),
            Arc::new(MapArray::try_new(field, ends(), entries, valid(), false).unwrap()),
        ]
    }

    fn batch(column: ArrayRef) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable([("c", column, true)]).unwrap()
    }

    /// Returns the rows of a batch in each form that has cells.
    fn written(batch: &RecordBatch) -> [Vec<String>; 3] {
        let column = batch.column(0);
        let json = cells::cell(column, TimeForm::Zoned).unwrap();
        let packed = packed::cell(column).unwrap();
        let rows = |write: &dyn Fn(usize, &mut Vec<u8>)| {
            let row = |row| {
                let mut out = Vec::new();
                write(row, &mut out);
                out.escape_ascii().to_string()
            };
            (0..batch.num_rows()).map(row).collect()
        };
        let csv = |row, out: &mut Vec<u8>| {
            let mut csv = Csv::open(&batch.schema(), TimeForm::Padded);
            csv.append(&batch.slice(row, 1)).unwrap();
            out.append(csv.encoded());
        };
        [rows(&json), rows(&packed), rows(&csv)]
    }

    #[test]
    fn an_answer_is_the_same_in_each_form_and_layout() {
        let leaves = leaves();
        let within: Vec<ArrayRef> = leaves.iter().flat_map(nested).collect();
        let deeper: Vec<ArrayRef> = within.iter().flat_map(nested).collect();
        let columns: Vec<ArrayRef> = leaves.into_iter().chain(within).chain(deeper).collect();
        for column in columns {
            let whole = batch(Arc::clone(&column));
            let rows = written(&whole);
            for (start, length) in (0..=4).flat_map(|start| (0..=4 - start).map(move |length| (start, length))) {
                let part = whole.slice(start, length);
                let plain = converted(&part, &readable(&part.schema(), false)).unwrap();
                let expected = rows.each_ref().map(|rows| rows[start..start + length].to_vec());
                assert_eq!(written(&part), expected, "{} from {start}", column.data_type());
                assert_eq!(written(&plain), expected, "{} from {start}, plain", column.data_type());
            }
            let nulls = batch(new_null_array(column.data_type(), 2));
            let plain = converted(&nulls, &readable(&nulls.schema(), false)).unwrap();
            assert_eq!(written(&nulls), written(&plain), "{}", column.data_type());
        }
    }
}
