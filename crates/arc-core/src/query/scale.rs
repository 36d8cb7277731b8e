//! How wide a plan runs, and in what pieces: in proportion to the memory that queries may take.
//!
//! Owns the numbers. What an operator holds between two questions for memory grows with the
//! partitions of a plan, the rows of a batch and the bytes of a row, and is in no account. With
//! plenty of memory these are DataFusion's own defaults.

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;

use crate::model::{fixed_bytes, rows_within};

/// Memory for each partition of a plan: below it, hash tables and sorts of several would not fit
/// side by side.
const PARTITION_BYTES: usize = 64 << 20;
/// Memory for each row of a batch.
const BATCH_ROW_BYTES: usize = 16 << 10;
/// Bytes of a value, roughly, with its share of offsets and nulls.
const VALUE_BYTES: usize = 16;
const MIN_BATCH_ROWS: usize = 64;
/// Bytes that so few rows take at most.
const MIN_BATCH_BYTES: usize = 16 << 20;
const MAX_BATCH_ROWS: usize = 8192;
/// Part of the memory that one thing of which there are many may hold: a batch, a buffer, a cache.
const PART: usize = 16;

/// Most that operators are not given of the memory.
const MAX_HEADROOM: usize = 128 << 20;

/// Returns what operators may hold as they count it. A group-by that has to spill holds its groups,
/// the batches made of them and those batches in order at the same time, and counts the first.
pub(super) fn counted_bytes(memory_bytes: usize) -> usize {
    memory_bytes - (memory_bytes / 2).min(MAX_HEADROOM)
}

/// Sets what does not depend on the statement. `memory_bytes` is what all queries share.
pub(super) fn configure(options: &mut ConfigOptions, memory_bytes: usize) {
    let execution = &mut options.execution;
    execution.target_partitions = execution.target_partitions.min(memory_bytes / PARTITION_BYTES).max(1);
    execution.sort_spill_reservation_bytes = execution.sort_spill_reservation_bytes.min(memory_bytes / PART);
    execution.sort_pushdown_buffer_capacity = execution.sort_pushdown_buffer_capacity.min(memory_bytes / PART);
}

/// Returns how many values a row of such columns is as wide as.
pub(super) fn row_values<'t>(types: impl IntoIterator<Item = &'t DataType>) -> usize {
    types.into_iter().map(|data_type| fixed_bytes(data_type).div_ceil(VALUE_BYTES)).fold(0, usize::saturating_add)
}

/// Returns how many rows the batches of a statement have whose widest rows are of so many values.
pub(super) fn batch_rows(memory_bytes: usize, row_values: usize) -> usize {
    let of_share = memory_bytes / BATCH_ROW_BYTES;
    let of_width = memory_bytes / PART / VALUE_BYTES / row_values.max(1);
    let min = rows_within(MIN_BATCH_BYTES, row_values.saturating_mul(VALUE_BYTES), MIN_BATCH_ROWS);
    let rows = of_share.min(of_width).clamp(min, MAX_BATCH_ROWS);
    // A power of two, as operators that grow by doubling like it.
    1 << rows.ilog2()
}

/// Returns the bytes that read footers of data files may hold.
pub(super) fn footer_bytes(memory_bytes: usize) -> usize {
    (memory_bytes / PART).min(50 << 20)
}

/// Returns the bytes that the newest rows of data files may hold, once they are read.
pub(super) fn latest_bytes(memory_bytes: usize) -> usize {
    (memory_bytes / PART).min(64 << 20)
}

/// Returns the bytes that it may take to remember where the times of data files lie.
pub(super) fn times_bytes(memory_bytes: usize) -> usize {
    (memory_bytes / PART / 4).min(16 << 20)
}

/// Returns the bytes that are kept of what reads of data files have used, for the next ones: a row
/// group for each of a few partitions.
pub(super) fn read_bytes(memory_bytes: usize) -> usize {
    (memory_bytes / PART / 2).min(32 << 20)
}

/// Returns how many spilled runs are merged at a time: each has a batch in memory.
pub(super) fn merge_fan_in(memory_bytes: usize) -> usize {
    (memory_bytes / (2 << 20)).clamp(4, 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_little_memory_is_headroom_and_a_small_part_of_much() {
        for (memory, counted) in [(0, 0), (48 << 20, 24 << 20), (1 << 30, (1 << 30) - (128 << 20))] {
            assert_eq!(counted_bytes(memory), counted);
        }
    }

    #[test]
    fn little_memory_makes_small_batches_and_few_partitions() {
        const MIB: usize = 1 << 20;
        for (memory, columns, rows) in [
            (MIB, 5, 64),
            (48 * MIB, 5, 2048),
            (48 * MIB, 1_000, 128),
            (1 << 30, 5, 8192),
            (1 << 30, 1_000, 4096),
            (usize::MAX, 0, 8192),
            (1 << 30, 4_096, 1024),
            (48 * MIB, 16_384, 64),
            (1 << 30, 65_536, 64),
            (48 * MIB, 65_536, 16),
            (1 << 30, usize::MAX, 1),
        ] {
            assert_eq!(batch_rows(memory, columns), rows, "{memory} {columns}");
        }
        for (memory, partitions, reservation) in
            [(MIB, 1, MIB / 16), (48 * MIB, 1, 3 * MIB), (256 * MIB, 4, 10 * MIB), (1 << 40, 8, 10 * MIB)]
        {
            let mut options = ConfigOptions::new();
            options.execution.target_partitions = 8;
            configure(&mut options, memory);
            assert_eq!(options.execution.target_partitions, partitions, "{memory}");
            assert_eq!(options.execution.sort_spill_reservation_bytes, reservation, "{memory}");
        }
    }
}
