//! An answer as an Arrow IPC stream.
//!
//! A client that can read more than the plainest layout says so.

use std::time::Instant;

use arrow::{
    array::RecordBatch,
    datatypes::SchemaRef,
    error::ArrowError,
    ipc::{
        CompressionType,
        writer::{IpcWriteOptions, StreamWriter},
    },
};
use hyper::HeaderMap;

use super::{
    encode::Encode,
    layout::{self, unknown},
};
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
        let keep_dictionaries = layout::keeps_dictionaries(headers)?;
        let compression = match header(headers, "x-arc-arrow-compression")? {
            None | Some("none") => None,
            Some("zstd") => Some(CompressionType::ZSTD),
            Some("lz4") => Some(CompressionType::LZ4_FRAME),
            Some(other) => return Err(unknown("x-arc-arrow-compression", other, "zstd, lz4 or none")),
        };
        Self::new(schema, keep_dictionaries, compression).map_err(|e| Failure::from(arc_core::Error::from(e)))
    }

    fn append(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        self.writer.write(&layout::converted(batch, &self.schema)?)
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
        let schema = layout::readable(schema, keep_dictionaries);
        let options = IpcWriteOptions::default().try_with_compression(compression)?;
        let writer = StreamWriter::try_new_with_options(Vec::new(), &schema, options)?;
        Ok(Self { schema, writer })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::{
        array::{ArrayRef, AsArray, DictionaryArray, StringViewArray},
        datatypes::{DataType, Int32Type},
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
