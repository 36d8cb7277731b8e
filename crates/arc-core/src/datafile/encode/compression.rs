//! Compresses pages with Zstandard, or stores them where that gains nothing.
//!
//! Pages of the first version of the format are compressed all or none within a column chunk. A
//! page that does not shrink becomes a frame of raw blocks (RFC 8878, section 3.1.1.2.2), which any
//! reader of Zstandard takes as a compressed one, and which costs a copy. Bit-packed indices of
//! measured values are such pages, and the bulk of most files.

use zstd::{bulk::Compressor, zstd_safe::compress_bound};

/// Pages that are stored without another try, once one did not shrink.
const STORED_AFTER_A_FAILURE: u8 = 7;
/// Bytes of pages whose memory is used again: a file that has more was dear anyway.
const MAX_SPARE_BYTES: usize = 8 << 20;
/// Most bytes of a raw block.
const RAW_BLOCK_BYTES: usize = 128 << 10;

/// A compression context, reused for all pages of a file.
pub(super) struct PageCompressor {
    zstd: Compressor<'static>,
    buffer: Vec<u8>,
    /// Empty: memory for the pages of a column chunk.
    spare: Vec<u8>,
}

/// Whether the pages of a column chunk have been worth compressing.
#[derive(Debug, Default)]
pub(super) struct Worth {
    stored_next: u8,
}

impl PageCompressor {
    pub(super) fn new(level: i32) -> std::io::Result<Self> {
        Ok(Self { zstd: Compressor::new(level)?, buffer: Vec::new(), spare: Vec::new() })
    }

    /// Returns memory for pages, if there is any.
    pub(super) fn take_spare(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.spare)
    }

    /// Takes the memory of pages that are written. The kernel clears each page of memory that it
    /// hands out, which takes longer than filling it.
    pub(super) fn recycle(&mut self, mut used: Vec<u8>) {
        if (self.spare.capacity()..MAX_SPARE_BYTES).contains(&used.capacity()) {
            used.clear();
            self.spare = used;
        }
    }

    /// Returns a page as one frame.
    pub(super) fn compress(&mut self, page: &[u8], worth: &mut Worth) -> std::io::Result<&[u8]> {
        self.buffer.clear();
        if worth.stored_next > 0 {
            worth.stored_next -= 1;
            store(page, &mut self.buffer);
            return Ok(&self.buffer);
        }
        self.buffer.reserve(compress_bound(page.len()));
        self.zstd.compress_to_buffer(page, &mut self.buffer)?;
        // Reading a stored page is cheaper, too.
        if self.buffer.len() > page.len() - page.len() / 32 {
            worth.stored_next = STORED_AFTER_A_FAILURE;
            self.buffer.clear();
            store(page, &mut self.buffer);
        }
        Ok(&self.buffer)
    }
}

/// Appends a frame that holds the bytes as they are.
fn store(page: &[u8], out: &mut Vec<u8>) {
    // The magic number; "one segment, so no window size; the size of the content has four bytes";
    // that size. A page has less than 2 GiB.
    out.extend_from_slice(&[0x28, 0xb5, 0x2f, 0xfd, 0b1010_0000]);
    out.extend(page.len().to_le_bytes().into_iter().take(4));
    let mut blocks = page.chunks(RAW_BLOCK_BYTES).peekable();
    let mut push = |block: &[u8], is_last: bool| {
        let header = block.len() << 3 | usize::from(is_last);
        out.extend(header.to_le_bytes().into_iter().take(3));
        out.extend_from_slice(block);
    };
    if page.is_empty() {
        push(&[], true);
    }
    while let Some(block) = blocks.next() {
        push(block, blocks.peek().is_none());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(bytes: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state.to_le_bytes()[7]
        };
        (0..bytes).map(|_| next()).collect()
    }

    #[test]
    fn stored_and_compressed_pages_come_back() {
        let mut compressor = PageCompressor::new(1).unwrap();
        let mut worth = Worth::default();
        let cases = [0, 1, 100, RAW_BLOCK_BYTES - 1, RAW_BLOCK_BYTES, RAW_BLOCK_BYTES + 1, 300_000];
        for bytes in cases {
            for page in [noise(bytes), vec![7; bytes]] {
                for _ in 0..2 {
                    let frame = compressor.compress(&page, &mut worth).unwrap();
                    assert!(frame.len() <= page.len() + 9 + 3 * 3);
                    assert_eq!(zstd::bulk::decompress(frame, bytes).unwrap(), page, "{bytes} bytes");
                }
            }
        }
    }

    #[test]
    fn what_shrinks_again_is_compressed_again() {
        let mut compressor = PageCompressor::new(1).unwrap();
        let mut worth = Worth::default();
        assert!(compressor.compress(&noise(10_000), &mut worth).unwrap().len() > 10_000);
        let sizes: Vec<usize> = (0..9).map(|_| compressor.compress(&[7; 10_000], &mut worth).unwrap().len()).collect();
        assert!(sizes[..7].iter().all(|size| *size > 10_000), "{sizes:?}");
        assert!(sizes[7..].iter().all(|size| *size < 100), "{sizes:?}");
    }
}
