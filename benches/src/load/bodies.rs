//! An endless supply of bodies for one connection: a pool that takes turns, or new ones.
//!
//! Owns the connection's clock, or has its share of a common one: every body gets later timestamps
//! than the one before, so that no two points are the same.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use super::{
    body::{TICK_NS, Template},
    options::{Kind, Order, Shape},
    rows::Rows,
};

/// What the bodies of one connection are like.
#[derive(Debug, Clone, Copy)]
pub struct Recipe {
    /// Format.
    pub kind: Kind,
    /// What a point looks like.
    pub shape: Shape,
    /// Points in a body.
    pub batch: u32,
    /// Bodies that take turns; 0 makes new values for every body.
    pub pool: u32,
    /// Seed of tags and values.
    pub seed: u64,
    /// Order of the hosts within a tick.
    pub order: Order,
    /// Time of the first tick.
    pub start_ns: i64,
}

/// The bodies of one connection.
#[derive(Debug)]
pub struct Bodies {
    recipe: Recipe,
    rows: Rows,
    pool: Vec<Template>,
    turn: usize,
    /// Timestamp of the next body's tick 0, of this connection or of all.
    clock: Arc<AtomicI64>,
}

impl Bodies {
    /// Prepares the bodies of connection `worker`, which reports for `hosts`.
    ///
    /// # Errors
    ///
    /// If a body would have more points than its format can count.
    pub fn new(recipe: Recipe, hosts: impl IntoIterator<Item = usize>, worker: u32) -> io::Result<Self> {
        let mut bodies = Self {
            recipe,
            rows: Rows::new(recipe.shape, hosts, recipe.seed, u64::from(worker)).ordered(
                recipe.order,
                recipe.seed,
                u64::from(worker),
            ),
            pool: Vec::new(),
            turn: 0,
            // Connections that share a host differ in the nanosecond.
            clock: Arc::new(AtomicI64::new(recipe.start_ns + i64::from(worker))),
        };
        for _ in 0..recipe.pool {
            let template = bodies.template()?;
            bodies.pool.push(template);
        }
        Ok(bodies)
    }

    /// Takes the time of each body from a clock that other connections have as well: what is sent
    /// later is newer, whoever sends it.
    #[must_use]
    pub fn with_clock(mut self, clock: &Arc<AtomicI64>) -> Self {
        self.clock = Arc::clone(clock);
        self
    }

    /// Returns whether each body is written anew.
    #[must_use]
    pub const fn are_fresh(&self) -> bool {
        self.recipe.pool == 0
    }

    /// Returns the next body. Its points were in none before.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn advance(&mut self) -> io::Result<&[u8]> {
        let ticks = i64::try_from(self.rows.ticks(self.recipe.batch)).unwrap_or(i64::MAX / TICK_NS);
        let base_ns = self.clock.fetch_add(ticks * TICK_NS, Ordering::Relaxed);
        if self.recipe.pool == 0 {
            // Only kept so that there is something to borrow from.
            self.pool = vec![self.template()?];
        }
        let turn = self.turn;
        self.turn = (turn + 1) % self.pool.len().max(1);
        Ok(self.pool.get_mut(turn).map(|template| template.at(base_ns)).unwrap_or_default())
    }

    fn template(&mut self) -> io::Result<Template> {
        Template::new(self.recipe.kind, self.recipe.shape, &self.rows.take(self.recipe.batch))
    }
}

/// Returns the hosts that report through connection `worker` of `workers`: each of the `hosts`
/// through one connection, or through several where there are fewer hosts than connections.
#[must_use]
pub fn own_hosts(hosts: u32, workers: u32, worker: u32) -> Vec<usize> {
    let step = hosts.min(workers).max(1);
    (0..hosts).filter(|host| host % step == worker % step).filter_map(|host| usize::try_from(host).ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn recipe(batch: u32, pool: u32) -> Recipe {
        let start_ns = 1_767_225_600_000_000_000;
        Recipe { kind: Kind::Lp, shape: Shape::Short, batch, pool, seed: 42, order: Order::InTurn, start_ns }
    }

    #[test]
    fn no_two_points_of_a_run_are_one() {
        // (connections, hosts, points in a body, pool): more connections than hosts share hosts;
        // odd batches begin in the middle of a tick.
        for (workers, hosts, batch, pool) in [(3, 10, 7, 2), (5, 2, 7, 3), (3, 10, 7, 0), (1, 1, 1, 1), (4, 100, 1, 2)]
        {
            let mut points = BTreeSet::new();
            for worker in 0..workers {
                let mut bodies = Bodies::new(recipe(batch, pool), own_hosts(hosts, workers, worker), worker).unwrap();
                for _ in 0..5 {
                    for point in arc_lp::points(bodies.advance().unwrap()).map(Result::unwrap) {
                        points.insert((point.series_key().to_vec(), point.timestamp()));
                    }
                }
            }
            assert_eq!(points.len(), (workers * batch * 5) as usize, "{workers} {hosts} {batch} {pool}");
        }
    }

    #[test]
    fn the_points_of_a_host_are_in_the_order_of_time() {
        let mut bodies = Bodies::new(recipe(7, 3), own_hosts(10, 4, 1), 1).unwrap();
        let mut newest = std::collections::BTreeMap::new();
        for _ in 0..20 {
            for point in arc_lp::points(bodies.advance().unwrap()).map(Result::unwrap) {
                let before = newest.insert(point.series_key().to_vec(), point.timestamp());
                assert!(before.is_none_or(|before| before < point.timestamp()));
            }
        }
        assert_eq!(newest.len(), 3);
    }

    #[test]
    fn with_one_clock_what_is_sent_later_is_newer() {
        let clock = Arc::new(AtomicI64::new(1_767_225_600_000_000_000));
        let recipe = Recipe { order: Order::Random, ..recipe(25, 2) };
        let bodies = |worker| Bodies::new(recipe, 0..10, worker).unwrap().with_clock(&clock);
        let mut workers: Vec<_> = (0..3).map(bodies).collect();
        let mut newest = 0;
        for worker in [0, 1, 2, 2, 0, 1, 1] {
            let points = arc_lp::points(workers[worker].advance().unwrap()).map(Result::unwrap);
            let times: Vec<i64> = points.map(|point| point.timestamp().unwrap()).collect();
            assert!(times.is_sorted() && times[0] > newest);
            newest = times[24];
        }
    }

    #[test]
    fn a_pool_repeats_values_and_no_pool_does_not() {
        for (pool, repeats) in [(2, true), (0, false)] {
            let mut bodies = Bodies::new(recipe(50, pool), own_hosts(10, 1, 0), 0).unwrap();
            let mut values = || -> Vec<String> {
                let body = bodies.advance().unwrap();
                arc_lp::points(body).map(|point| format!("{:?}", point.unwrap().fields())).collect()
            };
            let (first, _, third) = (values(), values(), values());
            assert_eq!(first == third, repeats);
            assert_eq!(bodies.are_fresh(), !repeats);
        }
    }

    #[test]
    fn every_host_reports_through_one_connection() {
        // (hosts, connections, hosts of each connection)
        let cases: [(u32, u32, &[&[usize]]); 3] =
            [(5, 2, &[&[0, 2, 4], &[1, 3]]), (2, 3, &[&[0], &[1], &[0]]), (1, 1, &[&[0]])];
        for (hosts, workers, want) in cases {
            let got: Vec<_> = (0..workers).map(|worker| own_hosts(hosts, workers, worker)).collect();
            assert_eq!(got, want);
        }
    }
}
