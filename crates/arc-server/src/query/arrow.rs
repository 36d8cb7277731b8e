//! An answer as an Arrow IPC stream.
//!
//! By default every column has the layout that the oldest readers know: no dictionaries, no views. A client that can
//! read more says so.

use std::{sync::Arc, time::Instant};

use arrow::{
    array::RecordBatch,
    compute::cast,
    datatypes::{DataType, Field, FieldRef, Schema, SchemaRef},
    error::ArrowError,
    ipc::{
        CompressionType,
        writer::{IpcWriteOptions, StreamWriter},
    },
};
use hyper::HeaderMap;

use super::encode::Encode;
use crate::{app::App, errors::Failure, http::params::header, metrics::Counter};

/// Encodes an answer as an Arrow IPC stream.
pub(super) struct Ipc {
    schema: SchemaRef,
    writer: StreamWriter<Vec<u8>>,
}

impl Encode for Ipc {
    const CONTENT_TYPE: &'static str = "application/vnd.apache.arrow.stream";

    fn disconnects(app: &App) -> &Counter {
        &app.metrics.queries.disconnects_arrow
    }

    fn open(headers: &HeaderMap, schema: &SchemaRef, _started: Instant) -> Result<Self, Failure> {
        let keep_dictionaries = match header(headers, "x-arc-arrow-dictionary")? {
            None | Some("false") => false,
            Some("true") => true,
            Some(other) => return Err(unknown("x-arc-arrow-dictionary", other, "true or false")),
        };
        let compression = match header(headers, "x-arc-arrow-compression")? {
            None | Some("none") => None,
            Some("zstd") => Some(CompressionType::ZSTD),
            Some("lz4") => Some(CompressionType::LZ4_FRAME),
            Some(other) => return Err(unknown("x-arc-arrow-compression", other, "zstd, lz4 or none")),
        };
        Self::new(schema, keep_dictionaries, compression).map_err(|e| Failure::from(arc_core::Error::from(e)))
    }

    fn append(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let fields = self.schema.fields();
        let columns = batch.columns().iter().zip(fields).map(|(column, field)| cast(column, field.data_type()));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        self.writer.write(&RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }

    fn finish(&mut self) -> Result<(), ArrowError> {
        self.writer.finish()
    }

    fn encoded(&mut self) -> &mut Vec<u8> {
        self.writer.get_mut()
    }
}

impl Ipc {
    fn new(
        schema: &SchemaRef,
        keep_dictionaries: bool,
        compression: Option<CompressionType>,
    ) -> Result<Self, ArrowError> {
        let fields: Vec<FieldRef> = schema.fields().iter().map(|field| readable(field, keep_dictionaries)).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        let options = IpcWriteOptions::default().try_with_compression(compression)?;
        let writer = StreamWriter::try_new_with_options(Vec::new(), &schema, options)?;
        Ok(Self { schema, writer })
    }
}

/// Returns the column as it is sent.
fn readable(field: &FieldRef, keep_dictionaries: bool) -> FieldRef {
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
    let inner = |field: &FieldRef| readable(field, false);
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

fn unknown(name: &str, value: &str, expected: &str) -> Failure {
    Failure::bad_request(format!("header {name}: {value:?} is not valid; expected {expected}"))
}

#[cfg(test)]
mod tests {
    use arrow::{
        array::{ArrayRef, AsArray, DictionaryArray, StringViewArray},
        datatypes::Int32Type,
        ipc::reader::StreamReader,
    };

    use super::*;

    fn batch() -> RecordBatch {
        let hosts: DictionaryArray<Int32Type> = vec![Some("a"), None, Some("b")].into_iter().collect();
        let views = StringViewArray::from(vec![Some("a text that does not fit in a view"), None, Some("x")]);
        let columns: [(&str, ArrayRef); 2] = [("host", Arc::new(hosts)), ("text", Arc::new(views))];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    fn sent(keep_dictionaries: bool, compression: Option<CompressionType>) -> Vec<RecordBatch> {
        let batch = batch();
        let mut ipc = Ipc::new(&batch.schema(), keep_dictionaries, compression).unwrap();
        let mut bytes = std::mem::take(ipc.encoded());
        for rows in [0..1, 1..3] {
            ipc.append(&batch.slice(rows.start, rows.len())).unwrap();
            bytes.append(ipc.encoded());
        }
        ipc.finish().unwrap();
        bytes.append(ipc.encoded());
        StreamReader::try_new(bytes.as_slice(), None).unwrap().collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn by_default_strings_are_plain() {
        for compression in [None, Some(CompressionType::ZSTD), Some(CompressionType::LZ4_FRAME)] {
            let batches = sent(false, compression);
            assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 3);
            assert!(batches[0].columns().iter().all(|c| *c.data_type() == DataType::Utf8));
            assert_eq!(batches[1].column(0).as_string::<i32>().iter().collect::<Vec<_>>(), [None, Some("b")]);
        }
    }

    #[test]
    fn dictionaries_stay_on_request() {
        let batches = sent(true, None);
        assert!(matches!(batches[0].column(0).data_type(), DataType::Dictionary(..)));
        assert_eq!(*batches[0].column(1).data_type(), DataType::Utf8);
    }

    #[test]
    fn unknown_wishes_are_refused() {
        let schema = batch().schema();
        for (name, value, ok) in [
            ("x-arc-arrow-compression", "zstd", true),
            ("x-arc-arrow-compression", "lz4", true),
            ("x-arc-arrow-compression", "gzip", false),
            ("x-arc-arrow-dictionary", "true", true),
            ("x-arc-arrow-dictionary", "yes", false),
        ] {
            let headers = HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())]);
            assert_eq!(Ipc::open(&headers, &schema, Instant::now()).is_ok(), ok, "{name}: {value}");
        }
    }
}
