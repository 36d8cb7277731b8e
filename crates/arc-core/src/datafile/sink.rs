//! A file being written from its start to its end, through a buffer that also keeps size and
//! checksum; or one that is written to memory, to become a part of another.

use std::io::{self, Write};

use super::{FileTail, blocks::BlockSums};
use crate::vfs::VfsFile;

/// Large enough that a file system call costs little beside the bytes.
const BUFFER_BYTES: usize = 1 << 20;
/// Up to here the buffer grows with its bytes: most files of small tables have no more.
const SMALL_BUFFER_BYTES: usize = 64 << 10;

/// Appends to a file, which [`Sink::finish`] makes durable, or to memory.
#[derive(Debug)]
pub(super) struct Sink {
    /// None for one that stays in the buffer.
    file: Option<Box<dyn VfsFile>>,
    buffer: Vec<u8>,
    written: u64,
    crc32c: u32,
    sums: BlockSums,
    /// What was written of the tail, once it has begun.
    tail: Option<FileTail>,
    failed: bool,
}

/// What a file came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finished {
    pub(super) bytes: u64,
    pub(super) crc32c: u32,
    pub(super) tail: Option<FileTail>,
}

impl Sink {
    pub(super) fn new(file: Box<dyn VfsFile>) -> Self {
        Self { file: Some(file), ..Self::in_memory() }
    }

    /// Returns one that takes all bytes to memory.
    pub(super) fn in_memory() -> Self {
        let (buffer, sums) = (Vec::new(), BlockSums::default());
        Self { file: None, buffer, written: 0, crc32c: 0, sums, tail: None, failed: false }
    }

    /// Returns the bytes of one in memory.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.buffer
    }

    /// Begins the tail: returns where, and the checksums of all blocks before it, which are to be
    /// written next.
    pub(super) fn begin_tail(&mut self) -> io::Result<(u64, Vec<u8>)> {
        self.flush()?;
        if self.file.is_none() {
            return Ok((self.buffer.len() as u64, BlockSums::of(&self.buffer)));
        }
        self.tail = Some(FileTail { bytes: 0, crc32c: 0 });
        Ok((self.written, std::mem::take(&mut self.sums).finish()))
    }

    /// Writes what is buffered, syncs the file and returns its size and checksums.
    pub(super) fn finish(mut self) -> io::Result<Finished> {
        self.flush()?;
        if self.failed {
            return Err(io::Error::other("an earlier write failed"));
        }
        self.file.as_ref().map_or(Ok(()), |file| file.sync_all())?;
        Ok(Finished { bytes: self.written, crc32c: self.crc32c, tail: self.tail })
    }

    fn write_through(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        // A thread that wrote may not have looked: a buffer that is dropped tells nothing.
        file.write_all_at(&[bytes], self.written).inspect_err(|_| self.failed = true)?;
        self.written += bytes.len() as u64;
        self.crc32c = crc32c::crc32c_append(self.crc32c, bytes);
        match &mut self.tail {
            None => self.sums.push(bytes),
            Some(tail) => {
                tail.bytes += bytes.len() as u64;
                tail.crc32c = crc32c::crc32c_append(tail.crc32c, bytes);
            }
        }
        Ok(())
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.file.is_none() {
            self.buffer.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        if self.buffer.len() + bytes.len() > BUFFER_BYTES {
            self.flush()?;
        }
        if bytes.len() >= BUFFER_BYTES {
            self.write_through(bytes)?;
        } else {
            if self.buffer.len() + bytes.len() > SMALL_BUFFER_BYTES {
                // At once: each doubling would move it to pages that are touched for the first
                // time.
                self.buffer.reserve_exact(BUFFER_BYTES - self.buffer.len());
            }
            self.buffer.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.file.is_none() {
            return Ok(());
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        if !buffer.is_empty() {
            self.write_through(&buffer)?;
        }
        buffer.clear();
        self.buffer = buffer;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::{RealVfs, Vfs};

    #[test]
    fn pieces_of_any_size_arrive_in_order_with_their_checksum() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut sink = Sink::new(RealVfs.create_new(&path).unwrap());
        let mut expected = Vec::new();
        let mut tail_start = 0;
        for (seed, len) in [0, 1, BUFFER_BYTES - 1, 1, 7, BUFFER_BYTES, 3 * BUFFER_BYTES, 5].into_iter().enumerate() {
            let piece: Vec<u8> = (0..=250).cycle().skip(seed).take(len).collect();
            if seed == 7 {
                let (start, sums) = sink.begin_tail().unwrap();
                assert_eq!((start, sums), (expected.len() as u64, BlockSums::of(&expected)));
                tail_start = expected.len();
            }
            sink.write_all(&piece).unwrap();
            expected.extend(piece);
        }
        let finished = sink.finish().unwrap();
        let tail = &expected[tail_start..];
        let tail = Some(FileTail { bytes: tail.len() as u64, crc32c: crc32c::crc32c(tail) });
        assert_eq!(finished, Finished { bytes: expected.len() as u64, crc32c: crc32c::crc32c(&expected), tail });
        assert!(std::fs::read(&path).unwrap() == expected);
    }
}
