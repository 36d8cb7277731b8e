//! The classifier for every machine, and the oracle of the others: eight bytes at a time, as plain
//! arithmetic on `u64`.

use super::{BLOCK, Masks};

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x80 * ONES;
const LOWS: u64 = 0x7f * ONES;

/// Classifies one block.
pub(super) fn classify(block: &[u8; BLOCK]) -> Masks {
    let mut masks = Masks::default();
    for (at, bytes) in block.as_chunks::<8>().0.iter().enumerate() {
        let part = classify_8(u64::from_le_bytes(*bytes));
        masks.structural |= part.structural << (8 * at);
        masks.ends |= part.ends << (8 * at);
        masks.odd |= part.odd << (8 * at);
    }
    masks
}

/// Classifies eight bytes, the first one lowest. In the words here, the top bit of a byte answers a
/// question about it; the seven bits below are free to compute with, so no byte disturbs the next.
const fn classify_8(bytes: u64) -> Masks {
    let lows = bytes & LOWS;
    let ends = differs(lows, b'\n') & differs(lows, b' ') & differs(lows, b'\\');
    let others = differs(lows, b',') & differs(lows, b'=') & differs(lows, b'"');
    // With 0x76 added, all but the ten lowest values reach the top bit.
    let from_line_feed = lows + 0x76 * ONES;
    Masks {
        structural: bits(!(ends & others) & !bytes),
        ends: bits(!ends & !bytes),
        odd: bits(!from_line_feed | bytes),
    }
}

/// Sets the top bit of each byte that is not `byte`; `lows` are without their top bits.
const fn differs(lows: u64, byte: u8) -> u64 {
    (lows ^ (byte as u64 * ONES)) + LOWS
}

/// Gathers the top bits of eight bytes, the lowest byte's first.
const fn bits(word: u64) -> u64 {
    ((word & TOPS) >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_in_its_sets_and_no_other() {
        for byte in (0..=u8::MAX).step_by(if cfg!(miri) { 17 } else { 1 }) {
            let masks = classify(&[byte; BLOCK]);
            let all = |is_in: bool| if is_in { u64::MAX } else { 0 };
            assert_eq!(masks.structural, all(b"\n \",=\\".contains(&byte)), "{byte}");
            assert_eq!(masks.ends, all(b"\n \\".contains(&byte)), "{byte}");
            assert_eq!(masks.odd, all(!(10..128).contains(&byte)), "{byte}");
        }
    }
}
