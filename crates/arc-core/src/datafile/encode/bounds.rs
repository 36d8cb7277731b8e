//! Least and greatest value of a column chunk, and whether those of its pages ascend.

use parquet::basic::BoundaryOrder;

/// Collects the bounds of pages.
#[derive(Debug)]
pub(super) struct PageBounds<K> {
    all: Option<(K, K)>,
    last_page: Option<(K, K)>,
    ascending: bool,
    descending: bool,
}

impl<K> Default for PageBounds<K> {
    fn default() -> Self {
        Self { all: None, last_page: None, ascending: true, descending: true }
    }
}

impl<K: Ord + Clone> PageBounds<K> {
    /// Takes the bounds of the next page that has any value.
    pub(super) fn push(&mut self, min: K, max: K) {
        if let Some((last_min, last_max)) = &self.last_page {
            self.ascending &= *last_min <= min && *last_max <= max;
            self.descending &= *last_min >= min && *last_max >= max;
        }
        match &mut self.all {
            None => self.all = Some((min.clone(), max.clone())),
            Some((least, greatest)) => {
                if min < *least {
                    least.clone_from(&min);
                }
                if max > *greatest {
                    greatest.clone_from(&max);
                }
            }
        }
        self.last_page = Some((min, max));
    }

    /// Returns the bounds of all pages, if any has a value.
    pub(super) fn all(&self) -> Option<&(K, K)> {
        self.all.as_ref()
    }

    /// Returns how the bounds of the pages follow each other.
    pub(super) fn order(&self) -> BoundaryOrder {
        match (self.ascending, self.descending) {
            (true, _) => BoundaryOrder::ASCENDING,
            (false, true) => BoundaryOrder::DESCENDING,
            (false, false) => BoundaryOrder::UNORDERED,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_and_order_are_those_of_the_pages() {
        use BoundaryOrder as Order;
        let cases: [(&[(i32, i32)], _, _); 5] = [
            (&[], None, Order::ASCENDING),
            (&[(1, 2), (2, 5)], Some((1, 5)), Order::ASCENDING),
            (&[(4, 9), (3, 9), (1, 2)], Some((1, 9)), Order::DESCENDING),
            (&[(1, 2), (3, 4), (0, 9)], Some((0, 9)), Order::UNORDERED),
            (&[(7, 7), (7, 7)], Some((7, 7)), Order::ASCENDING),
        ];
        for (pages, all, order) in cases {
            let mut bounds = PageBounds::default();
            pages.iter().for_each(|(min, max)| bounds.push(*min, *max));
            assert_eq!((bounds.all().copied(), bounds.order()), (all, order), "{pages:?}");
        }
    }
}
