//! Arrow IPC as it comes from outside: checked message by message, then given to Arrow's own
//! decoder.
//!
//! Owns what that decoder takes for granted: it slices buffers where the metadata says, reserves as
//! many bytes as a compressed buffer claims to have, and panics on types that it does not know.
//! Nothing is decoded here, and no value is looked at. Format:
//! <https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc>.
//!
//! Stricter than the format: a stream must have its end mark, without which one that was cut off
//! between two messages looks whole.

use std::{
    io::{self, Cursor, Read},
    panic::{AssertUnwindSafe, catch_unwind},
};

use arrow::{
    array::RecordBatch,
    buffer::Buffer,
    ipc::{self, CompressionType, DictionaryBatch, Message, MessageHeader, reader::StreamDecoder, root_as_message},
};
use bytes::Bytes;

use super::{
    file::{FileStream, needs_footer},
    types::{SchemaShape, check_schema},
};

/// What stands before the length of a message, in all versions of the format that are still
/// written.
pub(super) const CONTINUATION: &[u8] = &[0xff; 4];
pub(super) const NO_SCHEMA: &str = "the stream has no schema";
/// What a file begins and ends with; at the beginning two more bytes fill up the eight.
pub(super) const FILE_MAGIC: &[u8] = b"ARROW1";
/// A file's end: length of the footer, magic.
pub(super) const FILE_TAIL_BYTES: usize = 4 + FILE_MAGIC.len();
/// What Arrow says of a compressed buffer that is not compressed.
const NOT_COMPRESSED: i64 = -1;
/// More rows than that in one batch are a lie: it would not fit into any memory.
const MAX_LENGTH: i64 = 1 << 40;

/// Returns the stream inside of an IPC file, or `body` if it is no file.
///
/// # Errors
///
/// What is missing of a file that is not whole.
pub(crate) fn of_file(body: &Bytes) -> Result<Bytes, String> {
    if !body.starts_with(FILE_MAGIC) {
        return Ok(body.clone());
    }
    if needs_footer(body) {
        let mut stream = Vec::new();
        let read = FileStream::new(Cursor::new(body))?.read_to_end(&mut stream);
        return read.map(|_| stream.into()).map_err(|error| format!("cannot read: {error}"));
    }
    let cut_off = || "the file ends without its footer: it may have been cut off".to_owned();
    let tail = body.len().checked_sub(FILE_TAIL_BYTES).filter(|at| *at >= 8).ok_or_else(cut_off)?;
    let tail_bytes = body.get(tail..).unwrap_or_default();
    let footer = tail_bytes.first_chunk().map(|length| i32::from_le_bytes(*length)).unwrap_or_default();
    let footer = usize::try_from(footer).ok().filter(|_| tail_bytes.ends_with(FILE_MAGIC));
    let end = footer.and_then(|footer| tail.checked_sub(footer)).filter(|end| *end >= 8).ok_or_else(cut_off)?;
    let messages = body.slice(8..end);
    // Some writers fill up more than eight bytes.
    let padding = messages.chunks(8).take_while(|bytes| bytes.iter().all(|byte| *byte == 0)).count() * 8;
    Ok(messages.slice(padding.min(messages.len())..))
}

/// Calls `each` with every record batch of a stream. Buffers lie in `body` unless they are
/// compressed or not aligned.
///
/// `most_bytes` is how much buffers may take together once they are decompressed.
///
/// # Errors
///
/// What is wrong with the stream, or what `each` says, where both are told apart by the type that
/// `each` has.
pub(super) fn batches<E: From<String>>(
    body: &Bytes,
    most_bytes: usize,
    mut each: impl FnMut(&RecordBatch) -> Result<(), E>,
) -> Result<(), E> {
    check(body, most_bytes)?;
    let mut decoder = StreamDecoder::new();
    let mut rest = Buffer::from(body.clone());
    while let Some(batch) = decode(&mut decoder, &mut rest)? {
        each(&batch)?;
    }
    Ok(())
}

/// Checks all messages of a stream.
fn check(stream: &[u8], most_bytes: usize) -> Result<(), String> {
    let mut messages = Messages { rest: stream };
    let mut checker = Checker { shape: None, budget: most_bytes };
    while let Some((message, body)) = messages.next()? {
        checker.check(message, body)?;
    }
    checker.shape.map(drop).ok_or_else(|| NO_SCHEMA.to_owned())
}

/// Checks one message after the other.
#[derive(Debug)]
pub(super) struct Checker {
    /// What batches have to have; known once the schema was there.
    pub(super) shape: Option<SchemaShape>,
    /// Bytes that buffers may still take.
    pub(super) budget: usize,
}

impl Checker {
    pub(super) fn check(&mut self, message: Message<'_>, body: &[u8]) -> Result<(), String> {
        match (message.header_type(), &mut self.shape) {
            (MessageHeader::Schema, shape @ None) => {
                let schema = message.header_as_schema().ok_or("the schema is missing from its message")?;
                *shape = Some(check_schema(schema)?);
                Ok(())
            }
            (MessageHeader::DictionaryBatch, Some(shape)) => {
                let batch = message.header_as_dictionary_batch().ok_or("a dictionary is missing from its message")?;
                check_dictionary(batch, body, shape, &mut self.budget)
            }
            (MessageHeader::RecordBatch, Some(shape)) => {
                let batch = message.header_as_record_batch().ok_or("a batch is missing from its message")?;
                check_batch(batch, body, shape.views, &mut self.budget)
            }
            (MessageHeader::Schema, Some(_)) => Err("there are two schemas in the stream".to_owned()),
            (_, None) => Err("the stream does not begin with a schema".to_owned()),
            (other, _) => Err(format!("a message is a {other:?}, expected a batch or a dictionary")),
        }
    }
}

/// Gives the rest of `bytes`, which are whole messages, to Arrow's decoder; returns a batch if that
/// has one.
pub(super) fn decode(decoder: &mut StreamDecoder, bytes: &mut Buffer) -> Result<Option<RecordBatch>, String> {
    // What the checks do not know of must not end the process; the decoder is not used again then.
    let decoded = catch_unwind(AssertUnwindSafe(|| decoder.decode(bytes)));
    let decoded = decoded.map_err(|_| "a record batch does not agree with the stream's schema".to_owned())?;
    decoded.map_err(|error| error.to_string())
}

/// The messages of a stream up to its end mark.
struct Messages<'a> {
    rest: &'a [u8],
}

impl<'a> Messages<'a> {
    /// Returns the next message with its body, or nothing at the end mark, which must be the last
    /// thing there is.
    fn next(&mut self) -> Result<Option<(Message<'a>, &'a [u8])>, String> {
        let mut length = self.take(4)?;
        if length == CONTINUATION {
            length = self.take(4)?;
        }
        let length = length.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        if length == 0 {
            return match self.rest.len() {
                0 => Ok(None),
                more => Err(format!("{more} bytes follow the end of the stream")),
            };
        }
        let metadata = self.take(usize::try_from(length).unwrap_or(usize::MAX))?;
        let message = root_as_message(metadata).map_err(|error| format!("a message does not decode: {error}"))?;
        let body = usize::try_from(message.bodyLength()).map_err(|_| "a message has a negative length".to_owned())?;
        Ok(Some((message, self.take(body)?)))
    }

    fn take(&mut self, bytes: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or_else(|| {
            let left = self.rest.len();
            format!(
                "the stream ends early: {bytes} bytes more were expected, there are {left}; it may have been cut off"
            )
        })?;
        self.rest = rest;
        Ok(taken)
    }
}

fn check_dictionary(
    dictionary: DictionaryBatch<'_>,
    body: &[u8],
    shape: &SchemaShape,
    budget: &mut usize,
) -> Result<(), String> {
    let id = dictionary.id();
    let has_view = shape.dictionaries.get(&id).ok_or_else(|| format!("no column has the dictionary {id}"))?;
    let data = dictionary.data().ok_or_else(|| format!("dictionary {id} has no values"))?;
    check_batch(data, body, usize::from(*has_view), budget)
}

/// Checks one batch; `views` is how many of its columns have a variable number of buffers.
fn check_batch(batch: ipc::RecordBatch<'_>, body: &[u8], views: usize, budget: &mut usize) -> Result<(), String> {
    let lengths = |length: i64, nulls: i64| (0..=MAX_LENGTH).contains(&length) && (0..=length).contains(&nulls);
    let nodes = batch.nodes().ok_or("a batch has no columns")?;
    if !lengths(batch.length(), 0) || !nodes.iter().all(|node| lengths(node.length(), node.null_count())) {
        return Err("a batch has an impossible number of rows or nulls".to_owned());
    }
    let buffers = batch.buffers().ok_or("a batch has no buffers")?;
    let counts = batch.variadicBufferCounts().map_or(0, |counts| counts.len());
    let most = i64::try_from(buffers.len()).unwrap_or(i64::MAX);
    if counts != views || batch.variadicBufferCounts().into_iter().flatten().any(|n| !(0..=most).contains(&n)) {
        return Err("a batch has the buffers of other columns than its schema".to_owned());
    }
    let codec = batch.compression().map(|compression| compression.codec());
    for buffer in buffers {
        let range = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
        let bytes = range.and_then(|(start, length)| body.get(start..start.checked_add(length)?));
        let bytes = bytes.ok_or("a buffer lies outside of its message")?;
        let held = match codec {
            Some(codec) if !bytes.is_empty() => decompressed_size(codec, bytes)?,
            // Unaligned ones are copied, and nothing keeps them from being the same bytes again and
            // again.
            _ => bytes.len(),
        };
        *budget = budget.checked_sub(held).ok_or("decompressed it takes more memory than one write may")?;
    }
    Ok(())
}

/// Returns how many bytes a compressed buffer will take, which is not more than it says.
fn decompressed_size(codec: CompressionType, buffer: &[u8]) -> Result<usize, String> {
    let (size, data) = buffer.split_first_chunk().ok_or("a compressed buffer does not say its size")?;
    let size = i64::from_le_bytes(*size);
    if size == NOT_COMPRESSED {
        return Ok(data.len());
    }
    let size = usize::try_from(size).map_err(|_| "a compressed buffer has a negative size".to_owned())?;
    if codec == CompressionType::LZ4_FRAME {
        check_lz4(data, size)?;
    }
    Ok(size)
}

/// Checks that an LZ4 frame is as large as it should be: Arrow decodes it to its end, however far
/// that is.
///
/// So these frames are decoded twice; the first time nothing is kept. For zstd Arrow stops at the
/// size by itself.
fn check_lz4(frame: &[u8], size: usize) -> Result<(), String> {
    let expected = u64::try_from(size).unwrap_or(u64::MAX);
    let mut decoder = lz4_flex::frame::FrameDecoder::new(frame).take(expected.saturating_add(1));
    match io::copy(&mut decoder, &mut io::sink()) {
        Ok(found) if found == expected => Ok(()),
        Ok(_) => Err("a compressed buffer has not the size that it says".to_owned()),
        Err(error) => Err(format!("a compressed buffer is damaged: {error}")),
    }
}
