//! Numbers from anywhere as ranks in a list of those that came.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// Numbers below this are looked up in a vector, of eight bytes each; it is kept for the next
/// request.
const DIRECT: u32 = 1 << 16;

/// Gives each number that comes a rank, in the order in which they come first.
#[derive(Debug, Default)]
pub(super) struct Numbering {
    /// By number: the round in which it came last, and its rank then.
    direct: Vec<(u32, u32)>,
    /// Larger ones and their ranks, for as long as they ascend: as they do where series come in the
    /// order in which they came first.
    ascending: Vec<(u32, u32)>,
    /// The rest.
    others: HashMap<u32, u32, FixedState>,
    round: u32,
    numbers: Vec<u32>,
}

impl Numbering {
    /// Forgets the numbers that came.
    pub(super) fn clear(&mut self) {
        self.numbers.clear();
        self.ascending.clear();
        self.others.clear();
        self.round = self.round.wrapping_add(1);
        if self.round == 0 {
            self.direct.clear();
            self.round = 1;
        }
    }

    /// Returns the numbers that came, each once.
    pub(super) fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// Returns the place of a number.
    #[inline(always)]
    pub(super) fn of(&mut self, number: u32) -> u32 {
        match self.direct.get(number as usize) {
            Some((round, rank)) if *round == self.round => *rank,
            _ => self.find(number),
        }
    }

    #[inline(never)]
    fn find(&mut self, number: u32) -> u32 {
        // There are no more ranks than numbers.
        let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
        if number >= DIRECT {
            if self.others.is_empty() && self.ascending.last().is_none_or(|(last, _)| *last < number) {
                self.ascending.push((number, next));
                self.numbers.push(number);
                return next;
            }
            if let Ok(at) = self.ascending.binary_search_by_key(&number, |(number, _)| *number) {
                return self.ascending.get(at).map_or(next, |(_, rank)| *rank);
            }
            let rank = *self.others.entry(number).or_insert(next);
            if rank == next {
                self.numbers.push(number);
            }
            return rank;
        }
        let index = number as usize;
        if self.direct.len() <= index {
            self.direct.resize((index + 1).next_power_of_two(), (0, 0));
        }
        if let Some(slot) = self.direct.get_mut(index) {
            *slot = (self.round, next);
        }
        self.numbers.push(number);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_the_rank_at_which_it_came_first() {
        let mut ranks = Numbering::default();
        for start in [0, 5, u32::MAX - 1] {
            ranks.round = start;
            for _ in 0..3 {
                ranks.clear();
                let numbers = [7, DIRECT, 7, 0, u32::MAX, DIRECT - 1, DIRECT, 0];
                assert_eq!(numbers.map(|number| ranks.of(number)), [0, 1, 0, 2, 3, 4, 1, 2], "{start}");
                assert_eq!(ranks.numbers(), [7, DIRECT, 0, u32::MAX, DIRECT - 1]);
                ranks.clear();
                let (a, b, c, d) = (DIRECT + 1, DIRECT + 5, DIRECT + 9, DIRECT + 7);
                let numbers = [a, b, 3, c, b, d, a, d, DIRECT, c, u32::MAX, d, u32::MAX];
                assert_eq!(numbers.map(|number| ranks.of(number)), [0, 1, 2, 3, 1, 4, 0, 4, 5, 3, 6, 4, 6], "{start}");
                assert_eq!(ranks.numbers(), [a, b, 3, c, d, DIRECT, u32::MAX]);
            }
        }
    }
}
