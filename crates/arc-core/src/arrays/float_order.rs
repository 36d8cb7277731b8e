//! The order that floats have here: a NaN is greater than every number (one with a sign is less),
//! and the two zeros are one.

/// Returns the place of a float in their order: equal for all that are the same.
pub(crate) fn rank(float: f64) -> i64 {
    let float = match float {
        0.0 => 0.0,
        nan if nan.is_nan() => f64::NAN.copysign(nan),
        number => number,
    };
    flipped(float.to_bits().cast_signed())
}

/// Returns the float of a rank.
pub(crate) fn float(rank: i64) -> f64 {
    f64::from_bits(flipped(rank).cast_unsigned())
}

/// Makes numbers with a sign ascend; its own inverse. As in [`f64::total_cmp`].
const fn flipped(bits: i64) -> i64 {
    bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
}
