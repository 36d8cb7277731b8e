//! Numbers as differences from the least of them, each in as many bytes as the largest difference
//! needs.
//!
//! One width for a whole column: so both directions are loops without branches. Differences wrap
//! around, so that any numbers come back.

use super::encode::EncodedBytes;

/// Returns how many bytes `largest` needs, one at least: so rows are never more than the bytes that
/// they are read from.
fn width(largest: u64) -> usize {
    (8 - largest.leading_zeros() as usize / 8).max(1)
}

/// Writes signed numbers: the width, the least of them, the differences.
pub(super) fn write_signed(values: &[i64], to: &mut EncodedBytes) {
    let least = values.iter().copied().min().unwrap_or(0);
    let most = values.iter().copied().max().unwrap_or(0);
    let difference = |value: i64| value.wrapping_sub(least).cast_unsigned();
    let width = width(difference(most));
    write_least(width, least.cast_unsigned(), to);
    write(values.iter().map(|value| difference(*value)), values.len(), width, to);
}

/// The same for unsigned ones.
pub(super) fn write_unsigned(values: &[u64], to: &mut EncodedBytes) {
    let least = values.iter().copied().min().unwrap_or(0);
    let most = values.iter().copied().max().unwrap_or(0);
    let width = width(most - least);
    write_least(width, least, to);
    write(values.iter().map(|value| value - least), values.len(), width, to);
}

fn write_least(width: usize, least: u64, to: &mut EncodedBytes) {
    to.byte(u8::try_from(width).unwrap_or(8));
    to.bytes(&least.to_le_bytes());
}

/// Writes the lowest `width` bytes of each of `count` numbers.
pub(super) fn write(values: impl Iterator<Item = u64>, count: usize, width: usize, to: &mut EncodedBytes) {
    match width {
        1 => write_as::<1>(values, count, to),
        2 => write_as::<2>(values, count, to),
        3 => write_as::<3>(values, count, to),
        4 => write_as::<4>(values, count, to),
        5 => write_as::<5>(values, count, to),
        6 => write_as::<6>(values, count, to),
        7 => write_as::<7>(values, count, to),
        _ => write_as::<8>(values, count, to),
    }
}

fn write_as<const W: usize>(values: impl Iterator<Item = u64>, count: usize, to: &mut EncodedBytes) {
    let (cells, _) = to.grow(count * W).as_chunks_mut::<W>();
    for (cell, value) in cells.iter_mut().zip(values) {
        *cell = value.to_le_bytes().first_chunk().copied().unwrap_or([0; W]);
    }
}

/// Reads the numbers that lie in `bytes`, `width` bytes each, and makes of each what `make` does.
pub(super) fn read<T>(bytes: &[u8], width: usize, make: impl Fn(u64) -> T) -> Vec<T> {
    match width {
        1 => read_as::<1, T>(bytes, make),
        2 => read_as::<2, T>(bytes, make),
        3 => read_as::<3, T>(bytes, make),
        4 => read_as::<4, T>(bytes, make),
        5 => read_as::<5, T>(bytes, make),
        6 => read_as::<6, T>(bytes, make),
        7 => read_as::<7, T>(bytes, make),
        _ => read_as::<8, T>(bytes, make),
    }
}

fn read_as<const W: usize, T>(bytes: &[u8], make: impl Fn(u64) -> T) -> Vec<T> {
    let (cells, _) = bytes.as_chunks::<W>();
    let number = |cell: &[u8; W]| {
        let mut wide = [0; 8];
        if let Some(low) = wide.first_chunk_mut() {
            *low = *cell;
        }
        make(u64::from_le_bytes(wide))
    };
    cells.iter().map(number).collect()
}
