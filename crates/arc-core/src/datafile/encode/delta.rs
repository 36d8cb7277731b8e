//! `DELTA_BINARY_PACKED`: integers as the differences between neighbours, in as few bits as the
//! largest of them needs (parquet-format, `Encodings.md`, "Delta Encoding").
//!
//! Differences wrap around, as the format says, so that any two values have one.

use super::bit_packing::{LOT, pack};
use crate::arrays::width_of;

/// Differences that share their least one.
const BLOCK: usize = MINIBLOCKS * LOT;
/// Parts of a block that have a width of their own.
const MINIBLOCKS: usize = 4;

/// Appends all values, as one run that stands for itself.
pub(super) fn encode(values: &[u64], out: &mut Vec<u8>) {
    push_varint(BLOCK as u64, out);
    push_varint(MINIBLOCKS as u64, out);
    push_varint(values.len() as u64, out);
    let first = values.first().copied().unwrap_or(0);
    push_varint(zigzag(first), out);
    let mut deltas = [0; BLOCK];
    let mut previous = first;
    for block in values.get(1..).unwrap_or_default().chunks(BLOCK) {
        for (delta, value) in deltas.iter_mut().zip(block) {
            *delta = value.wrapping_sub(previous);
            previous = *value;
        }
        push_block(deltas.get_mut(..block.len()).unwrap_or_default(), out);
    }
}

fn push_block(deltas: &mut [u64], out: &mut Vec<u8>) {
    let least = deltas.iter().fold(i64::MAX, |least, delta| least.min(delta.cast_signed())).cast_unsigned();
    push_varint(zigzag(least), out);
    let mut widths = [0; MINIBLOCKS];
    for (width, miniblock) in widths.iter_mut().zip(deltas.chunks_mut(LOT)) {
        let mut bits = 0;
        for delta in &mut *miniblock {
            *delta = delta.wrapping_sub(least);
            bits |= *delta;
        }
        *width = width_of(bits);
    }
    // No wider than 64 bits.
    out.extend(widths.map(|width| width.to_le_bytes()[0]));
    for (width, miniblock) in widths.into_iter().zip(deltas.chunks(LOT)) {
        let end = out.len() + LOT / 8 * width as usize;
        pack(miniblock, width, out);
        // The last miniblock of all is as long as the others.
        out.resize(end, 0);
    }
}

/// Makes numbers near zero, of either sign, small.
pub(in crate::datafile) fn zigzag(number: u64) -> u64 {
    (number << 1) ^ (number.cast_signed() >> 63).cast_unsigned()
}

/// Appends a number in groups of seven bits, lowest first, all but the last marked.
pub(in crate::datafile) fn push_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_distances_take_a_few_bytes_a_block() {
        let values: Vec<u64> = (0..10_000).map(|i| 1_700_000_000_000_000_000 + i * 10_000_000_000).collect();
        let mut out = Vec::new();
        encode(&values, &mut out);
        assert!(out.len() < 400, "{}", out.len());
    }

    #[test]
    fn bytes_are_those_of_the_format() {
        // Block size 256, 4 miniblocks, 3 values, the first is 7; least difference -1, widths 3, 0,
        // 0, 0; 0 and 5.
        let mut out = Vec::new();
        encode(&[7, 6, 10], &mut out);
        let mut expected = vec![0x80, 0x02, 4, 3, 14, 1, 3, 0, 0, 0, 0b10_1000];
        expected.resize(10 + 24, 0);
        assert_eq!(out, expected);
    }
}
