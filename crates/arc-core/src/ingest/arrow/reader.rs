//! An Arrow IPC stream or file that is too large for one piece: message by message, each checked as
//! in a body.
//!
//! Never seeks: the messages of a file come in the order of a stream, and its footer is only looked
//! at to see that it is there.

use std::io::{self, Read};

use arrow::{
    array::RecordBatch,
    buffer::Buffer,
    ipc::{reader::StreamDecoder, root_as_message},
};

use super::stream::{CONTINUATION, Checker, FILE_MAGIC, NO_SCHEMA, decode};

/// Most bytes of one message, and of its buffers once they are decompressed.
const MOST_BYTES: usize = 1 << 30;

/// Reads record batches.
#[derive(Debug)]
pub(crate) struct ArrowReader<R> {
    bytes: R,
    checker: Checker,
    decoder: StreamDecoder,
    /// What the decoder was not given yet.
    message: Buffer,
    /// Whether the first bytes were read, and those of a file were seen there.
    begun: Option<bool>,
}

impl<R: Read> ArrowReader<R> {
    pub(crate) fn new(bytes: R) -> Self {
        Self {
            bytes,
            checker: Checker { shape: None, budget: MOST_BYTES },
            decoder: StreamDecoder::new(),
            message: Buffer::from_vec(Vec::<u8>::new()),
            begun: None,
        }
    }

    /// Returns the next batch; the error says what is wrong with the bytes.
    pub(crate) fn next(&mut self) -> Result<Option<RecordBatch>, String> {
        loop {
            if !self.message.is_empty()
                && let Some(batch) = decode(&mut self.decoder, &mut self.message)?
            {
                return Ok(Some(batch));
            }
            match self.read_message()? {
                Some(message) => self.message = Buffer::from_vec(message),
                None => return Ok(None),
            }
        }
    }

    /// Returns the next message with its prefix; nothing at the end mark.
    fn read_message(&mut self) -> Result<Option<Vec<u8>>, String> {
        let mut message = Vec::new();
        self.begin(&mut message)?;
        if message == CONTINUATION {
            self.read(4, &mut message)?;
        }
        let length = message.last_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        if length == 0 {
            return self.end().map(|()| None);
        }
        let prefix = message.len();
        self.read(u64::from(length), &mut message)?;
        let metadata = |message: &[u8]| {
            let message = root_as_message(message.get(prefix..).unwrap_or_default());
            message.map(|message| message.bodyLength()).map_err(|error| format!("a message does not decode: {error}"))
        };
        let body = metadata(&message)?;
        let start = message.len();
        self.read(u64::try_from(body).map_err(|_| "a message has a negative length".to_owned())?, &mut message)?;
        let (head, body) = message.split_at(start);
        let checked = root_as_message(head.get(prefix..).unwrap_or_default()).map_err(|error| error.to_string())?;
        self.checker.budget = MOST_BYTES;
        self.checker.check(checked, body)?;
        Ok(Some(message))
    }

    /// Reads the first four bytes of a message, after the magic and the padding of a file.
    fn begin(&mut self, message: &mut Vec<u8>) -> Result<(), String> {
        self.read(4, message)?;
        if self.begun.is_some() {
            return Ok(());
        }
        let is_file = FILE_MAGIC.starts_with(message);
        self.begun = Some(is_file);
        if is_file {
            self.read(4, message)?;
            if !message.starts_with(FILE_MAGIC) {
                return Err("it is neither an Arrow stream nor an Arrow file".to_owned());
            }
            // Some writers fill up more than the eight bytes.
            while message != CONTINUATION && (message.len() > 4 || message.iter().all(|byte| *byte == 0)) {
                message.clear();
                self.read(4, message)?;
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), String> {
        self.checker.shape.as_ref().ok_or(NO_SCHEMA)?;
        let mut rest = Vec::new();
        (&mut self.bytes).take(MOST_BYTES as u64).read_to_end(&mut rest).map_err(|error| unreadable(&error))?;
        match self.begun {
            Some(true) if rest.ends_with(FILE_MAGIC) => Ok(()),
            Some(true) => Err("the file ends without its footer: it may have been cut off".to_owned()),
            _ if rest.is_empty() => Ok(()),
            _ => Err(format!("{} bytes follow the end of the stream", rest.len())),
        }
    }

    /// Appends `count` bytes to `to`, which grows with what is there, not with what is said.
    fn read(&mut self, count: u64, to: &mut Vec<u8>) -> Result<(), String> {
        if count > MOST_BYTES as u64 {
            return Err(format!("a message has {count} bytes, more than can be read at a time"));
        }
        let read = (&mut self.bytes).take(count).read_to_end(to).map_err(|error| unreadable(&error))?;
        if (read as u64) < count {
            return Err("it ends early: it may have been cut off".to_owned());
        }
        Ok(())
    }
}

fn unreadable(error: &io::Error) -> String {
    format!("cannot read: {error}")
}
