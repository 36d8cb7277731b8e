//! Compares parts of a data file with their checksums, for those who read less than all of it.
//!
//! Which checksums there are is said in [`blocks`](super::blocks). Never reads a file, and trusts
//! no number.

use std::ops::Range;

use super::{
    DataFile, FileTail,
    blocks::{BLOCK_BYTES, SUM_BYTES, WHOLE_BYTES},
};

/// What the manifest says of the bytes of a data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileChecks {
    pub(crate) bytes: u64,
    crc32c: u32,
    tail: Option<FileTail>,
}

/// How the bytes of a data file are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileComparison {
    /// All at once.
    Whole,
    /// By blocks, up to the tail, which begins there.
    Blocks {
        /// Where the tail begins.
        tail: u64,
    },
    /// Not when some of them are read: the file is of a build that wrote no tails.
    Not,
}

/// Bytes that are not those that were written: where, and how that shows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rotten {
    pub(crate) offset: u64,
    pub(crate) reason: String,
}

impl FileChecks {
    pub(crate) fn of(file: &DataFile) -> Self {
        Self { bytes: file.bytes, crc32c: file.crc32c, tail: file.tail }
    }

    pub(crate) fn checked(&self) -> FileComparison {
        match self.tail {
            Some(tail) => FileComparison::Blocks { tail: self.bytes.saturating_sub(tail.bytes) },
            None if self.bytes <= WHOLE_BYTES => FileComparison::Whole,
            None => FileComparison::Not,
        }
    }

    /// Compares all bytes of a file.
    pub(crate) fn check_whole(&self, bytes: &[u8]) -> Result<(), Rotten> {
        compare(0, bytes, self.bytes, self.crc32c, "its crc32c")
    }

    /// Compares the tail, and returns the checksums of the blocks before it.
    pub(crate) fn check_tail(&self, bytes: &[u8]) -> Result<BlockChecksums, Rotten> {
        let (start, tail) = (self.bytes.saturating_sub(bytes.len() as u64), self.tail);
        let tail = tail.ok_or_else(|| Rotten { offset: start, reason: "the manifest knows no tail of it".into() })?;
        compare(start, bytes, tail.bytes, tail.crc32c, "the crc32c of its tail")?;
        let data_bytes = self.bytes.saturating_sub(tail.bytes);
        let sums = usize::try_from(data_bytes.div_ceil(BLOCK_BYTES as u64)).unwrap_or(usize::MAX);
        let sums = bytes.get(..sums.saturating_mul(SUM_BYTES));
        let sums = sums.ok_or_else(|| Rotten { offset: start, reason: "its tail has too few checksums".into() })?;
        let sums = sums.as_chunks().0.iter().map(|sum| u32::from_le_bytes(*sum)).collect();
        Ok(BlockChecksums { data_bytes, sums })
    }
}

/// Compares bytes with what the manifest says of them.
fn compare(start: u64, found: &[u8], bytes: u64, crc32c: u32, what: &str) -> Result<(), Rotten> {
    if found.len() as u64 != bytes {
        let reason = format!("{} bytes of it were read, the manifest says {bytes}", found.len());
        return Err(Rotten { offset: start, reason });
    }
    let is = crc32c::crc32c(found);
    if is != crc32c {
        return Err(Rotten { offset: start, reason: format!("{what} is {is:08x}, the manifest says {crc32c:08x}") });
    }
    Ok(())
}

/// Checksums of the blocks of a file.
#[derive(Debug)]
pub(crate) struct BlockChecksums {
    data_bytes: u64,
    sums: Vec<u32>,
}

impl BlockChecksums {
    /// Returns the blocks that have the bytes of a range, as far as that lies before the tail.
    pub(crate) fn widened(&self, range: &Range<u64>) -> Range<u64> {
        let block = BLOCK_BYTES as u64;
        range.start - range.start % block..range.end.min(self.data_bytes).next_multiple_of(block).min(self.data_bytes)
    }

    /// Compares whole blocks, the first of which begins at `start`.
    pub(crate) fn check(&self, start: u64, bytes: &[u8]) -> Result<(), Rotten> {
        let first = usize::try_from(start / BLOCK_BYTES as u64).unwrap_or(usize::MAX);
        let expected = self.sums.get(first..).unwrap_or_default();
        for (nth, block) in bytes.chunks(BLOCK_BYTES).enumerate() {
            if expected.get(nth) != Some(&crc32c::crc32c(block)) {
                let offset = start + (nth * BLOCK_BYTES) as u64;
                let reason = format!("the {} bytes from there on fail their checksum", block.len());
                return Err(Rotten { offset, reason });
            }
        }
        Ok(())
    }

    /// Returns about how many bytes of memory they take.
    #[cfg(feature = "query")]
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.sums.capacity() * SUM_BYTES
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::blocks::BlockSums, *};

    /// A file of so many bytes before the tail, and what the manifest says of it.
    fn file(data_bytes: usize) -> (Vec<u8>, FileChecks) {
        let mut bytes: Vec<u8> = (0..data_bytes).map(|at| (at * 7 + at / 256).to_le_bytes()[0]).collect();
        bytes.extend(BlockSums::of(&bytes));
        bytes.extend(b"footer");
        let tail = &bytes[data_bytes..];
        let tail = FileTail { bytes: tail.len() as u64, crc32c: crc32c::crc32c(tail) };
        let checks = FileChecks { bytes: bytes.len() as u64, crc32c: crc32c::crc32c(&bytes), tail: Some(tail) };
        (bytes, checks)
    }

    /// Reads a range as a reader does: the tail, then whole blocks.
    fn read(bytes: &[u8], checks: FileChecks, range: Range<usize>) -> Result<Vec<u8>, Rotten> {
        let FileComparison::Blocks { tail } = checks.checked() else { panic!("no blocks") };
        let tail = usize::try_from(tail).unwrap();
        let blocks = checks.check_tail(&bytes[tail..])?;
        let wide = blocks.widened(&(range.start as u64..range.end as u64));
        assert!(wide.start <= range.start as u64 && wide.end >= range.end.min(tail) as u64);
        let (start, end) = (usize::try_from(wide.start).unwrap(), usize::try_from(wide.end).unwrap());
        blocks.check(wide.start, &bytes[start..end])?;
        Ok(bytes[range].to_vec())
    }

    #[test]
    fn every_flipped_byte_is_found_by_those_who_read_it() {
        for data_bytes in [1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES + 5] {
            let (bytes, checks) = file(data_bytes);
            assert_eq!(read(&bytes, checks, 0..data_bytes).unwrap(), &bytes[..data_bytes]);
            for at in (0..bytes.len()).step_by(61).chain(data_bytes - 1..bytes.len()) {
                let mut rotten = bytes.clone();
                rotten[at] ^= 1 << (at % 8);
                let found = read(&rotten, checks, at.min(data_bytes - 1)..data_bytes).unwrap_err();
                let from = if at < data_bytes { at - at % BLOCK_BYTES } else { data_bytes };
                assert_eq!(found.offset, from as u64, "byte {at}");
                assert!(checks.check_whole(&rotten).is_err());
            }
            // What is cut off, or grew.
            for len in [0, data_bytes, bytes.len() - 1] {
                assert!(checks.check_tail(&bytes[data_bytes.min(len)..len]).is_err());
                assert!(checks.check_whole(&bytes[..len]).is_err());
            }
        }
    }

    #[test]
    fn a_file_says_how_it_is_checked() {
        let (_, checks) = file(100_000);
        assert_eq!(checks.checked(), FileComparison::Blocks { tail: 100_000 });
        let without = FileChecks { tail: None, ..checks };
        assert_eq!(without.checked(), FileComparison::Not);
        assert_eq!(FileChecks { bytes: WHOLE_BYTES, ..without }.checked(), FileComparison::Whole);
    }

    proptest! {
        #[test]
        fn sums_do_not_depend_on_the_pieces(pieces in proptest::collection::vec(0_usize..20_000, 0..8)) {
            let (bytes, _) = file(pieces.iter().sum());
            let mut sums = BlockSums::default();
            let mut at = 0;
            for piece in &pieces {
                sums.push(&bytes[at..at + piece]);
                at += piece;
            }
            prop_assert_eq!(sums.finish(), BlockSums::of(&bytes[..at]));
        }

        #[test]
        fn whatever_a_manifest_says_is_checked_without_a_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..100), size: u64, tail in any::<Option<(u64, u32)>>(), start: u64,
        ) {
            let tail = tail.map(|(bytes, crc32c)| FileTail { bytes, crc32c });
            let checks = FileChecks { bytes: size, crc32c: 0, tail };
            let _ = (checks.checked(), checks.check_whole(&bytes));
            let right = FileTail { bytes: bytes.len() as u64, crc32c: crc32c::crc32c(&bytes) };
            if let Ok(blocks) = (FileChecks { tail: Some(right), ..checks }).check_tail(&bytes) {
                let _ = blocks.check(start / 2, &bytes);
                let _ = blocks.widened(&(0..start));
            }
        }
    }
}
