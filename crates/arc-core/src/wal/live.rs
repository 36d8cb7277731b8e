//! How many bytes of frames are in the log that nothing has released yet.

use std::collections::VecDeque;

use crate::SequenceNumber;

/// Frames are counted together until they are this many bytes.
const MARK_BYTES: u64 = 64 << 10;

/// Counts bytes by sequence number, to [`MARK_BYTES`] (or one group, if that is more) exactly.
#[derive(Debug, Default)]
pub(super) struct LiveBytes {
    /// Last sequence number and total bytes up to and with it, in order.
    marks: VecDeque<(SequenceNumber, u64)>,
    total: u64,
    /// The total where the last mark begins.
    mark_start: u64,
    released: u64,
}

impl LiveBytes {
    pub(super) fn add(&mut self, last_seq: SequenceNumber, bytes: u64) {
        let start = self.total;
        self.total += bytes;
        match self.marks.back_mut() {
            Some(mark) if start - self.mark_start < MARK_BYTES => *mark = (last_seq, self.total),
            _ => {
                self.marks.push_back((last_seq, self.total));
                self.mark_start = start;
            }
        }
    }

    pub(super) fn release(&mut self, through: SequenceNumber) {
        while let Some((_, total)) = self.marks.pop_front_if(|(last_seq, _)| *last_seq <= through) {
            self.released = total;
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.total - self.released
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_live_until_their_frames_are_released() {
        let mut live = LiveBytes::default();
        (1..=100).for_each(|seq| live.add(SequenceNumber(seq), 10_000));
        assert_eq!(live.bytes(), 1_000_000);
        live.release(SequenceNumber(50));
        assert!((500_000..500_000 + MARK_BYTES + 10_000).contains(&live.bytes()), "{}", live.bytes());
        live.release(SequenceNumber(100));
        assert_eq!(live.bytes(), 0);
        live.add(SequenceNumber(101), 7);
        assert_eq!(live.bytes(), 7);
    }
}
