//! An Arrow file as the stream that it could have been: what its footer names, one after the other.
//!
//! Most writers write a stream, and a footer behind it. The format lets a reader rely on the footer
//! alone, and the files of Polars begin with no message. Nothing is checked here but where the
//! messages lie; whoever reads the stream checks all of it.

use std::{
    collections::VecDeque,
    io::{self, Cursor, Read, Seek, SeekFrom},
};

use arrow::ipc::{Block, Footer, MetadataVersion, root_as_footer};

use super::stream::{CONTINUATION, FILE_MAGIC, FILE_TAIL_BYTES};

/// Most bytes of a footer.
const MOST_FOOTER: u64 = 64 << 20;
/// What stands before a footer that becomes the message of its schema.
const HEAD_BYTES: usize = 32;
/// `MessageHeader::Schema`.
const SCHEMA: u8 = 1;

/// Returns whether something begins as an Arrow file whose messages are found by its footer alone.
pub(crate) fn needs_footer(head: &[u8]) -> bool {
    let begins = |first: &[u8]| first == CONTINUATION || first.iter().all(|byte| *byte == 0);
    head.starts_with(FILE_MAGIC) && head.get(8..12).is_some_and(|first| !begins(first))
}

/// Reads a file as a stream.
#[derive(Debug)]
pub(crate) struct FileStream<F> {
    file: F,
    parts: VecDeque<Part>,
}

#[derive(Debug)]
enum Part {
    Made(Cursor<Vec<u8>>),
    OfFile { at: u64, left: u64 },
}

impl<F: Read + Seek> FileStream<F> {
    /// Reads the footer of a file; the error says what is wrong with it.
    pub(crate) fn new(mut file: F) -> Result<Self, String> {
        let unreadable = |error: io::Error| format!("cannot read: {error}");
        let cut_off = || "the file ends without its footer: it may have been cut off".to_owned();
        let length = file.seek(SeekFrom::End(0)).map_err(unreadable)?;
        let tail = length.checked_sub(FILE_TAIL_BYTES as u64).ok_or_else(cut_off)?;
        let mut read = |at: u64, bytes: u64| {
            let mut found = Vec::new();
            file.seek(SeekFrom::Start(at)).and_then(|_| (&mut file).take(bytes).read_to_end(&mut found))?;
            Ok(found)
        };
        let end = read(tail, FILE_TAIL_BYTES as u64).map_err(unreadable)?;
        let footer_bytes = end.first_chunk().map_or(0, |bytes| u64::from(u32::from_le_bytes(*bytes)));
        let is_whole = end.ends_with(FILE_MAGIC) && footer_bytes <= MOST_FOOTER;
        let footer_at = tail.checked_sub(footer_bytes).filter(|_| is_whole).ok_or_else(cut_off)?;
        let footer = read(footer_at, footer_bytes).map_err(unreadable)?;
        let parsed = root_as_footer(&footer).map_err(|error| format!("the footer does not decode: {error}"))?;
        let mut parts = VecDeque::from([Part::Made(Cursor::new(schema_message(&footer, &parsed)?))]);
        let blocks = parsed.dictionaries().into_iter().flatten().chain(parsed.recordBatches().into_iter().flatten());
        // Nothing is read twice: a small file would be a large stream.
        let mut left = footer_at;
        for block in blocks {
            let (at, bytes) = place(block, footer_at).ok_or("the footer names what lies outside of the file")?;
            left = left.checked_sub(bytes).ok_or("the footer names messages more than once")?;
            parts.push_back(Part::OfFile { at, left: bytes });
        }
        parts.push_back(Part::Made(Cursor::new([CONTINUATION, &[0; 4]].concat())));
        Ok(Self { file, parts })
    }
}

/// Returns where a message begins, and its bytes.
fn place(block: &Block, end: u64) -> Option<(u64, u64)> {
    let at = u64::try_from(block.offset()).ok()?;
    let metadata = u64::try_from(block.metaDataLength()).ok().filter(|bytes| *bytes > 0)?;
    let bytes = metadata.checked_add(u64::try_from(block.bodyLength()).ok()?)?;
    (at.checked_add(bytes)? <= end).then_some((at, bytes))
}

/// Makes a message of the schema that is in a footer: a table that refers to it, and the footer behind that.
fn schema_message(footer: &[u8], parsed: &Footer<'_>) -> Result<Vec<u8>, String> {
    let schema = parsed.schema().ok_or("the footer has no schema")?;
    let version = if parsed.version() < MetadataVersion::V4 { MetadataVersion::V4 } else { parsed.version() };
    // The table of a message is at 16, and has its schema 4 bytes on, its version 8 and its kind 10.
    let schema_at = u32::try_from(HEAD_BYTES + schema._tab.loc() - 20).map_err(|_| "the footer is too large")?;
    let mut message = Vec::with_capacity(16 + HEAD_BYTES + footer.len());
    message.extend_from_slice(CONTINUATION);
    let padding = footer.len().next_multiple_of(8) - footer.len();
    let bytes = u32::try_from(HEAD_BYTES + footer.len() + padding).map_err(|_| "the footer is too large")?;
    message.extend_from_slice(&bytes.to_le_bytes());
    message.extend_from_slice(&16_u32.to_le_bytes());
    for entry in [10_u16, 12, 8, 10, 4, 0] {
        message.extend_from_slice(&entry.to_le_bytes());
    }
    message.extend_from_slice(&12_i32.to_le_bytes());
    message.extend_from_slice(&schema_at.to_le_bytes());
    message.extend_from_slice(&version.0.to_le_bytes());
    message.extend_from_slice(&[SCHEMA, 0]);
    message.extend_from_slice(&[0; 4]);
    message.extend_from_slice(footer);
    message.resize(message.len() + padding, 0);
    Ok(message)
}

impl<F: Read + Seek> Read for FileStream<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(part) = self.parts.front_mut() {
            let read = match part {
                Part::Made(bytes) => bytes.read(buffer)?,
                Part::OfFile { at, left } => {
                    self.file.seek(SeekFrom::Start(*at))?;
                    let read = (&mut self.file).take(*left).read(buffer)?;
                    *at += read as u64;
                    *left -= read as u64;
                    read
                }
            };
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            self.parts.pop_front();
        }
        Ok(0)
    }
}
