//! Packs small integers into as few bits each as they need, lowest bits first: what Parquet's
//! encodings of integers, dictionary indices and levels have in common (parquet-format,
//! `Encodings.md`, "Bit packed").
//!
//! Values are packed in lots of 64 by code made for one width each, in which every shift is a
//! constant: 0.3 to 0.8 ns a value, where a loop that asks for the width takes some 2 ns. Never
//! looks at whether a value fits: the caller knows.

/// Values that are packed at a time.
pub(super) const LOT: usize = 64;

/// Appends one lot.
type Kernel<T> = fn(&[T; LOT], &mut Vec<u8>);

/// Appends values of `width` bits each; the last byte of every eight values is filled up with
/// zeros.
pub(super) fn pack<T: Copy + Default + Into<u64>>(values: &[T], width: u32, out: &mut Vec<u8>) {
    let end = out.len() + values.len().div_ceil(8) * width as usize;
    let kernel = kernel::<T>(width);
    let (lots, rest) = values.as_chunks::<LOT>();
    for lot in lots {
        kernel(lot, out);
    }
    if !rest.is_empty() {
        let mut lot = [T::default(); LOT];
        lot.iter_mut().zip(rest).for_each(|(slot, value)| *slot = *value);
        kernel(&lot, out);
    }
    out.truncate(end);
}

#[inline(always)]
#[expect(clippy::indexing_slicing, reason = "all places are constants below 64 and the width once it is unrolled")]
fn pack_lot<T: Copy + Into<u64>, const WIDTH: usize>(lot: &[T; LOT], out: &mut Vec<u8>) {
    // Eight values fill whole bytes: as many as the width has bits.
    let mut bytes = [[0; WIDTH]; LOT / 8];
    for (eight, bytes) in bytes.iter_mut().enumerate() {
        let mut words = [0_u64; 8];
        for lane in 0..8 {
            let (value, bit): (u64, usize) = (lot[eight * 8 + lane].into(), lane * WIDTH);
            words[bit / 64] |= value << (bit % 64);
            if bit % 64 + WIDTH > 64 {
                words[bit / 64 + 1] |= value >> (64 - bit % 64);
            }
        }
        for (byte, slot) in bytes.iter_mut().enumerate() {
            *slot = words[byte / 8].to_le_bytes()[byte % 8];
        }
    }
    out.extend_from_slice(bytes.as_flattened());
}

/// Returns the code for a width, 64 where it is larger.
fn kernel<T: Copy + Into<u64>>(width: u32) -> Kernel<T> {
    macro_rules! kernels {
        ($($width:literal)*) => {
            match width {
                $($width => pack_lot::<T, $width>,)*
                _ => pack_lot::<T, 64>,
            }
        };
    }
    kernels!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39
        40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arrays::width_of;

    /// Bit by bit.
    fn naive(values: &[u64], width: u32) -> Vec<u8> {
        let mut bytes = vec![0; values.len().div_ceil(8) * width as usize];
        for (index, value) in values.iter().enumerate() {
            for bit in (0..width).filter(|bit| value >> bit & 1 == 1) {
                let lane = index * width as usize + bit as usize;
                bytes[lane / 8] |= 1 << (lane % 8);
            }
        }
        bytes
    }

    proptest! {
        #[test]
        fn bits_lie_where_a_loop_over_them_puts_them(
            (width, values) in (0_u32..=64).prop_flat_map(|width| {
                let largest = u64::MAX.checked_shr(64 - width).unwrap_or(0);
                (Just(width), prop::collection::vec(0..=largest, 0..300))
            }),
        ) {
            let mut packed = vec![7];
            pack(&values, width, &mut packed);
            prop_assert_eq!(&packed[1..], naive(&values, width));
            if width <= 32 {
                let short: Vec<u32> = values.iter().map(|value| u32::try_from(*value).unwrap()).collect();
                let mut again = vec![7];
                pack(&short, width, &mut again);
                prop_assert_eq!(again, packed);
            }
        }
    }

    #[test]
    fn a_width_is_that_of_the_highest_bit() {
        for (value, width) in [(0, 0), (1, 1), (2, 2), (3, 2), (255, 8), (256, 9), (u64::MAX, 64)] {
            assert_eq!(width_of(value), width, "{value}");
        }
    }
}
