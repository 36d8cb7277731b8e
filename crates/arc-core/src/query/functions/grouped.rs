//! One number for each group of an aggregate, and which groups have had a value.

use arrow::{
    array::{Array, ArrowPrimitiveType, BooleanArray, PrimitiveArray},
    buffer::NullBuffer,
};
use datafusion::{common::Result, logical_expr::EmitTo};

/// Numbers of groups, each the fold of the group's values.
#[derive(Debug)]
pub(super) struct Grouped<N> {
    numbers: Vec<N>,
    /// What a group has before its first value.
    start: N,
    /// Which groups have had a value; all, as long as no batch had a null or a filter: a group is
    /// made for a row.
    seen: Option<Vec<bool>>,
}

impl<N: Copy> Grouped<N> {
    pub(super) fn new(start: N) -> Self {
        Self { numbers: Vec::new(), start, seen: None }
    }

    /// Folds each value into the number of its group; there are `total` groups from now on.
    pub(super) fn fold<T: ArrowPrimitiveType>(
        &mut self,
        values: &PrimitiveArray<T>,
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
        fold: impl Fn(&mut N, T::Native) -> Result<()>,
    ) -> Result<()> {
        let before = self.numbers.len();
        self.numbers.resize(total, self.start);
        let all_count = values.null_count() == 0 && filter.is_none();
        if all_count && self.seen.is_none() {
            for (group, value) in groups.iter().zip(values.values()) {
                self.numbers.get_mut(*group).map_or(Ok(()), |number| fold(number, *value))?;
            }
            return Ok(());
        }
        let seen = self.seen.get_or_insert_with(|| vec![true; before]);
        seen.resize(total, false);
        let nulls = filtered(values, filter);
        for (row, (group, value)) in groups.iter().zip(values.values()).enumerate() {
            let counts = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
            let slot = self.numbers.get_mut(*group).zip(seen.get_mut(*group));
            if let Some((number, seen)) = slot.filter(|_| counts) {
                fold(number, *value)?;
                *seen = true;
            }
        }
        Ok(())
    }

    /// Returns the numbers of some groups, of which those without a value are null, and forgets
    /// them.
    pub(super) fn take(&mut self, which: EmitTo) -> (Vec<N>, Option<NullBuffer>) {
        let numbers = which.take_needed(&mut self.numbers);
        let seen = self.seen.as_mut().map(|seen| which.take_needed(seen));
        (numbers, seen.map(NullBuffer::from).filter(|nulls| nulls.null_count() > 0))
    }

    pub(super) fn size(&self) -> usize {
        self.numbers.capacity() * size_of::<N>() + self.seen.as_ref().map_or(0, Vec::capacity)
    }
}

/// Returns the values that count under a filter: the others are null.
pub(super) fn filtered<T: ArrowPrimitiveType>(
    values: &PrimitiveArray<T>,
    filter: Option<&BooleanArray>,
) -> Option<NullBuffer> {
    let filter = filter.map(|filter| match filter.nulls() {
        Some(nulls) => NullBuffer::new(filter.values() & nulls.inner()),
        None => NullBuffer::new(filter.values().clone()),
    });
    NullBuffer::union(values.nulls(), filter.as_ref())
}
