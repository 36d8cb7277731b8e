//! UTF-8 of the few bytes that are not ASCII, one sequence at a time.

/// The length of the sequence at the front of `bytes`, whose first byte is not ASCII; `None` where
/// it is not UTF-8 (Unicode 16, table 3-7).
#[inline]
pub(crate) const fn sequence_len(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [0xc2..=0xdf, 0x80..=0xbf, ..] => Some(2),
        [0xe0, 0xa0..=0xbf, 0x80..=0xbf, ..]
        | [0xe1..=0xec | 0xee..=0xef, 0x80..=0xbf, 0x80..=0xbf, ..]
        | [0xed, 0x80..=0x9f, 0x80..=0xbf, ..] => Some(3),
        [0xf0, 0x90..=0xbf, 0x80..=0xbf, 0x80..=0xbf, ..]
        | [0xf1..=0xf3, 0x80..=0xbf, 0x80..=0xbf, 0x80..=0xbf, ..]
        | [0xf4, 0x80..=0x8f, 0x80..=0xbf, 0x80..=0xbf, ..] => Some(4),
        _ => None,
    }
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
