//! Memory for what is read of files, used again.
//!
//! A query over large files reads megabytes, decodes them and lets go of them, row group by row
//! group. The allocator gives so much memory back to the operating system, which has to clear it,
//! page by page, before it gives it out again: that takes longer than reading does where a file is
//! in memory already. So some is kept for the next read. Never holds more than it is told to, never
//! gives out memory that a caller still reads.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;

/// What is smaller is the allocator's business.
const MIN_BYTES: usize = 64 << 10;

/// The memory that one store keeps.
#[derive(Debug)]
pub(super) struct Buffers {
    limit_bytes: usize,
    idle: Mutex<Idle>,
}

#[derive(Debug, Default)]
struct Idle {
    /// The one that was let go of first in front.
    buffers: VecDeque<Vec<u8>>,
    bytes: usize,
}

/// Memory that goes back when it is dropped.
#[derive(Debug)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    /// How much of it is used.
    len: usize,
    home: Arc<Buffers>,
}

impl Buffers {
    /// Returns a store of at most so many bytes that nothing uses.
    pub(super) fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, idle: Mutex::default() }
    }

    /// Returns memory for `len` bytes, with anything in it.
    pub(super) fn take(self: &Arc<Self>, len: usize) -> Buffer {
        let is_kept = len >= MIN_BYTES && self.limit_bytes > 0;
        let found = if is_kept { self.idle.lock().take(len) } else { None };
        let size = if is_kept { len.next_multiple_of(MIN_BYTES) } else { len };
        Buffer { bytes: found.unwrap_or_else(|| vec![0; size]), len, home: Arc::clone(self) }
    }

    fn give(&self, bytes: Vec<u8>) {
        if bytes.len() < MIN_BYTES || bytes.len() > self.limit_bytes {
            return;
        }
        let mut idle = self.idle.lock();
        idle.bytes += bytes.len();
        idle.buffers.push_back(bytes);
        while idle.bytes > self.limit_bytes
            && let Some(oldest) = idle.buffers.pop_front()
        {
            idle.bytes -= oldest.len();
        }
    }
}

impl Idle {
    /// Returns the smallest buffer that is large enough, unless it is far too large.
    fn take(&mut self, len: usize) -> Option<Vec<u8>> {
        let sizes = self.buffers.iter().map(Vec::len).enumerate();
        let (at, size) = sizes.filter(|(_, size)| (len..=2 * len).contains(size)).min_by_key(|(_, size)| *size)?;
        self.bytes -= size;
        self.buffers.remove(at)
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl AsMut<[u8]> for Buffer {
    fn as_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..self.len).unwrap_or_default()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.home.give(std::mem::take(&mut self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1 << 10;

    fn idle(buffers: &Buffers) -> Vec<usize> {
        let idle = buffers.idle.lock();
        assert_eq!(idle.bytes, idle.buffers.iter().map(Vec::len).sum::<usize>());
        idle.buffers.iter().map(|buffer| buffer.len() / KIB).collect()
    }

    #[test]
    fn what_was_let_go_of_is_used_again_where_it_fits() {
        let buffers = Arc::new(Buffers::new(1 << 20));
        let mut first = buffers.take(100 * KIB);
        first.as_mut().fill(7);
        let second = buffers.take(200 * KIB);
        assert_eq!((first.as_ref().len(), second.as_ref().len()), (100 * KIB, 200 * KIB));
        drop(first);
        drop(second);
        assert_eq!(idle(&buffers), [128, 256]);
        // The smallest that is large enough; half of it would be too little to take it for.
        let again = buffers.take(90 * KIB);
        assert_eq!((again.as_ref().len(), again.as_ref().first(), idle(&buffers)), (90 * KIB, Some(&7), vec![256]));
        let other = buffers.take(120 * KIB);
        assert_eq!((other.bytes.len() / KIB, idle(&buffers)), (128, vec![256]));
        drop(other);
        drop(again);
        assert_eq!(idle(&buffers), [256, 128, 128]);
    }

    #[test]
    fn no_more_is_kept_than_there_may_be_and_nothing_small() {
        let buffers = Arc::new(Buffers::new(300 * KIB));
        let all = [64, 128, 192, 400, 10].map(|size| buffers.take(size * KIB));
        drop(all);
        // The first of them goes for the last; one is larger than all that may be kept.
        assert_eq!(idle(&buffers), [192]);
        drop(Arc::new(Buffers::new(0)).take(200 * KIB));
        assert!(buffers.take(0).as_ref().is_empty());
    }
}
