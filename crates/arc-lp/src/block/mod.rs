//! Where the bytes that matter are: one bit for each, 64 bytes at a time.
//!
//! Knows single bytes only, never what they mean next to each other: that is the walker's part.

mod portable;

/// Bytes in a block: as many as bits in a mask.
pub(crate) const BLOCK: usize = 64;

/// What one block holds; bit `i` stands for its byte `i`.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Masks {
    /// Line feed, space, `"`, `,`, `=`, `\`: all that has a meaning somewhere.
    pub(crate) structural: u64,
    /// Line feed, space, `\`: all that matters on the way to the end of a series key.
    pub(crate) ends: u64,
    /// Tab, NUL and every byte above 0x7f: all that a name may not hold, or only as UTF-8.
    pub(crate) odd: u64,
}

/// Sets the masks of `bytes`, one for each block begun; bits beyond the end of `bytes` are zero.
///
/// Masks beyond the last block are left alone, bytes beyond the last mask are not looked at.
pub(crate) fn classify(bytes: &[u8], masks: &mut [Masks]) {
    let (blocks, tail) = bytes.as_chunks::<BLOCK>();
    let mut masks = masks.iter_mut();
    for (block, mask) in blocks.iter().zip(&mut masks) {
        *mask = portable::classify(block);
    }
    if let Some(mask) = masks.next()
        && !tail.is_empty()
    {
        // Padding that is in no set.
        let mut padded = [b'.'; BLOCK];
        padded
            .iter_mut()
            .zip(tail)
            .for_each(|(to, &byte)| *to = byte);
        *mask = portable::classify(&padded);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_block_may_be_short_and_masks_may_run_out() {
        let mut masks = [Masks::default(); 3];
        classify(&[b','; 70], &mut masks);
        assert_eq!(masks.map(|mask| mask.structural), [u64::MAX, 0b11_1111, 0]);
        classify(&[b'='; 300], masks.get_mut(..1).unwrap());
        assert_eq!(masks.map(|mask| mask.structural), [u64::MAX, 0b11_1111, 0]);
    }
}
