//! The values for a statement's placeholders, from messages into rows.
//!
//! Arrow's reader takes what a message says of its buffers on trust: a buffer that lies outside of the message would be
//! a panic, and one that says it is huge once decompressed an end of the process. So the first are looked for, and the
//! second not taken: values are few and small.

use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use arrow::{
    array::{ArrayRef, RecordBatch},
    buffer::Buffer,
    datatypes::{Schema, SchemaRef},
    ipc::{
        self, MessageHeader,
        reader::{RecordBatchDecoder, read_dictionary},
        root_as_message,
    },
};
use arrow_flight::FlightData;

use crate::errors::Failure;

/// Most rows of values that come at a time.
const MAX_VALUES_ROWS: usize = 10_000;

/// Reads the values of a statement: one row.
pub(super) fn one_row(messages: &[FlightData]) -> Result<RecordBatch, Failure> {
    let mut rows = all(messages)?;
    match (rows.pop(), rows.is_empty()) {
        (Some(row), true) if row.num_rows() == 1 => Ok(row),
        (None, _) => Err(Failure::bad_request("there is no row of values for the statement")),
        _ => Err(Failure::bad_request("a query takes one row of values")),
    }
}

/// Reads the values of a statement: any number of rows, each in a batch of its own.
pub(super) fn all(messages: &[FlightData]) -> Result<Vec<RecordBatch>, Failure> {
    bound(messages).map(Option::unwrap_or_default)
}

/// Reads the values that were bound to a statement, as [`all`] does; `None` if none were: the stream has no schema, or one
/// without a column, which some clients send then.
pub(super) fn bound(messages: &[FlightData]) -> Result<Option<Vec<RecordBatch>>, Failure> {
    // What the checks do not foresee is still the client's bytes, not a bug to die of.
    let decoded = catch_unwind(AssertUnwindSafe(|| {
        let mut decoder = Decoder::default();
        let batches = messages.iter().map(|message| decoder.decode(message));
        let batches = batches.filter_map(Result::transpose).collect::<Result<Vec<_>, _>>()?;
        Ok((batches, decoder.schema.is_some_and(|schema| !schema.fields().is_empty())))
    }));
    let (batches, has_columns) = decoded.unwrap_or_else(|_| Err(invalid("its parts contradict each other")))?;
    if batches.iter().map(RecordBatch::num_rows).fold(0, usize::saturating_add) > MAX_VALUES_ROWS {
        return Err(Failure::bad_request(format!("there are more than {MAX_VALUES_ROWS} rows of values")));
    }
    let rows = batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|row| batch.slice(row, 1)));
    Ok(has_columns.then(|| rows.collect()))
}

/// Reads the messages of one stream, in order.
#[derive(Debug, Default)]
struct Decoder {
    schema: Option<SchemaRef>,
    dictionaries: HashMap<i64, ArrayRef>,
}

impl Decoder {
    /// Returns the batch of a message, if it is one that has rows.
    fn decode(&mut self, data: &FlightData) -> Result<Option<RecordBatch>, Failure> {
        if data.data_header.is_empty() {
            // Only tells something else, such as a descriptor.
            return Ok(None);
        }
        let message = root_as_message(&data.data_header).map_err(invalid)?;
        match message.header_type() {
            MessageHeader::Schema if self.schema.is_some() => Err(invalid("there is a second schema")),
            MessageHeader::Schema => {
                self.schema = Some(Arc::new(Schema::try_from(data).map_err(invalid)?));
                Ok(None)
            }
            MessageHeader::DictionaryBatch => {
                let schema = self.schema()?;
                let batch = message.header_as_dictionary_batch().ok_or_else(|| invalid("it has no dictionary"))?;
                let rows = batch.data().ok_or_else(|| invalid("its dictionary has no values"))?;
                check(&rows, &data.data_body)?;
                let (body, version) = (Buffer::from(data.data_body.as_ref()), message.version());
                read_dictionary(&body, batch, &schema, &mut self.dictionaries, &version).map_err(invalid)?;
                Ok(None)
            }
            MessageHeader::RecordBatch => {
                let schema = self.schema()?;
                let rows = message.header_as_record_batch().ok_or_else(|| invalid("it has no rows"))?;
                check(&rows, &data.data_body)?;
                let (body, version) = (Buffer::from(data.data_body.as_ref()), message.version());
                let decoder = RecordBatchDecoder::try_new(&body, rows, schema, &self.dictionaries, &version);
                decoder.and_then(RecordBatchDecoder::read_record_batch).map(Some).map_err(invalid)
            }
            other => Err(invalid(format!("{} is not expected", other.variant_name().unwrap_or("what it is")))),
        }
    }

    fn schema(&self) -> Result<SchemaRef, Failure> {
        self.schema.clone().ok_or_else(|| invalid("there is no schema before it"))
    }
}

fn invalid(reason: impl std::fmt::Display) -> Failure {
    Failure::bad_request(format!("the values of the statement are not valid Arrow: {reason}"))
}

/// Refuses a batch that is compressed, or whose buffers are not all in the body.
fn check(batch: &ipc::RecordBatch<'_>, body: &[u8]) -> Result<(), Failure> {
    if batch.compression().is_some() {
        return Err(invalid("they are compressed"));
    }
    for buffer in batch.buffers().into_iter().flatten() {
        let range = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
        let part = range.and_then(|(start, length)| body.get(start..start.checked_add(length)?));
        part.ok_or_else(|| invalid("a buffer is outside of its message"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use arrow::{
        array::{Int64Array, StringArray},
        ipc::{CompressionType, writer::IpcWriteOptions},
    };
    use arrow_flight::encode::FlightDataEncoderBuilder;
    use futures::{TryStreamExt, executor, stream};

    use super::*;

    fn row() -> RecordBatch {
        let text: ArrayRef = Arc::new(StringArray::from(vec![Some("some text that is not short"), None]));
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![None, Some(7)]));
        RecordBatch::try_from_iter_with_nullable([("text", text, true), ("n", numbers, true)]).unwrap().slice(0, 1)
    }

    fn messages(batch: RecordBatch, compression: Option<CompressionType>) -> Vec<FlightData> {
        let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
        let batches = stream::iter([Ok(batch)]);
        let encoded = FlightDataEncoderBuilder::new().with_options(options).build(batches).try_collect();
        executor::block_on(encoded).unwrap()
    }

    fn error(messages: &[FlightData]) -> String {
        one_row(messages).unwrap_err().message
    }

    #[test]
    fn a_query_takes_one_row() {
        assert_eq!(one_row(&messages(row(), None)).unwrap(), row());
        let two = arrow::compute::concat_batches(&row().schema(), &[row(), row()]).unwrap();
        assert!(error(&messages(two.clone(), None)).contains("one row"));
        assert!(error(&[]).contains("no row"));
        assert_eq!(all(&messages(two, None)).unwrap(), [row(), row()]);
        let many =
            RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(vec![0; 10_001])) as ArrayRef)]).unwrap();
        assert!(all(&messages(many, None)).unwrap_err().message.contains("10000 rows"));
    }

    #[test]
    fn no_change_of_a_byte_is_a_panic() {
        let good = messages(row(), None);
        for (which, message) in good.iter().enumerate() {
            for at in 0..message.data_header.len() {
                for change in [0x01, 0x40, 0x80, 0xff] {
                    let mut changed = good.clone();
                    let mut header = message.data_header.to_vec();
                    header[at] ^= change;
                    changed[which].data_header = header.into();
                    // Either is fine: many bytes are padding.
                    let _ = all(&changed);
                }
            }
        }
    }

    #[test]
    fn what_is_not_whole_is_refused() {
        let good = messages(row(), None);
        // The last buffer begins 64 bytes before the end.
        for end in 0..good[1].data_body.len() - 64 {
            let mut cut = good.clone();
            cut[1].data_body = cut[1].data_body.slice(..end);
            assert!(error(&cut).contains("outside"), "{end}");
        }
        assert!(error(&good[1..]).contains("no schema before it"));
        assert!(error(&[good[0].clone(), good[0].clone()]).contains("second schema"));
        assert!(error(&[FlightData::new().with_data_header(&b"garbage"[..])]).contains("not valid Arrow"));
        assert!(error(&messages(row(), Some(CompressionType::ZSTD))).contains("compressed"));
    }
}
