//! What the engine may hold: all that was asked of it, when, and what it was told of each.
//!
//! Each point belongs to one writer, so that its versions have an order; drops and deletes come
//! from others at the same time, and take place at some moment between their call and their answer.
//! From this follows what a reader may find and what it must not miss.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use arc_core::Durability;
use parking_lot::Mutex;

/// A point: one series at one time, by its writer and the writer's place for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    pub(crate) database: String,
    pub(crate) table: String,
    pub(crate) writer: u64,
    pub(crate) slot: u64,
}

pub(crate) const DAY_NS: i64 = 86_400_000_000_000;
/// What the clock says first.
pub(crate) const FIRST_NS: i64 = 20_000 * DAY_NS;

/// Returns the time of the points of a slot: every third is of the same day.
pub(crate) fn time_of(slot: u64) -> i64 {
    let slot = i64::try_from(slot).unwrap();
    FIRST_NS - (slot % 3) * DAY_NS + slot
}

/// The values of all points that were found.
pub(crate) type Rows = BTreeMap<Id, i64>;

#[derive(Debug, Clone)]
pub(crate) enum What {
    Put {
        points: Vec<Id>,
        value: i64,
    },
    Drop {
        database: String,
        table: Option<String>,
    },
    Delete {
        database: String,
        table: String,
        writer: Option<u64>,
        times: Range<i64>,
    },
    /// What is past its retention.
    Expire,
}

impl What {
    fn takes(&self, id: &Id) -> bool {
        match self {
            Self::Put { .. } => false,
            Self::Drop { database, table } => {
                *database == id.database && table.as_ref().is_none_or(|table| *table == id.table)
            }
            Self::Delete { database, table, writer, times } => {
                (database, table) == (&id.database, &id.table)
                    && writer.is_none_or(|writer| writer == id.writer)
                    && times.contains(&time_of(id.slot))
            }
            Self::Expire => true,
        }
    }
}

/// What became of something that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Done,
    /// Nothing of it was done.
    Refused,
    /// Nothing knows, now or ever.
    Unknown,
}

#[derive(Debug, Clone)]
struct Event {
    what: What,
    level: Durability,
    begin: u64,
    end: Option<(u64, End)>,
}

impl Event {
    /// Whether it was done for certain before `moment`, and is not lost by what takes what is below
    /// `level`.
    fn is_done(&self, moment: u64, level: Durability) -> bool {
        self.level >= level && self.end.is_some_and(|(at, end)| end == End::Done && at <= moment)
    }

    /// Whether it may have been done before `moment`.
    fn may_be_done(&self, moment: u64) -> bool {
        self.begin <= moment && !self.end.is_some_and(|(at, end)| end == End::Refused && at <= moment)
    }

    /// Whether it was over before another one began.
    fn is_before(&self, other: &Self) -> bool {
        self.end.is_some_and(|(at, end)| at < other.begin && end != End::Unknown)
    }
}

/// All that was asked for. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub(crate) struct History(Arc<Mutex<Inner>>);

#[derive(Debug, Clone, Default)]
struct Inner {
    events: Vec<Event>,
    now: u64,
}

/// Something under way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked(usize);

/// When a thread looked, and what has to be there by then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    /// What was done before must be seen.
    pub(crate) from: u64,
    /// What began later must not be seen.
    pub(crate) to: u64,
    /// What survives what came before the look.
    pub(crate) level: Durability,
    /// Whether all was read at one moment between the two, not one table after the other.
    pub(crate) is_moment: bool,
}

impl History {
    /// Returns this moment.
    pub(crate) fn now(&self) -> u64 {
        let mut inner = self.0.lock();
        inner.now += 1;
        inner.now
    }

    pub(crate) fn begin(&self, what: What, level: Durability) -> Asked {
        let begin = self.now();
        let mut inner = self.0.lock();
        inner.events.push(Event { what, level, begin, end: None });
        Asked(inner.events.len() - 1)
    }

    pub(crate) fn end(&self, asked: Asked, end: End) {
        let at = self.now();
        self.0.lock().events[asked.0].end = Some((at, end));
    }

    /// Notes that what was promised nothing may be gone.
    pub(crate) fn restart(&self) {
        for event in self.0.lock().events.iter_mut().filter(|event| event.level == Durability::Memory) {
            if let Some((_, end @ End::Done)) = &mut event.end {
                *end = End::Unknown;
            }
        }
    }

    /// Returns the history as it is now, whatever is asked for later.
    pub(crate) fn frozen(&self) -> Self {
        Self(Arc::new(Mutex::new(self.0.lock().clone())))
    }

    /// Says what is wrong with what was found.
    pub(crate) fn check(&self, rows: &Rows, look: Look) -> Result<(), String> {
        let inner = self.0.lock();
        let ids = inner.events.iter().flat_map(|event| match &event.what {
            What::Put { points, .. } => points.as_slice(),
            _ => &[],
        });
        let mut ids: Vec<&Id> = ids.collect();
        ids.sort_unstable();
        ids.dedup();
        if let Some(stranger) = rows.keys().find(|id| ids.binary_search(id).is_err()) {
            return Err(format!("{stranger:?} is there, and nobody wrote it"));
        }
        for id in &ids {
            inner.check_point(id, rows.get(id).copied(), look)?;
        }
        inner.check_whole(rows, look)?;
        inner.check_drops(&ids, rows, look)
    }
}

impl Inner {
    /// Returns the writes of a point, in order.
    fn puts<'a>(&'a self, id: &'a Id) -> impl DoubleEndedIterator<Item = (&'a Event, i64)> {
        self.events.iter().filter_map(move |event| match &event.what {
            What::Put { points, value } if points.contains(id) => Some((event, *value)),
            _ => None,
        })
    }

    fn removals<'a>(&'a self, id: &'a Id) -> impl Iterator<Item = &'a Event> {
        self.events.iter().filter(move |event| event.what.takes(id))
    }

    fn check_point(&self, id: &Id, found: Option<i64>, look: Look) -> Result<(), String> {
        let last_done = self.puts(id).rev().find(|(put, _)| put.is_done(look.from, look.level));
        match (found, last_done) {
            (None, None) => Ok(()),
            (None, Some((put, value))) => {
                let may_take = |event: &&Event| event.may_be_done(look.to) && !event.is_before(put);
                match self.removals(id).any(|event| may_take(&event)) {
                    true => Ok(()),
                    false => Err(format!("{id:?} is lost: {value} was acknowledged, and nothing has taken it")),
                }
            }
            (Some(found), last_done) => {
                let Some((put, _)) = self.puts(id).find(|(_, value)| *value == found) else {
                    return Err(format!("{id:?} is {found}, which nobody wrote"));
                };
                if !put.may_be_done(look.to) {
                    return Err(format!("{id:?} is {found}, which was refused or is not written yet"));
                }
                if let Some((_, value)) = last_done.filter(|(_, value)| *value > found) {
                    return Err(format!("{id:?} is {found}, and {value} was acknowledged later"));
                }
                let took = |event: &&Event| event.is_done(look.from, look.level) && put.is_before(event);
                match self.removals(id).find(took) {
                    Some(event) => Err(format!("{id:?} is {found} again, after {:?}", event.what)),
                    None => Ok(()),
                }
            }
        }
    }

    /// Each write is there whole or not at all.
    fn check_whole(&self, rows: &Rows, look: Look) -> Result<(), String> {
        for event in self.events.iter().filter(|event| event.may_be_done(look.to)) {
            let What::Put { points, value } = &event.what else { continue };
            let is_last = |id: &&Id| {
                self.puts(id).next_back().is_some_and(|(_, last)| last == *value)
                    && !self.removals(id).any(|removal| removal.may_be_done(look.to) && !removal.is_before(event))
            };
            let mut there = points.iter().filter(is_last).map(|id| rows.get(id) == Some(value));
            let first = there.next();
            if first.is_some_and(|first| there.any(|other| other != first)) {
                return Err(format!("half of a write: {value} at {points:?}"));
            }
        }
        Ok(())
    }

    /// Of what was acknowledged before a drop began, the drop takes all or nothing.
    fn check_drops(&self, ids: &[&Id], rows: &Rows, look: Look) -> Result<(), String> {
        for drop in self.events.iter().filter(|event| event.may_be_done(look.to)) {
            let is_one = match &drop.what {
                What::Drop { table, .. } => look.is_moment || table.is_some(),
                _ => false,
            };
            if !is_one {
                continue;
            }
            let (mut gone, mut there) = (None, None);
            for id in ids.iter().filter(|id| drop.what.takes(id)) {
                if let Some(found) = rows.get(id) {
                    let of_before = |(put, value): (&Event, i64)| value == *found && put.is_before(drop);
                    if self.puts(id).any(of_before) {
                        there = Some(id);
                    }
                    continue;
                }
                let last = self.puts(id).rfind(|(put, _)| put.is_done(look.from, look.level));
                let others_may = |put: &Event| {
                    let mut others = self.removals(id).filter(|event| !std::ptr::eq(*event, drop));
                    others.any(|event| event.may_be_done(look.to) && !event.is_before(put))
                };
                if last.is_some_and(|(put, _)| put.is_before(drop) && !others_may(put)) {
                    gone = Some(id);
                }
            }
            if let (Some(gone), Some(there)) = (gone, there) {
                return Err(format!("half of {:?}: {gone:?} is gone and {there:?} is there", drop.what));
            }
        }
        Ok(())
    }
}
