//! UTF-8 of the few bytes that are not ASCII, one sequence at a time.

/// The length of the sequence at the front of `bytes`; `None` where the first byte is ASCII or what
/// it begins is not UTF-8 (Unicode 16, table 3-7).
#[inline(always)]
pub(crate) fn sequence_len(bytes: &[u8]) -> Option<usize> {
    match bytes.first_chunk() {
        Some(word) => sequence_in_word(u32::from_be_bytes(*word)),
        None => sequence_at_end(bytes),
    }
}

/// What a sequence of one length looks like as a number, its first byte highest.
struct Shape {
    /// The bits of a word of four bytes that are after it.
    behind: u32,
    /// The two top bits of each byte after the first, and what they must be.
    mask: u32,
    marks: u32,
    /// The least, and how many there are up to the greatest.
    first: u32,
    span: u32,
}

const NONE: Shape = Shape { behind: 0, mask: 0, marks: 1, first: 0, span: 0 };

/// By the number of ones at the top of the first byte, which is the length of the sequence.
const SHAPES: [Shape; 8] = [
    NONE,
    NONE,
    Shape { behind: 16, mask: 0xc0, marks: 0x80, first: 0xc280, span: 0xdfbf - 0xc280 },
    Shape { behind: 8, mask: 0xc0c0, marks: 0x8080, first: 0x00e0_a080, span: 0x00ef_bfbf - 0x00e0_a080 },
    Shape { behind: 0, mask: 0x00c0_c0c0, marks: 0x0080_8080, first: 0xf090_8080, span: 0xf48f_bfbf - 0xf090_8080 },
    NONE,
    NONE,
    NONE,
];

/// Without a branch on the length: text mixes them, and a processor that guesses wrong loses more
/// time than all of this takes.
#[inline(always)]
fn sequence_in_word(word: u32) -> Option<usize> {
    let length = word.leading_ones() as usize % SHAPES.len();
    let shape = SHAPES.get(length)?;
    let sequence = word >> shape.behind;
    let is_marked = sequence & shape.mask == shape.marks;
    let is_inside = sequence.wrapping_sub(shape.first) <= shape.span;
    // The halves of UTF-16 pairs, ED A0 80 to ED BF BF.
    let is_half = sequence.wrapping_sub(0x00ed_a080) <= 0x1f3f;
    if is_marked & is_inside & !is_half { Some(length) } else { None }
}

/// The same for fewer than four bytes.
#[cold]
fn sequence_at_end(bytes: &[u8]) -> Option<usize> {
    let mut word = [0; 4];
    word.iter_mut().zip(bytes).for_each(|(to, &byte)| *to = byte);
    // A sequence that goes on after the end meets a zero, which is no part of one.
    sequence_in_word(u32::from_be_bytes(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_what_the_standard_library_takes_for_one() {
        for first in 0x80..=u8::MAX {
            for second in 0..=u8::MAX {
                // The borders of the third and fourth byte, and one inside.
                for third in [0x7f, 0x80, 0x9f, 0xbf, 0xc0] {
                    let bytes = [first, second, third, 0x80];
                    let expected = match core::str::from_utf8(&bytes) {
                        Ok(_) => Some(4),
                        Err(error) => Some(error.valid_up_to()).filter(|&length| length > 0),
                    };
                    let found = sequence_len(&bytes);
                    assert_eq!(found.is_some(), expected.is_some(), "{bytes:x?}");
                    if let Some(length) = found {
                        assert!(core::str::from_utf8(bytes.get(..length).unwrap()).is_ok());
                    }
                }
            }
        }
        assert_eq!(sequence_len(&[0xe2, 0x82]), None);
        assert_eq!(sequence_len(&[]), None);
    }
}
