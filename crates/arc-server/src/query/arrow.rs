//! An answer as an Arrow IPC stream.
//!
//! A client that can read more than the plainest layout says so.

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
    encode::{Encode, unencodable},
    layout::{self, unknown},
};
use crate::{errors::Failure, http::params::header};

/// Encodes an answer as an Arrow IPC stream.
pub(super) struct Ipc {
    schema: SchemaRef,
    writer: StreamWriter<Vec<u8>>,
}

impl Encode for Ipc {
    fn append(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        let batch = layout::converted(batch, &self.schema).map_err(unencodable)?;
        self.writer.write(&batch).map_err(unencodable)
    }

    fn finish(&mut self) -> Result<bool, Failure> {
        self.writer.finish().map_err(unencodable)?;
        Ok(true)
    }

    fn encoded(&mut self) -> &mut Vec<u8> {
        self.writer.get_mut()
    }
}

/// How a client wants its Arrow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wishes {
    keep_dictionaries: bool,
    compression: Option<CompressionType>,
}

impl Wishes {
    /// Reads the headers that say so.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, Failure> {
        let compression = match header(headers, "x-arc-arrow-compression")? {
            None | Some("none") => None,
            Some("zstd") => Some(CompressionType::ZSTD),
            Some("lz4") => Some(CompressionType::LZ4_FRAME),
            Some(other) => return Err(unknown("x-arc-arrow-compression", other, "zstd, lz4 or none")),
        };
        Ok(Self { keep_dictionaries: layout::keeps_dictionaries(headers)?, compression })
    }
}

impl Ipc {
    pub(super) fn open(schema: &SchemaRef, wishes: Wishes) -> Result<Self, Failure> {
        Self::new(schema, wishes.keep_dictionaries, wishes.compression).map_err(unencodable)
    }

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
        for (name, value, ok) in [
            ("x-arc-arrow-compression", "zstd", true),
            ("x-arc-arrow-compression", "lz4", true),
            ("x-arc-arrow-compression", "gzip", false),
            ("x-arc-arrow-dictionary", "true", true),
            ("x-arc-arrow-dictionary", "yes", false),
        ] {
            let headers = HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())]);
            assert_eq!(Wishes::of(&headers).is_ok(), ok, "{name}: {value}");
        }
    }
}
