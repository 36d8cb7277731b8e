//! Eight digits at a time in one word, as plain arithmetic on `u64`.
//!
//! Numbers are read backwards from their last digit: words are loaded so that they *end* with the
//! digits, whatever stands in front of them in the input, and the bytes in front are masked away.
//! So there is no loop over digits and no branch on how many there are, up to eight.

/// The byte `0` eight times.
const ZEROS: u64 = 0x3030_3030_3030_3030;
const POINTS: u64 = 0x2e2e_2e2e_2e2e_2e2e;
const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x8080_8080_8080_8080;

/// The most digits that always fit a `u64`.
pub(super) const MAX_DIGITS: usize = 19;

/// Reads the last `count` bytes of `bytes` as digits; `None` where one is none, or where this way
/// does not apply: no digit, more than 19, or a word would begin in front of `bytes`.
#[inline(always)]
pub(super) fn last_digits(bytes: &[u8], count: usize) -> Option<u64> {
    match count {
        1..=8 => eight_digits(lead(word_before(bytes, 0)?, count)),
        9..=16 => {
            let high = eight_digits(lead(word_before(bytes, 8)?, count - 8))?;
            Some(high * 100_000_000 + eight_digits(word_before(bytes, 0)? ^ ZEROS)?)
        }
        17..=MAX_DIGITS => {
            let high = eight_digits(lead(word_before(bytes, 16)?, count - 16))?;
            let middle = eight_digits(word_before(bytes, 8)? ^ ZEROS)?;
            let low = eight_digits(word_before(bytes, 0)? ^ ZEROS)?;
            Some((high * 100_000_000 + middle) * 100_000_000 + low)
        }
        _ => None,
    }
}

/// Reads the last `count` bytes of `bytes`, at most eight, as digits with or without a point among
/// them; returns all the digits as one number and how many of them stand after the point. `None` as
/// for [`last_digits`], and for a point alone.
#[inline(always)]
pub(super) fn last_decimal(bytes: &[u8], count: usize) -> Option<(u64, usize)> {
    if count == 0 || count > 8 {
        return None;
    }
    let word = word_before(bytes, 0)?;
    let digits = lead(word, count);
    // A point in front of the number is masked away with the rest.
    let points = zero_bytes(word ^ POINTS) & (u64::MAX << (64 - 8 * count));
    if points == 0 {
        return Some((eight_digits(digits)?, 0));
    }
    if count == 1 {
        return None;
    }
    // Closes the gap: what stands in front of the point moves into its place.
    let point_bit = points.trailing_zeros() - 7;
    let front = digits & !(u64::MAX << point_bit);
    let behind = digits & (u64::MAX << point_bit << 8);
    Some((eight_digits(front << 8 | behind)?, 7 - (point_bit / 8) as usize))
}

/// How many of the first eight bytes stand in front of the first point among them.
#[inline(always)]
pub(super) fn point_place(bytes: &[u8]) -> Option<usize> {
    let points = zero_bytes(u64::from_le_bytes(*bytes.first_chunk()?) ^ POINTS);
    if points == 0 { None } else { Some((points.trailing_zeros() / 8) as usize) }
}

/// The eight bytes in front of the last `behind` ones; the first byte is the lowest.
#[inline(always)]
fn word_before(bytes: &[u8], behind: usize) -> Option<u64> {
    let end = bytes.len().checked_sub(behind)?;
    Some(u64::from_le_bytes(*bytes.get(..end)?.last_chunk()?))
}

/// Takes the digits' values of the last `count` bytes, 1 to 8, and zero for the others.
#[inline(always)]
const fn lead(word: u64, count: usize) -> u64 {
    (word ^ ZEROS) & (u64::MAX << (64 - 8 * count))
}

/// Marks the bytes that are zero with their top bit. Exact for the lowest; above it, a byte that is
/// one may be marked too.
#[inline(always)]
const fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & TOPS
}

/// Joins eight digits, given by their values, the first one lowest; `None` where one is above nine.
#[inline(always)]
const fn eight_digits(digits: u64) -> Option<u64> {
    // Whether a byte is above nine shows in its top bit once 0x76 is added; a carry out of one byte
    // only comes with that bit.
    if (digits | digits.wrapping_add(0x7676_7676_7676_7676)) & TOPS != 0 {
        return None;
    }
    // Pairs of digits, then pairs of pairs twice, each in one multiplication.
    let pairs = digits * 10 + (digits >> 8);
    let high = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(100 + (1_000_000 << 32));
    let low = (pairs >> 16 & 0x0000_00ff_0000_00ff).wrapping_mul(1 + (10_000 << 32));
    Some(high.wrapping_add(low) >> 32)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::format;

    #[test]
    fn digits_of_every_length_are_read_whatever_stands_in_front() {
        for front in ["................", "9999999999999999", "\u{1}\u{1}\u{1}\u{1}\u{1}\u{1}\u{1}\u{1}-"] {
            for count in 1..=19 {
                let digits = &"1234567890987654321"[..count];
                let bytes = format!("{front}{front}{digits}");
                assert_eq!(last_digits(bytes.as_bytes(), count), digits.parse().ok(), "{bytes}");
            }
            assert_eq!(last_digits(front.repeat(3).as_bytes(), 20), None);
            assert_eq!(last_digits(front.as_bytes(), 0), None);
        }
        assert_eq!(last_digits(b"1234567", 7), None);
    }

    #[test]
    fn a_byte_that_is_no_digit_is_found_in_every_place() {
        for count in 1..=19 {
            for place in 0..count {
                for byte in (0..=u8::MAX).step_by(if cfg!(miri) { 51 } else { 1 }).filter(|byte| !byte.is_ascii_digit())
                {
                    let mut bytes = [b'7'; 32];
                    bytes[32 - count + place] = byte;
                    assert_eq!(last_digits(&bytes, count), None, "{byte} at {place} of {count}");
                }
            }
        }
    }

    #[test]
    fn a_point_may_stand_anywhere_but_alone() {
        for count in 2..=8 {
            for place in 0..count {
                let mut number = b"12345678"[..count].to_vec();
                number[place] = b'.';
                let digits: std::string::String =
                    number.iter().filter(|&&byte| byte != b'.').map(|&byte| byte as char).collect();
                let mut bytes = b"f=........9=".to_vec();
                bytes.extend(number);
                let expected = (digits.parse().unwrap(), count - 1 - place);
                assert_eq!(last_decimal(&bytes, count), Some(expected));
            }
        }
        let bad = ["1.2.3", "..1", ".", "1-", "1/2", "1e5", "x"];
        for bad in bad {
            assert_eq!(last_decimal(format!("01234567{bad}").as_bytes(), bad.len()), None, "{bad}");
        }
        assert_eq!(last_decimal(b"f=......17", 2), Some((17, 0)));
        assert_eq!(point_place(b"123.5678."), Some(3));
        assert_eq!(point_place(b"12345678."), None);
    }
}
