//! The points of the three shapes, before they are written in a format.

use super::options::{Order, Shape};
use crate::{
    hosts::{CPU_FIELDS, Host, TAG_KEYS},
    random::Random,
    walk::{Walk, two_decimals, whole},
};

impl Shape {
    /// Returns the table that points of this shape go to.
    #[must_use]
    pub const fn table(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Iot => "iot",
            Self::Tsbs => "tsbs",
        }
    }

    /// Returns the keys of the tags.
    #[must_use]
    pub const fn tags(self) -> &'static [&'static str] {
        match self {
            Self::Short => &["host", "region"],
            Self::Iot => &["host"],
            Self::Tsbs => &TAG_KEYS,
        }
    }

    /// Returns the keys of the fields.
    #[must_use]
    pub const fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Short => &["usage_user", "usage_idle"],
            Self::Iot => &["temperature", "humidity", "pressure"],
            Self::Tsbs => &CPU_FIELDS,
        }
    }

    const fn is_whole(self) -> bool {
        matches!(self, Self::Tsbs)
    }

    /// Returns the value of a tag: shapes call the name of a host differently.
    fn tag(self, host: &Host, key: &str) -> String {
        host.tag(if key == "host" { "hostname" } else { key }).to_owned()
    }
}

/// A value of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value {
    /// Two decimals.
    Float(f64),
    Whole(i64),
}

/// One point, its time still a number of ticks from the start of its request.
#[derive(Debug, Clone)]
pub(super) struct Row<'a> {
    pub(super) tick: u32,
    /// Values of [`Shape::tags`], in their order.
    pub(super) tags: &'a [String],
    /// Values of [`Shape::fields`], in their order.
    pub(super) values: Vec<Value>,
}

/// One reporting host of a connection.
#[derive(Debug)]
struct Reporter {
    tags: Vec<String>,
    walk: Walk,
}

/// Makes the rows of one connection: tick after tick, in each tick each of its hosts once.
#[derive(Debug)]
pub(super) struct Rows {
    shape: Shape,
    reporters: Vec<Reporter>,
    /// Point of its tick at which the next request begins.
    next: usize,
    /// Which host has which point of a tick, and what shuffles them for the next one.
    places: Vec<usize>,
    shuffler: Option<Random>,
}

impl Rows {
    /// `hosts` are the numbers of the hosts that report through this connection, `part` the
    /// connection's own number.
    pub(super) fn new(shape: Shape, hosts: impl IntoIterator<Item = usize>, seed: u64, part: u64) -> Self {
        let reporter = |number: usize| {
            let host = Host::new(seed, number);
            let random = Random::part(seed ^ (part << 40), number as u64);
            Reporter {
                tags: shape.tags().iter().map(|key| shape.tag(&host, key)).collect(),
                walk: Walk::new(random, shape.fields().len()),
            }
        };
        let reporters: Vec<Reporter> = hosts.into_iter().map(reporter).collect();
        Self { shape, next: 0, places: (0..reporters.len()).collect(), shuffler: None, reporters }
    }

    /// Has the hosts of each tick come in this order.
    pub(super) fn ordered(mut self, order: Order, seed: u64, part: u64) -> Self {
        self.shuffler = (order == Order::Random).then(|| Random::part(!seed, part));
        self
    }

    /// Returns the hosts of the next `count` points.
    fn hosts(&mut self, count: usize) -> Vec<usize> {
        let Self { next, places, shuffler, .. } = self;
        let points = (*next..*next + count).map(|point| {
            let place = point % places.len().max(1);
            if let (0, Some(shuffler)) = (place, &mut *shuffler) {
                shuffler.shuffle(places);
            }
            places.get(place).copied().unwrap_or(0)
        });
        points.collect()
    }

    /// Returns how many ticks a request of `count` points can span.
    pub(super) fn ticks(&self, count: u32) -> u64 {
        // One more where it begins in the middle of a tick, one more where it ends in one.
        u64::from(count) / self.reporters.len().max(1) as u64 + 2
    }

    /// Makes the next `count` points.
    pub(super) fn take(&mut self, count: u32) -> Vec<Row<'_>> {
        let hosts = self.reporters.len().max(1);
        let (shape, first) = (self.shape, self.next);
        let of_points = self.hosts(usize::try_from(count).unwrap_or(usize::MAX));
        self.next = (first + of_points.len()) % hosts;
        // Values first: the rows borrow the tags.
        let mut values: Vec<Vec<Value>> = Vec::with_capacity(of_points.len());
        for host in &of_points {
            let reporter = self.reporters.get_mut(*host);
            let walked = reporter.map(|reporter| reporter.walk.advance()).unwrap_or_default();
            values.push(walked.iter().map(|value| shape.value(*value)).collect());
        }
        let reporters = &self.reporters;
        values
            .into_iter()
            .zip(of_points)
            .enumerate()
            .map(|(number, (values, host))| Row {
                tick: u32::try_from((first + number) / hosts).unwrap_or(u32::MAX),
                tags: reporters.get(host).map(|r| r.tags.as_slice()).unwrap_or_default(),
                values,
            })
            .collect()
    }
}

impl Shape {
    fn value(self, walked: f64) -> Value {
        if self.is_whole() { Value::Whole(whole(walked)) } else { Value::Float(two_decimals(walked)) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn hosts_report_in_turn_and_their_ticks_never_go_back() {
        let mut rows = Rows::new(Shape::Iot, [3, 7, 9], 42, 0);
        let seen: Vec<_> = rows.take(5).into_iter().map(|row| (row.tags[0].clone(), row.tick)).collect();
        let want = [("host_3", 0), ("host_7", 0), ("host_9", 0), ("host_3", 1), ("host_7", 1)];
        assert_eq!(seen, want.map(|(host, tick)| (host.to_owned(), tick)));
        // The next request begins where this one ended, in a tick of its own count.
        let seen: Vec<_> = rows.take(2).into_iter().map(|row| (row.tags[0].clone(), row.tick)).collect();
        assert_eq!(seen, [("host_9".to_owned(), 0), ("host_3".to_owned(), 1)]);
        assert!(rows.ticks(5) > 1);
    }

    #[test]
    fn in_random_order_each_host_reports_once_a_tick() {
        let mut rows = Rows::new(Shape::Iot, 0..50, 42, 0).ordered(Order::Random, 42, 0);
        let mut orders = BTreeSet::new();
        let mut taken: Vec<String> = Vec::new();
        // Requests end within ticks.
        for count in [30, 70, 100, 99, 1] {
            taken.extend(rows.take(count).iter().map(|row| row.tags[0].clone()));
        }
        for tick in taken.chunks(50) {
            assert_eq!(tick.iter().collect::<BTreeSet<_>>().len(), 50);
            orders.insert(tick);
        }
        assert_eq!(orders.len(), 6, "each tick has an order of its own");
    }

    #[test]
    fn the_shapes_have_the_columns_of_the_targets() {
        for (shape, tags, fields, whole) in
            [(Shape::Short, 2, 2, false), (Shape::Iot, 1, 3, false), (Shape::Tsbs, 10, 10, true)]
        {
            let mut rows = Rows::new(shape, [0], 42, 0);
            let row = &rows.take(1)[0];
            assert_eq!((row.tags.len(), row.values.len()), (tags, fields));
            assert!(row.tags.iter().all(|tag| !tag.is_empty()));
            assert!(row.values.iter().all(|value| matches!(value, Value::Whole(_)) == whole));
        }
    }
}
