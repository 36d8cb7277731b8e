//! Checksums of a data file's parts, so that a read of some bytes can tell whether they are those
//! that were written.
//!
//! A file up to [`WHOLE_BYTES`] is read whole, and compared with the checksum in the manifest. A
//! larger one ends in its *tail*: the checksums of all blocks before it, then page indexes and
//! footer (docs/format.md, "Tail"). Size and checksum of the tail are in the manifest. So every
//! byte is in one checksum that can be compared by reading no more than a block too much on each
//! side.

/// Bytes of a file up to which all of it is read at once.
pub(crate) const WHOLE_BYTES: u64 = 64 << 10;
/// Bytes of a block; the last one before the tail may have fewer.
pub(super) const BLOCK_BYTES: usize = 8 << 10;
/// Bytes of a checksum.
#[cfg(any(test, feature = "query"))]
pub(super) const SUM_BYTES: usize = 4;

/// Computes the checksums of blocks as bytes come.
#[derive(Debug, Default)]
pub(super) struct BlockSums {
    /// Those of whole blocks, as they are in the file.
    sums: Vec<u8>,
    /// Checksum and size of the last one.
    crc32c: u32,
    filled: usize,
}

impl BlockSums {
    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK_BYTES - self.filled));
            self.crc32c = crc32c::crc32c_append(self.crc32c, now);
            self.filled += now.len();
            if self.filled == BLOCK_BYTES {
                self.end_block();
            }
            bytes = later;
        }
    }

    fn end_block(&mut self) {
        self.sums.extend_from_slice(&self.crc32c.to_le_bytes());
        (self.crc32c, self.filled) = (0, 0);
    }

    /// Returns the checksums of all blocks, as they begin the tail.
    pub(super) fn finish(mut self) -> Vec<u8> {
        if self.filled > 0 {
            self.end_block();
        }
        self.sums
    }

    /// Returns the checksums of the blocks of these bytes.
    pub(super) fn of(bytes: &[u8]) -> Vec<u8> {
        let mut sums = Self::default();
        sums.push(bytes);
        sums.finish()
    }
}
