//! `digits / 10^places` as the nearest `f64`: exact, without big integers.
//!
//! Up to 2^53 both numbers are floats and one division rounds once (Clinger, "How to read floating
//! point numbers accurately", 1990). Above that the quotient is found as an integer of 63 or 64
//! bits with what remains, so that the one rounding at the end knows whether anything is left. The
//! quotient comes from a multiplication with the reciprocal and is then made exact, so nothing
//! hangs on how good the reciprocal is.

/// The most places: 10^22 is the last power that an `f64` holds exactly.
const MAX_PLACES: usize = 22;

/// The powers of ten that an `f64` holds exactly.
const POWERS: [f64; MAX_PLACES + 1] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// A power of five, shifted so that its top bit is set, and what to multiply with instead of
/// dividing by it.
#[derive(Copy, Clone)]
struct Divisor {
    value: u64,
    /// `(2^127 - 1) / value`
    reciprocal: u64,
    /// The binary exponent that `value` stands for with the power of two of `10^places`.
    exponent: i32,
}

static DIVISORS: [Divisor; MAX_PLACES + 1] = divisors();

const fn divisors() -> [Divisor; MAX_PLACES + 1] {
    let mut all = [Divisor { value: 0, reciprocal: 0, exponent: 0 }; MAX_PLACES + 1];
    let (mut places, mut power) = (0, 1_u64);
    while places <= MAX_PLACES {
        let shift = power.leading_zeros();
        let value = power << shift;
        #[expect(clippy::cast_possible_truncation, reason = "at most 2^64 - 1, and places at most 22")]
        let divisor = Divisor {
            value,
            reciprocal: ((u128::MAX >> 1) / value as u128) as u64,
            exponent: shift as i32 - places as i32,
        };
        #[expect(clippy::indexing_slicing, reason = "evaluated by the compiler, inside the bounds")]
        {
            all[places] = divisor;
        }
        power = power.wrapping_mul(5);
        places += 1;
    }
    all
}

/// `digits / 10^places`, rounded to nearest even; `None` for more than 22 places.
#[inline(always)]
pub(super) fn quotient(digits: u64, places: usize) -> Option<f64> {
    if digits <= 1 << f64::MANTISSA_DIGITS {
        return Some(exact(digits) / POWERS.get(places)?);
    }
    Some(wide_quotient(digits, DIVISORS.get(places)?))
}

/// The same for `digits` above 2^53, so that there is a top bit to be moved up.
#[inline]
fn wide_quotient(digits: u64, divisor: &Divisor) -> f64 {
    let shift = digits.leading_zeros();
    let dividend = digits << shift;
    // Both top bits are set: the quotient of `dividend * 2^63` is between 2^62 and 2^64. The
    // estimate is at most two below it.
    let mut quotient = high_word(u128::from(dividend) * u128::from(divisor.reciprocal));
    let mut rest = (u128::from(dividend) << 63) - u128::from(quotient) * u128::from(divisor.value);
    while rest >= u128::from(divisor.value) {
        rest -= u128::from(divisor.value);
        quotient += 1;
    }
    // With ten or eleven bits to be rounded off, the last one can say "and a bit more".
    let sticky = u64::from(rest != 0);
    let exponent = divisor.exponent - 63 - shift.cast_signed();
    round(quotient | sticky) * power_of_two(exponent)
}

const fn high_word(wide: u128) -> u64 {
    (wide >> 64) as u64
}

/// A float of a number up to 2^53.
#[expect(clippy::cast_precision_loss, reason = "up to 2^53 nothing is lost")]
const fn exact(digits: u64) -> f64 {
    digits as f64
}

#[expect(clippy::cast_precision_loss, reason = "this is the one rounding, to nearest even")]
const fn round(quotient: u64) -> f64 {
    quotient as f64
}

/// `2^exponent` for exponents of normal numbers.
const fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use proptest::prelude::*;

    fn expected(digits: u64, places: usize) -> u64 {
        let value: f64 = std::format!("{digits}e-{places}").parse().unwrap();
        value.to_bits()
    }

    fn found(digits: u64, places: usize) -> u64 {
        quotient(digits, places).unwrap().to_bits()
    }

    #[test]
    fn ties_and_their_neighbours_round_to_even() {
        for places in 0..=MAX_PLACES {
            let edges = [0, 1, (1 << 53) - 1, 1 << 53, u64::MAX, u64::MAX - 1, 1 << 63];
            // Halfway between two floats where nothing is divided. Miri is slow: it looks at a few.
            let some = if cfg!(miri) { 2 } else { 64 };
            let ties = (0..some).map(|odd| (1 << 63) + 1024 * odd).flat_map(|tie| [tie - 1, tie, tie + 1]);
            // Halfway where what is divided leaves nothing.
            let fives = 5_u64.pow(u32::try_from(places).unwrap());
            let exact = (0..some).filter_map(|odd| fives.checked_mul((1 << 53) + odd));
            for digits in edges.into_iter().chain(ties).chain(exact) {
                assert_eq!(found(digits, places), expected(digits, places), "{digits}e-{places}");
            }
        }
        assert_eq!((quotient(1, 23), quotient(u64::MAX, 23)), (None, None));
    }

    proptest! {
        #![proptest_config(super::super::tests::config(20_000))]

        #[test]
        fn is_what_the_standard_library_says(digits: u64, shift in 0..64, places in 0..=MAX_PLACES) {
            let digits = digits >> shift;
            prop_assert_eq!(found(digits, places), expected(digits, places));
        }
    }
}
