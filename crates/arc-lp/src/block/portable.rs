//! The classifier for every machine, and the oracle of the others: a table and a shift for each byte.

use super::{BLOCK, Masks};

const STRUCTURAL: u8 = 1;
const ENDS: u8 = 2;
const ODD: u8 = 4;

/// The sets each byte is in.
static SETS: [u8; 256] = {
    let mut sets = [0; 256];
    let mut byte = 0;
    while byte < sets.len() {
        #[expect(clippy::indexing_slicing, reason = "evaluated by the compiler, inside the bounds")]
        #[expect(clippy::cast_possible_truncation, reason = "below 256")]
        {
            sets[byte] = sets_of(byte as u8);
        }
        byte += 1;
    }
    sets
};

const fn sets_of(byte: u8) -> u8 {
    match byte {
        b'\n' | b' ' | b'\\' => STRUCTURAL | ENDS,
        b'"' | b',' | b'=' => STRUCTURAL,
        0..=b'\t' | 0x80.. => ODD,
        _ => 0,
    }
}

/// Classifies one block.
pub(super) fn classify(block: &[u8; BLOCK]) -> Masks {
    let mut masks = Masks::default();
    for (at, &byte) in block.iter().enumerate() {
        let sets = SETS.get(usize::from(byte)).copied().unwrap_or_default();
        masks.structural |= u64::from(sets & STRUCTURAL != 0) << at;
        masks.ends |= u64::from(sets & ENDS != 0) << at;
        masks.odd |= u64::from(sets & ODD != 0) << at;
    }
    masks
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
