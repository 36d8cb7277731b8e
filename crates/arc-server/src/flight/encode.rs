//! Batches of an answer into messages, at the size that travels best.
//!
//! Runs on the query threads. Small batches are put together and large ones cut, so that no message is much over 2 MiB,
//! which every client reads, and few are so small that their number costs.

use std::collections::VecDeque;

use arrow::{
    array::RecordBatch,
    compute::concat_batches,
    datatypes::SchemaRef,
    error::ArrowError,
    ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions},
};
use arrow_flight::FlightData;
use futures::{Stream, StreamExt, stream};

use crate::{errors::Failure, query::layout};

/// Most rows of a message.
const MAX_ROWS: usize = 64 << 10;
/// Bytes that one message has at least, if there are more behind it.
const GOOD_BYTES: usize = 512 << 10;
/// Bytes that one message has at most, unless a single row has more.
const MAX_BYTES: usize = 2 << 20;

/// Returns the messages of an answer: first the columns, in the layout of `schema`, then the rows.
///
/// Not by the encoder of arrow-flight: it says of large lists that they are lists.
pub(super) fn messages<S>(answer: S, schema: SchemaRef) -> impl Stream<Item = Result<FlightData, Failure>>
where
    S: Stream<Item = Result<RecordBatch, Failure>> + Send + Unpin + 'static,
{
    let mut encoder = MessageEncoder::default();
    encoder.columns(&schema);
    let pieces = Pieces { answer, schema, rest: Vec::new(), is_first: true };
    stream::try_unfold((pieces, encoder), |(mut pieces, mut encoder)| async move {
        loop {
            if let Some(message) = encoder.waiting.pop_front() {
                return Ok(Some((message, (pieces, encoder))));
            }
            let Some(batch) = pieces.next().await? else { return Ok(None) };
            encoder.rows(&batch).map_err(|error| unencodable(&error))?;
        }
    })
}

struct MessageEncoder {
    generator: IpcDataGenerator,
    options: IpcWriteOptions,
    dictionaries: DictionaryTracker,
    context: IpcWriteContext,
    waiting: VecDeque<FlightData>,
}

impl Default for MessageEncoder {
    fn default() -> Self {
        Self {
            generator: IpcDataGenerator::default(),
            options: IpcWriteOptions::default(),
            // Each batch may have others.
            dictionaries: DictionaryTracker::new(false),
            context: IpcWriteContext::default(),
            waiting: VecDeque::new(),
        }
    }
}

impl MessageEncoder {
    fn columns(&mut self, schema: &SchemaRef) {
        let Self { generator, options, dictionaries, waiting, .. } = self;
        waiting.push_back(generator.schema_to_bytes_with_dictionary_tracker(schema, dictionaries, options).into());
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let Self { generator, options, dictionaries, context, waiting } = self;
        let (values, rows) = generator.encode(batch, dictionaries, options, context)?;
        waiting.extend(values.into_iter().chain([rows]).map(FlightData::from));
        Ok(())
    }
}

fn unencodable(error: &dyn std::fmt::Display) -> Failure {
    tracing::error!(%error, "an answer cannot be encoded");
    Failure::bug()
}

/// Cuts and joins the batches of an answer.
struct Pieces<S> {
    answer: S,
    schema: SchemaRef,
    /// What is left of a large batch, the next part last.
    rest: Vec<RecordBatch>,
    is_first: bool,
}

impl<S: Stream<Item = Result<RecordBatch, Failure>> + Unpin> Pieces<S> {
    async fn next(&mut self) -> Result<Option<RecordBatch>, Failure> {
        if let Some(part) = self.rest.pop() {
            return Ok(Some(part));
        }
        let (mut small, mut rows, mut bytes) = (Vec::new(), 0, 0);
        while rows < MAX_ROWS && bytes < GOOD_BYTES {
            let Some(batch) = self.answer.next().await.transpose()? else { break };
            if batch.num_rows() == 0 {
                continue;
            }
            let batch = layout::converted(&batch, &self.schema).map_err(|error| unencodable(&error))?;
            rows += batch.num_rows();
            bytes += layout::size(&batch);
            small.push(batch);
            // Whoever waits for the first row should not wait for more.
            if std::mem::take(&mut self.is_first) {
                break;
            }
        }
        let joined = joined(small, &self.schema).map_err(|error| unencodable(&error))?;
        self.rest = joined.map_or_else(Vec::new, cut);
        Ok(self.rest.pop())
    }
}

fn joined(mut batches: Vec<RecordBatch>, schema: &SchemaRef) -> Result<Option<RecordBatch>, ArrowError> {
    match batches.len() {
        0 | 1 => Ok(batches.pop()),
        _ => concat_batches(schema, &batches).map(Some),
    }
}

/// Returns the parts of a batch, none of them too large, the first one last.
fn cut(batch: RecordBatch) -> Vec<RecordBatch> {
    let (mut parts, mut whole) = (Vec::new(), vec![batch]);
    while let Some(batch) = whole.pop() {
        let rows = batch.num_rows();
        if rows > 1 && (rows > MAX_ROWS || layout::size(&batch) > MAX_BYTES) {
            let half = if rows > MAX_ROWS { MAX_ROWS } else { rows / 2 };
            whole.push(batch.slice(half, rows - half));
            whole.push(batch.slice(0, half));
        } else {
            parts.push(batch);
        }
    }
    parts.reverse();
    parts
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::{
        array::{ArrayRef, DictionaryArray, Int64Array, LargeListArray, StringArray, StructArray},
        datatypes::{DataType, Field, Int32Type, Int64Type},
    };
    use arrow_flight::decode::FlightRecordBatchStream;
    use futures::{TryStreamExt, executor};

    use super::*;

    fn sent(batches: Vec<RecordBatch>) -> (Vec<FlightData>, Vec<RecordBatch>) {
        let schema = batches[0].schema();
        let encoded = messages(stream::iter(batches.into_iter().map(Ok)), schema);
        let messages: Vec<_> = executor::block_on(encoded.try_collect()).unwrap();
        let decoded = FlightRecordBatchStream::new_from_flight_data(stream::iter(messages.clone().into_iter().map(Ok)));
        (messages, executor::block_on(decoded.try_collect()).unwrap())
    }

    fn numbers(from: i64, to: i64) -> RecordBatch {
        RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from_iter_values(from..to)) as ArrayRef)]).unwrap()
    }

    fn rows(batches: &[RecordBatch]) -> Vec<usize> {
        batches.iter().map(RecordBatch::num_rows).collect()
    }

    #[test]
    fn small_batches_are_joined_but_the_first_one() {
        let all: Vec<_> = (0..20).map(|n| numbers(n * 8_192, (n + 1) * 8_192)).collect();
        let (_, batches) = sent(all);
        assert_eq!(rows(&batches), [8_192, 65_536, 65_536, 3 * 8_192]);
        assert_eq!(concat_batches(&batches[0].schema(), &batches).unwrap(), numbers(0, 20 * 8_192));
    }

    #[test]
    fn large_batches_are_cut() {
        let (messages, batches) = sent(vec![numbers(0, 200_000)]);
        assert_eq!(rows(&batches), [65_536, 65_536, 65_536, 200_000 - 3 * 65_536]);
        assert!(messages.iter().all(|message| message.data_body.len() <= MAX_BYTES));
        // As large as one table's buffer that a query reads a little of.
        let (_, batches) = sent(vec![numbers(0, 1_000_000).slice(500_000, 1_000)]);
        assert_eq!(rows(&batches), [1_000]);
        let long = "x".repeat(100_000);
        let text: ArrayRef = Arc::new(StringArray::from_iter_values((0..100).map(|_| &long)));
        let (messages, batches) = sent(vec![RecordBatch::try_from_iter([("text", text)]).unwrap()]);
        assert!(messages.iter().all(|message| message.data_body.len() < MAX_BYTES + 4096));
        assert_eq!(rows(&batches).iter().sum::<usize>(), 100);
        let huge = "x".repeat(5 << 20);
        let text: ArrayRef = Arc::new(StringArray::from_iter_values([&huge, &huge]));
        let (_, batches) = sent(vec![RecordBatch::try_from_iter([("text", text)]).unwrap()]);
        assert_eq!(rows(&batches), [1, 1]);
    }

    #[test]
    fn columns_come_as_they_are_said_to() {
        let large = |from: i64| -> ArrayRef {
            let rows = (from..from + 3).map(|n| (n % 2 == 0).then(|| vec![Some(n), None]));
            Arc::new(LargeListArray::from_iter_primitive::<Int64Type, _, _>(rows))
        };
        let batch = |from: i64| {
            let texts = ["a", "b", "a"].map(|text| format!("{text}{from}"));
            let texts: DictionaryArray<Int32Type> = texts.iter().map(String::as_str).collect();
            let inner = Field::new("l", DataType::new_large_list(DataType::Int64, true), true);
            let pairs = StructArray::from(vec![(Arc::new(inner), large(from))]);
            let columns: [(&str, ArrayRef); 3] = [("l", large(from)), ("s", Arc::new(pairs)), ("d", Arc::new(texts))];
            RecordBatch::try_from_iter(columns).unwrap()
        };
        let (_, batches) = sent(vec![batch(0), batch(3), batch(6)]);
        let all = concat_batches(&batches[0].schema(), &batches).unwrap();
        assert_eq!(all, concat_batches(&batch(0).schema(), &[batch(0), batch(3), batch(6)]).unwrap());
    }

    #[test]
    fn an_answer_without_rows_has_its_columns() {
        let (messages, batches) = sent(vec![numbers(0, 0)]);
        assert_eq!((messages.len(), batches.len()), (1, 0));
    }

    #[test]
    fn a_failure_comes_through_as_it_is() {
        let failed = Err(Failure::from(arc_core::Error::Timeout { after: std::time::Duration::from_secs(7) }));
        let schema = numbers(0, 0).schema();
        let encoded = messages(stream::iter([Ok(numbers(0, 1)), failed]), schema);
        let all: Vec<_> = executor::block_on(encoded.collect());
        let failure = all.last().unwrap().as_ref().unwrap_err();
        assert_eq!((failure.status.as_u16(), failure.message.as_str()), (504, "query timed out after 7 s"));
    }
}
