//! Finds one of a few bytes, eight at a time.
//!
//! For the pull face, which looks for the parts of a checked record one by one; the walker has masks.

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x8080_8080_8080_8080;

/// The place of the first byte at or after `from` that is in `set`, or the end.
#[inline(always)]
pub(crate) fn find<const N: usize>(bytes: &[u8], from: usize, set: [u8; N]) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    let (words, tail) = rest.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let found = mark(u64::from_le_bytes(*word), set);
        if found != 0 {
            return from + 8 * at + (found.trailing_zeros() / 8) as usize;
        }
    }
    let in_tail = tail.iter().position(|byte| set.contains(byte));
    bytes.len() - tail.len() + in_tail.unwrap_or(tail.len())
}

/// Marks with their top bit the bytes that are in `set`; exact for the lowest, which is all that is
/// looked at.
#[inline(always)]
fn mark<const N: usize>(word: u64, set: [u8; N]) -> u64 {
    set.iter().fold(0, |found, &byte| {
        let zero_if_equal = word ^ (ONES * u64::from(byte));
        found | (zero_if_equal.wrapping_sub(ONES) & !zero_if_equal & TOPS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_set_is_found_at_every_place() {
        for length in 0..40 {
            for from in 0..=length {
                for place in 0..length {
                    let mut bytes = [b'-'; 40];
                    bytes[place] = b',';
                    bytes[39 - place] = b'\\';
                    let bytes = &bytes[..length];
                    let is_in = |at: &usize| matches!(bytes[*at], b',' | b'\\');
                    let expected = (from..length).find(is_in).unwrap_or(length);
                    assert_eq!(find(bytes, from, [b',', b'\\']), expected);
                }
            }
        }
        assert_eq!(find(b",", 5, [b',']), 1);
    }
}
