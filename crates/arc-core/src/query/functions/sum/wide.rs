//! The wider types in which sums are made.

use arrow::{
    array::ArrowNativeTypeOp,
    datatypes::{
        ArrowPrimitiveType, DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Decimal32Type, Decimal64Type,
        Decimal128Type, Decimal256Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
        DurationSecondType, Int64Type, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalYearMonthType,
        UInt64Type, i256,
    },
};

/// What can be summed: in which type that is done, and how what comes out is told to fit.
pub(in crate::query) trait Summed: ArrowPrimitiveType + Send + Sync {
    /// In what sums are made, and handed on.
    type Wide: ArrowPrimitiveType + Send + Sync;
    /// Whether no number of rows fills the wide type.
    const NEVER_FULL: bool;

    fn widen(value: Self::Native) -> <Self::Wide as ArrowPrimitiveType>::Native;
    fn narrow(sum: <Self::Wide as ArrowPrimitiveType>::Native, data_type: &DataType) -> Option<Self::Native>;
    /// Returns the type of a sum that is handed on, where `data_type` is that of the answer.
    fn state_type(data_type: &DataType) -> DataType;
    /// Returns the sum of values among which there are no nulls, where there is a faster way than
    /// one after the other.
    fn total(_values: &[Self::Native]) -> Option<<Self::Wide as ArrowPrimitiveType>::Native> {
        None
    }
}

const fn scale(data_type: &DataType) -> i8 {
    match data_type {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => *scale,
        _ => 0,
    }
}

const fn precision(data_type: &DataType) -> u8 {
    match data_type {
        DataType::Decimal32(precision, _)
        | DataType::Decimal64(precision, _)
        | DataType::Decimal128(precision, _)
        | DataType::Decimal256(precision, _) => *precision,
        _ => 0,
    }
}

/// Returns whether a decimal has no more digits than its type.
fn has_digits(sum: i256, data_type: &DataType) -> bool {
    let limit = i256::from_i128(10).pow_checked(u32::from(precision(data_type)));
    limit.is_ok_and(|limit| sum > limit.neg_wrapping() && sum < limit)
}

macro_rules! integers {
    ($($type:ty, $total:expr;)*) => {$(
        impl Summed for $type {
            type Wide = Decimal128Type;
            const NEVER_FULL: bool = true;

            fn widen(value: Self::Native) -> i128 {
                i128::from(value)
            }

            fn narrow(sum: i128, _data_type: &DataType) -> Option<Self::Native> {
                sum.try_into().ok()
            }

            fn state_type(_data_type: &DataType) -> DataType {
                DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0)
            }

            fn total(values: &[Self::Native]) -> Option<i128> {
                Some($total(values))
            }
        }
    )*};
}

integers! {
    Int64Type, total_of_integers;
    UInt64Type, total_of_unsigned;
    DurationSecondType, total_of_integers;
    DurationMillisecondType, total_of_integers;
    DurationMicrosecondType, total_of_integers;
    DurationNanosecondType, total_of_integers;
}

macro_rules! decimals {
    ($($type:ty: $wide:ty, $make:expr, $digits:expr, $state:expr, $back:expr;)*) => {$(
        impl Summed for $type {
            type Wide = $wide;
            const NEVER_FULL: bool = $digits < DECIMAL256_MAX_PRECISION;

            fn widen(value: Self::Native) -> <$wide as ArrowPrimitiveType>::Native {
                $make(value)
            }

            fn narrow(sum: <$wide as ArrowPrimitiveType>::Native, data_type: &DataType) -> Option<Self::Native> {
                let sum: i256 = sum.into();
                has_digits(sum, data_type).then(|| $back(sum)).flatten()
            }

            fn state_type(data_type: &DataType) -> DataType {
                $state(scale(data_type))
            }
        }
    )*};
}

const fn decimal128(scale: i8) -> DataType {
    DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale)
}

const fn decimal256(scale: i8) -> DataType {
    DataType::Decimal256(DECIMAL256_MAX_PRECISION, scale)
}

decimals! {
    Decimal32Type: Decimal128Type, i128::from, 9, decimal128, |sum: i256| sum.to_i128()?.try_into().ok();
    Decimal64Type: Decimal128Type, i128::from, 18, decimal128, |sum: i256| sum.to_i128()?.try_into().ok();
    Decimal128Type: Decimal256Type, i256::from_i128, 38, decimal256, i256::to_i128;
    Decimal256Type: Decimal256Type, |value: i256| value, 76, decimal256, Some;
}

macro_rules! intervals {
    ($($type:ty)*) => {$(
        impl Summed for $type {
            type Wide = Self;
            const NEVER_FULL: bool = false;

            fn widen(value: Self::Native) -> Self::Native {
                value
            }

            fn narrow(sum: Self::Native, _data_type: &DataType) -> Option<Self::Native> {
                Some(sum)
            }

            fn state_type(data_type: &DataType) -> DataType {
                data_type.clone()
            }
        }
    )*};
}

intervals!(IntervalYearMonthType IntervalDayTimeType IntervalMonthDayNanoType);

/// Numbers that are summed before their sum is widened: halves of so many fit into 64 bits.
const CHUNK: usize = 1 << 30;

/// Returns the sum, whatever it is. Upper and lower halves are summed apart, which needs no carry
/// from row to row.
pub(in crate::query) fn total_of_integers(values: &[i64]) -> i128 {
    let sums = values.chunks(CHUNK).map(|chunk| {
        let upper: i64 = chunk.iter().map(|value| value >> 32).sum();
        let lower: u64 = chunk.iter().map(|value| value.cast_unsigned() & u64::from(u32::MAX)).sum();
        (i128::from(upper) << 32) + i128::from(lower)
    });
    sums.sum()
}

/// As [`total_of_integers`], without a sign.
pub(in crate::query) fn total_of_unsigned(values: &[u64]) -> i128 {
    let sums = values.chunks(CHUNK).map(|chunk| {
        let upper: u64 = chunk.iter().map(|value| value >> 32).sum();
        let lower: u64 = chunk.iter().map(|value| value & u64::from(u32::MAX)).sum();
        (i128::from(upper) << 32) + i128::from(lower)
    });
    sums.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_halves_are_the_sums() {
        let integers = [i64::MAX, i64::MAX, i64::MIN, -1, 0, 1, -(1 << 32), (1 << 32) + 5, i64::MIN];
        assert_eq!(total_of_integers(&integers), integers.iter().map(|value| i128::from(*value)).sum());
        let unsigned = [u64::MAX, u64::MAX, 0, 1 << 32, u64::from(u32::MAX)];
        assert_eq!(total_of_unsigned(&unsigned), unsigned.iter().map(|value| i128::from(*value)).sum());
    }

    #[test]
    fn decimals_have_the_digits_of_their_type() {
        let nines = DataType::Decimal128(3, 1);
        for (sum, expected) in [(999, Some(999)), (1000, None), (-999, Some(-999)), (-1000, None)] {
            assert_eq!(Decimal128Type::narrow(i256::from_i128(sum), &nines), expected);
        }
        assert_eq!(Decimal256Type::narrow(i256::MAX, &DataType::Decimal256(76, 0)), None);
    }
}
