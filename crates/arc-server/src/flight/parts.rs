//! A stream of messages cut into parts, each of them an Arrow IPC stream of its own: what the engine stores as one write.
//!
//! Where the cuts are depends on the messages alone, so that a client which sends the same again gets the same parts.
//! Looks at what a message is, never at its rows: whether these are as they should be the engine checks.

use arrow::ipc::{Message, MessageHeader, root_as_message};
use arrow_flight::FlightData;
use bytes::Bytes;

use super::incoming::{Incoming, Message as Sent};
use crate::errors::Failure;

/// Bytes after which a part is cut off.
pub(super) const PART_BYTES: usize = 8 << 20;
/// What is reserved for a body before any of it has come, whatever it announces.
const MAX_RESERVE: usize = 4 << 20;
/// How buffers should lie for vector instructions.
const ALIGNMENT: usize = 64;
/// What stands before each message, and its end mark: the same with a length of zero.
const CONTINUATION: [u8; 4] = [0xff; 4];
const NO_SCHEMA: &str = "there is no schema before it";
const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// Messages on their way to being a part.
#[derive(Debug)]
pub(super) struct Parts {
    schema: Option<FlightData>,
    /// Those that later batches may refer to, each with its number.
    dictionaries: Vec<(i64, FlightData)>,
    /// The part so far. Rows may stay in it until they are flushed, so it has room for little that does not come.
    body: Vec<u8>,
    /// Batches in it.
    batches: usize,
    /// Memory for the part, once it begins.
    spare: Vec<u8>,
    /// Most bytes that all dictionaries may have.
    limit: usize,
}

impl Parts {
    pub(super) fn new(limit: usize) -> Self {
        Self { schema: None, dictionaries: Vec::new(), body: Vec::new(), batches: 0, spare: Vec::new(), limit }
    }

    /// Reads a whole message, or has the body of a batch put where it belongs; `beside` are the bytes of parts that were taken
    /// and are still there.
    pub(super) async fn read(&mut self, incoming: &mut Incoming, message: Sent, beside: usize) -> Result<(), Failure> {
        let read = self.read_one(incoming, message).await;
        incoming.keep(beside + self.bytes());
        read
    }

    /// Returns about how many bytes are kept.
    fn bytes(&self) -> usize {
        // Half of the memory for the next part has been touched.
        self.body.len() + self.spare.capacity() / 2 + self.dictionary_bytes()
    }

    fn dictionary_bytes(&self) -> usize {
        self.dictionaries.iter().map(|(_, data)| data.data_body.len()).sum()
    }

    async fn read_one(&mut self, incoming: &mut Incoming, message: Sent) -> Result<(), Failure> {
        if message.header.is_empty() {
            // Only tells something else, such as a descriptor.
            return Ok(());
        }
        let is_batch = parsed(&message.header)?.header_type() == MessageHeader::RecordBatch;
        if !is_batch {
            return self.push(incoming.whole(message).await?);
        }
        let padding = self.begin_batch(&message.header, message.body_bytes())?;
        incoming.body(message, &mut self.body).await?;
        self.end_batch(padding);
        Ok(())
    }

    /// Takes a message that is no batch.
    fn push(&mut self, data: FlightData) -> Result<(), Failure> {
        let header = data.data_header.clone();
        let message = parsed(&header)?;
        match (message.header_type(), self.schema.is_some()) {
            (MessageHeader::Schema, false) => self.schema = Some(data),
            (MessageHeader::Schema, true) => return Err(invalid(&"it is a second schema")),
            (MessageHeader::DictionaryBatch, false) => return Err(invalid(&NO_SCHEMA)),
            (MessageHeader::DictionaryBatch, true) => self.dictionary(&message, data)?,
            (other, _) => return Err(invalid(&format!("it is a {}", other.variant_name().unwrap_or("stranger")))),
        }
        Ok(())
    }

    pub(super) fn is_full(&self) -> bool {
        self.body.len() >= PART_BYTES
    }

    /// Returns how much memory a part takes whose batches are as long as those of the one that was taken last.
    pub(super) fn expected(last: &Bytes) -> usize {
        // What stands before the first batch counts for each, when room is made for all of them.
        last.len() + last.len() / 64
    }

    /// Gives empty memory to the part that has not begun.
    pub(super) fn use_spare(&mut self, spare: Vec<u8>) {
        self.spare = spare;
    }

    /// Returns the part, if it has any batches, and begins the next one.
    pub(super) fn take(&mut self) -> Option<Bytes> {
        if self.batches == 0 {
            return None;
        }
        self.batches = 0;
        let mut body = std::mem::take(&mut self.body);
        body.extend(END);
        if body.capacity() - body.len() > body.len() / 8 {
            body.shrink_to_fit();
        }
        Some(body.into())
    }

    fn dictionary(&mut self, message: &Message<'_>, data: FlightData) -> Result<(), Failure> {
        let dictionary = message.header_as_dictionary_batch().ok_or_else(|| invalid(&"it has no dictionary"))?;
        let id = dictionary.id();
        if !dictionary.isDelta() {
            self.dictionaries.retain(|(other, _)| *other != id);
        }
        if self.batches > 0 {
            append(&mut self.body, &data)?;
        }
        self.dictionaries.push((id, data));
        if self.dictionary_bytes() > self.limit {
            let text = format!("the dictionaries have more than {} bytes (max_body_bytes)", self.limit);
            return Err(Failure::too_large(text));
        }
        Ok(())
    }

    /// Makes the part ready for the body of a batch; returns how much is missing at the body's end.
    fn begin_batch(&mut self, header: &[u8], body_bytes: usize) -> Result<usize, Failure> {
        if self.schema.is_none() {
            return Err(invalid(&NO_SCHEMA));
        }
        if self.batches == 0 {
            if self.body.capacity() == 0 {
                self.body = std::mem::take(&mut self.spare);
            }
            for before in self.schema.iter().chain(self.dictionaries.iter().map(|(_, data)| data)) {
                append(&mut self.body, before)?;
            }
        } else if self.batches == 1 {
            // There will be more; to make room again and again would copy everything again and again. Most are as long as the first.
            let each = self.body.len();
            self.body.reserve_exact((PART_BYTES.div_ceil(each) * each).saturating_sub(each));
        }
        append_head(&mut self.body, header, body_bytes)
    }

    fn end_batch(&mut self, padding: usize) {
        self.body.resize(self.body.len() + padding, 0);
        self.batches += 1;
    }
}

/// Appends one message as the format encapsulates it.
fn append(stream: &mut Vec<u8>, data: &FlightData) -> Result<(), Failure> {
    let padding = append_head(stream, &data.data_header, data.data_body.len())?;
    stream.extend_from_slice(&data.data_body);
    stream.resize(stream.len() + padding, 0);
    Ok(())
}

/// Appends the head of a message, so that the body lies where vector instructions want it; returns how much is missing at
/// the body's end.
fn append_head(stream: &mut Vec<u8>, header: &[u8], body_bytes: usize) -> Result<usize, Failure> {
    let message = parsed(header)?;
    let length = usize::try_from(message.bodyLength()).map_err(|_| invalid(&"its length is negative"))?;
    // Some writers leave the last padding out.
    let padding = length.checked_sub(body_bytes).filter(|padding| *padding < ALIGNMENT);
    let padding = padding.ok_or_else(|| invalid(&"its body is not as long as it says"))?;
    let begin = stream.len() + CONTINUATION.len() + size_of::<u32>();
    let metadata = (begin + header.len()).next_multiple_of(ALIGNMENT) - begin;
    let announced = u32::try_from(metadata).map_err(|_| invalid(&"its header is too long"))?;
    // What is announced of the body is within the limit of a message, but nothing of it has come.
    stream.reserve_exact(metadata + length.min(MAX_RESERVE) + END.len() + ALIGNMENT);
    stream.extend(CONTINUATION);
    stream.extend(announced.to_le_bytes());
    stream.extend_from_slice(header);
    stream.resize(begin + metadata, 0);
    Ok(padding)
}

fn parsed(header: &[u8]) -> Result<Message<'_>, Failure> {
    root_as_message(header).map_err(|error| invalid(&error))
}

fn invalid(reason: &dyn std::fmt::Display) -> Failure {
    Failure::bad_request(format!("a message of the stream is not valid Arrow: {reason}"))
}

#[cfg(test)]
mod tests {
    use std::{io, sync::Arc, time::Duration};

    use arrow::{
        array::{ArrayRef, DictionaryArray, Int64Array, RecordBatch},
        datatypes::Int32Type,
        ipc::reader::StreamReader,
    };
    use arrow_flight::encode::{DictionaryHandling, FlightDataEncoderBuilder};
    use axum::body::Body;
    use futures::{TryStreamExt, executor, stream};
    use hyper::HeaderMap;
    use prost::Message as _;

    use super::*;
    use crate::{admission::Budget, body::Caps};

    fn batch(from: i64, rows: i64) -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + rows));
        // Dictionaries of their own, so that each replaces the one before.
        let hosts: DictionaryArray<Int32Type> = (0..rows)
            .map(|row| format!("h{}-{}", from, row % 3))
            .collect::<Vec<_>>()
            .iter()
            .map(String::as_str)
            .collect();
        RecordBatch::try_from_iter([("n", numbers), ("host", Arc::new(hosts))]).unwrap()
    }

    fn messages(batches: Vec<RecordBatch>) -> Vec<FlightData> {
        let encoder = FlightDataEncoderBuilder::new()
            .with_dictionary_handling(DictionaryHandling::Resend)
            .with_max_flight_data_size(usize::MAX);
        executor::block_on(encoder.build(stream::iter(batches.into_iter().map(Ok))).try_collect()).unwrap()
    }

    fn cut(messages: Vec<FlightData>) -> Result<Vec<Bytes>, String> {
        let pieces = messages.into_iter().map(|message| {
            let message = message.encode_to_vec();
            Ok::<_, io::Error>([&[0], &u32::try_from(message.len()).unwrap().to_be_bytes()[..], &message].concat())
        });
        let body = Body::from_stream(stream::iter(pieces.collect::<Vec<_>>()));
        let caps = Caps { limit: 1 << 30, pause: Duration::from_secs(5) };
        let spare = Budget::new(1 << 30, Duration::ZERO, "full").enter();
        let mut incoming = Incoming::new(&HeaderMap::new(), body, caps, spare).unwrap();
        let (mut parts, mut out, mut spares) = (Parts::new(1 << 20), Vec::new(), Vec::new());
        executor::block_on(async {
            while let Some(message) = incoming.next().await? {
                parts.read(&mut incoming, message, 0).await?;
                if parts.is_full() {
                    let part = parts.take().unwrap();
                    let spare = Vec::with_capacity(Parts::expected(&part));
                    spares.push(spare.as_ptr());
                    parts.use_spare(spare);
                    out.push(part);
                }
            }
            Ok::<_, Failure>(())
        })
        .map_err(|failure| failure.message)?;
        // None had to move elsewhere.
        let full = out.iter().skip(1).map(|part: &Bytes| part.as_ptr());
        assert!(full.zip(spares).all(|(part, spare)| part == spare));
        out.extend(parts.take());
        Ok(out)
    }

    #[test]
    fn every_part_is_a_stream_of_its_own() {
        let batches: Vec<_> = (0..40).map(|n| batch(n * 100_000, 100_000)).collect();
        let parts = cut(messages(batches.clone())).unwrap();
        assert_eq!(parts.len(), 6);
        let read = parts.iter().flat_map(|part| StreamReader::try_new(&part[..], None).unwrap().map(Result::unwrap));
        assert_eq!(read.collect::<Vec<_>>(), batches);
        assert_eq!(cut(messages(batches)).unwrap(), parts, "the same again");
        assert!(parts.iter().all(|part| part.ends_with(&END)));
    }

    #[test]
    fn without_batches_there_is_no_part() {
        assert!(cut(messages(vec![batch(0, 1)])[..1].to_vec()).unwrap().is_empty());
        assert!(cut(vec![]).unwrap().is_empty());
        assert!(cut(vec![FlightData::new()]).unwrap().is_empty());
    }

    #[test]
    fn what_is_out_of_place_is_refused() {
        let good = messages(vec![batch(0, 10)]);
        let error = |messages: &[&FlightData]| cut(messages.iter().map(|m| (*m).clone()).collect()).unwrap_err();
        assert!(error(&[&good[2]]).contains("no schema before it"));
        assert!(error(&[&good[1]]).contains("no schema before it"));
        assert!(error(&[&good[0], &good[0]]).contains("second schema"));
        assert!(error(&[&FlightData::new().with_data_header(&b"garbage"[..])]).contains("not valid Arrow"));
        let short = good[2].clone().with_data_body(good[2].data_body.slice(..8));
        assert!(error(&[&good[0], &good[1], &short]).contains("not as long as it says"));
        let large = messages(vec![
            RecordBatch::try_from_iter([("host", {
                let long = "x".repeat(2 << 20);
                Arc::new([long.as_str()].into_iter().collect::<DictionaryArray<Int32Type>>()) as ArrayRef
            })])
            .unwrap(),
        ]);
        assert!(cut(large).unwrap_err().contains("max_body_bytes"));
    }
}
