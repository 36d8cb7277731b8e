//! Points in order of time, of which some may come and others go at any time: what a window asks
//! for at each of its rows.
//!
//! They are in blocks, of each of which the change is known: at each row one block is looked at,
//! and what is known of the others. Points that come in order cost nothing more.

use std::{cmp::Ordering, fmt, iter};

use arrow::datatypes::{ArrowNativeType, ArrowPrimitiveType, Float64Type, Int64Type, UInt64Type};

/// Points of a block, after which it is cut in two.
const BLOCK: usize = 512;

/// What a point has at its time.
pub(super) trait PointValue: ArrowNativeType + fmt::Debug + Send + Sync {
    type Arrow: ArrowPrimitiveType<Native = Self>;
    /// What values differ by: exactly, if they are integers.
    type Change: Copy + fmt::Debug + Default + Send + Sync + std::ops::Add<Output = Self::Change>;

    fn whole(self) -> Self::Change;
    /// Returns how much this is more than another.
    fn since(self, other: Self) -> Self::Change;
    fn order(&self, other: &Self) -> Ordering;
    fn counts(self) -> bool;
    fn float(change: Self::Change) -> f64;
}

impl PointValue for f64 {
    type Arrow = Float64Type;
    type Change = Self;

    fn whole(self) -> Self {
        self
    }

    fn since(self, other: Self) -> Self {
        // Infinite ones would differ by a NaN.
        if self == other { 0.0 } else { self - other }
    }

    fn order(&self, other: &Self) -> Ordering {
        self.total_cmp(other)
    }

    fn counts(self) -> bool {
        !self.is_nan()
    }

    fn float(change: Self) -> f64 {
        change
    }
}

macro_rules! integers {
    ($($native:ty, $arrow:ty;)*) => {$(
        impl PointValue for $native {
            type Arrow = $arrow;
            type Change = i128;

            fn whole(self) -> i128 {
                i128::from(self)
            }

            fn since(self, other: Self) -> i128 {
                i128::from(self) - i128::from(other)
            }

            fn order(&self, other: &Self) -> Ordering {
                self.cmp(other)
            }

            fn counts(self) -> bool {
                true
            }

            #[expect(clippy::cast_precision_loss, reason = "the answer is a float, and rounded once")]
            fn float(change: i128) -> f64 {
                change as f64
            }
        }
    )*};
}

integers! {
    i64, Int64Type;
    u64, UInt64Type;
}

pub(super) type Point<V> = (i64, V);

/// By time; of one time the lesser value comes first, whatever the order of the rows.
fn order<V: PointValue>(a: &Point<V>, b: &Point<V>) -> Ordering {
    a.0.cmp(&b.0).then_with(|| a.1.order(&b.1))
}

/// What is known of points that follow one another.
#[derive(Debug, Clone, Copy)]
pub(super) struct PointSpan<V: PointValue> {
    pub(super) first: Point<V>,
    pub(super) last: Point<V>,
    /// The sum of all steps; one down counts in full.
    pub(super) increase: V::Change,
    pub(super) count: usize,
}

impl<V: PointValue> PointSpan<V> {
    fn of(point: Point<V>) -> Self {
        Self { first: point, last: point, increase: V::Change::default(), count: 1 }
    }

    fn then(self, later: Self) -> Self {
        let (before, after) = (self.last.1, later.first.1);
        let step = if after.order(&before) == Ordering::Less { after.whole() } else { after.since(before) };
        Self {
            first: self.first,
            last: later.last,
            increase: self.increase + step + later.increase,
            count: self.count + later.count,
        }
    }

    fn of_all(points: &[Point<V>]) -> Option<Self> {
        points.iter().copied().map(Self::of).reduce(Self::then)
    }
}

/// Some points in order, at least one.
#[derive(Debug)]
struct PointBlock<V: PointValue> {
    points: Vec<Point<V>>,
    span: PointSpan<V>,
}

impl<V: PointValue> PointBlock<V> {
    fn new(points: Vec<Point<V>>) -> Option<Self> {
        PointSpan::of_all(&points).map(|span| Self { points, span })
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Points<V: PointValue> {
    blocks: Vec<PointBlock<V>>,
    /// What is known of all blocks but the last, if it is.
    earlier: Option<PointSpan<V>>,
    /// Those that came and are not in blocks yet.
    came: Vec<Point<V>>,
}

impl<V: PointValue> Points<V> {
    pub(super) const fn new() -> Self {
        Self { blocks: Vec::new(), earlier: None, came: Vec::new() }
    }

    pub(super) fn extend(&mut self, points: impl Iterator<Item = Point<V>>) {
        self.came.extend(points);
    }

    /// Lets go of some, if they are there.
    pub(super) fn remove(&mut self, points: impl Iterator<Item = Point<V>>) {
        self.settle();
        for point in points {
            let at = self.blocks.partition_point(|block| order(&block.span.last, &point) == Ordering::Less);
            let Some(block) = self.blocks.get_mut(at) else { continue };
            if let Ok(index) = block.points.binary_search_by(|held| order(held, &point)) {
                block.points.remove(index);
                self.changed(at);
            }
        }
    }

    /// Returns what is known of all points.
    pub(super) fn span(&mut self) -> Option<PointSpan<V>> {
        self.settle();
        let (last, earlier) = self.blocks.split_last()?;
        if self.earlier.is_none() {
            self.earlier = earlier.iter().map(|block| block.span).reduce(PointSpan::then);
        }
        Some(self.earlier.map_or(last.span, |earlier| earlier.then(last.span)))
    }

    /// Returns all points in order.
    pub(super) fn all(&mut self) -> impl Iterator<Item = Point<V>> {
        self.settle();
        self.blocks.iter().flat_map(|block| block.points.iter().copied())
    }

    pub(super) fn size(&self) -> usize {
        let held: usize = self.blocks.len() * BLOCK;
        (held + self.came.capacity()) * size_of::<Point<V>>()
    }

    /// Puts into blocks what came.
    fn settle(&mut self) {
        if self.came.len() > 1 {
            self.came.sort_unstable_by(order);
        }
        let held = self.blocks.len() * BLOCK;
        let is_next = match (self.blocks.last(), self.came.first()) {
            (Some(last), Some(first)) => order(&last.span.last, first) != Ordering::Greater,
            _ => true,
        };
        if is_next || self.came.len() < held / 16 {
            let mut came = std::mem::take(&mut self.came);
            came.drain(..).for_each(|point| self.insert(point));
            self.came = came;
            return;
        }
        // Many among many.
        let held = self.blocks.drain(..).flat_map(|block| block.points);
        self.came.extend(held);
        self.came.sort_unstable_by(order);
        self.blocks = self.came.chunks(BLOCK).filter_map(|points| PointBlock::new(points.to_vec())).collect();
        self.came.clear();
        self.earlier = None;
    }

    fn insert(&mut self, point: Point<V>) {
        let Some(last) = self.blocks.last_mut() else { return self.blocks.extend(PointBlock::new(vec![point])) };
        let is_next = order(&last.span.last, &point) != Ordering::Greater;
        if !is_next {
            return self.insert_between(point);
        }
        if last.points.len() < BLOCK {
            last.points.push(point);
            last.span = last.span.then(PointSpan::of(point));
            return;
        }
        // The last block becomes one of the earlier ones.
        let span = last.span;
        self.earlier = match (self.earlier, self.blocks.len()) {
            (Some(earlier), _) => Some(earlier.then(span)),
            (None, 1) => Some(span),
            (None, _) => None,
        };
        self.blocks.extend(PointBlock::new(vec![point]));
    }

    fn insert_between(&mut self, point: Point<V>) {
        let at = self.blocks.partition_point(|block| order(&block.span.last, &point) == Ordering::Less);
        if let Some(block) = self.blocks.get_mut(at) {
            let index = block.points.partition_point(|held| order(held, &point) == Ordering::Less);
            block.points.insert(index, point);
        }
        self.changed(at);
    }

    /// Looks at a block again.
    fn changed(&mut self, at: usize) {
        if at + 1 < self.blocks.len() {
            self.earlier = None;
        }
        let Some(block) = self.blocks.get_mut(at) else { return };
        let rest = if block.points.len() > 2 * BLOCK { block.points.split_off(BLOCK) } else { Vec::new() };
        let points = std::mem::take(&mut block.points);
        let made: Vec<_> = iter::once(points).chain(iter::once(rest)).filter_map(PointBlock::new).collect();
        if made.len() != 1 {
            self.earlier = None;
        }
        self.blocks.splice(at..=at, made);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The change of points, looked at one after the other.
    fn plain(points: &[Point<i64>]) -> Option<(i128, usize)> {
        let mut sorted = points.to_vec();
        sorted.sort_unstable_by(order);
        let steps = sorted.windows(2).map(|pair| match pair[1].1 >= pair[0].1 {
            true => i128::from(pair[1].1) - i128::from(pair[0].1),
            false => i128::from(pair[1].1),
        });
        (!sorted.is_empty()).then(|| (steps.sum(), sorted.len()))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        /// Batches come, and after each so many of the first points go.
        #[test]
        fn points_have_the_change_that_they_have_in_order(
            batches in prop::collection::vec((prop::collection::vec((0..400_i64, 0..50_i64), 1..700), 0..600_usize, any::<bool>()), 1..8)
        ) {
            let (mut points, mut held) = (Points::<i64>::new(), Vec::new());
            for (mut batch, going, sorted) in batches {
                if sorted {
                    batch.sort_unstable();
                }
                for part in batch.chunks(97) {
                    points.extend(part.iter().copied());
                    held.extend_from_slice(part);
                    let span = points.span().map(|span| (span.increase, span.count));
                    prop_assert_eq!(span, plain(&held));
                }
                let gone: Vec<_> = held.drain(..going.min(held.len())).collect();
                points.remove(gone.into_iter());
                prop_assert_eq!(points.span().map(|span| (span.increase, span.count)), plain(&held));
                prop_assert_eq!(points.all().count(), held.len());
            }
        }
    }
}
