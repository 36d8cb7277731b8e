//! The states that a disk may be in after the power failed.

use std::{collections::HashSet, path::Path};

use super::{
    disk::{Disk, Event, Inode},
    image::Image,
};

/// What a disk writes whole or not at all.
const SECTOR_BYTES: usize = 512;

/// The loss of power at one point of a history: what is safe, and what may or may not have reached
/// the disk.
#[derive(Debug, Clone)]
pub struct PowerCut {
    operations: usize,
    safe: Disk,
    /// Writes and name changes not yet synced, in the order they were made.
    pending: Vec<Event>,
}

/// What becomes of one pending event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Fate {
    Lost,
    Kept,
    /// Some sectors of a write reach the disk, drawn from the number; a name change has no parts
    /// and is kept.
    Torn(u64),
}

impl PowerCut {
    pub(super) fn new(safe: Disk) -> Self {
        Self { operations: 0, safe, pending: Vec::new() }
    }

    /// Moves on past one event.
    pub(super) fn pass(&mut self, event: &Event) {
        self.operations += 1;
        match event {
            Event::SyncFile(inode) => self.settle(|event| changes_file(event, *inode)),
            Event::SyncDir(dir) => self.settle(|event| changes_folder(event, dir)),
            Event::ForgetWrites => self.pending.retain(|event| matches!(event, Event::Names(_))),
            Event::ForgetFile(inode) => self.pending.retain(|event| !changes_file(event, *inode)),
            Event::ForgetNames(dir) => self.pending.retain(|event| !changes_folder(event, dir)),
            _ => self.pending.push(event.clone()),
        }
    }

    fn settle(&mut self, synced: impl Fn(&Event) -> bool) {
        for event in self.pending.extract_if(.., |event| synced(event)) {
            self.safe.apply(&event);
        }
    }

    /// Returns how many operations were done before the power failed.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.operations
    }

    /// Returns up to `budget` different legal states, always the same ones for one `seed`.
    ///
    /// First nothing unsynced, everything, names without contents and contents without names; then,
    /// for up to half of the budget, each single operation lost and each single write torn; then
    /// random fates for all operations.
    pub fn images(&self, seed: u64, budget: usize) -> impl Iterator<Item = Image> {
        self.plans(seed, budget).into_iter().map(|plan| self.image(&plan))
    }

    fn image(&self, plan: &[Fate]) -> Image {
        let mut disk = self.safe.clone();
        for (event, fate) in self.pending.iter().zip(plan) {
            match (fate, event) {
                (Fate::Lost, _) => {}
                (Fate::Torn(draw), Event::Write { inode, offset, bytes }) => {
                    tear(&mut disk, *inode, *offset, bytes, *draw);
                }
                _ => disk.apply(event),
            }
        }
        Image::from_disk(&disk)
    }

    fn plans(&self, seed: u64, budget: usize) -> Vec<Vec<Fate>> {
        let count = self.pending.len();
        let mut draws = FateDraws(seed);
        let mut plans = Plans { seen: HashSet::new(), list: Vec::new(), budget };
        let named = |event: &Event| matches!(event, Event::Names(_));
        plans.add(vec![Fate::Lost; count]);
        plans.add(vec![Fate::Kept; count]);
        plans.add(self.pending.iter().map(|event| if named(event) { Fate::Kept } else { Fate::Lost }).collect());
        plans.add(self.pending.iter().map(|event| if named(event) { Fate::Lost } else { Fate::Kept }).collect());
        let first = draws.below(count);
        for at in (first..count).chain(0..first).take(budget / 4) {
            for fate in [Fate::Lost, Fate::Torn(draws.next())] {
                plans.add((0..count).map(|i| if i == at { fate } else { Fate::Kept }).collect());
            }
        }
        // Few events have few fates: stop once new ones are hard to find.
        for _ in 0..budget.saturating_mul(4) {
            plans.add((0..count).map(|_| draws.fate()).collect());
        }
        plans.list
    }
}

struct Plans {
    seen: HashSet<Vec<Fate>>,
    list: Vec<Vec<Fate>>,
    budget: usize,
}

impl Plans {
    fn add(&mut self, plan: Vec<Fate>) {
        if self.list.len() < self.budget && self.seen.insert(plan.clone()) {
            self.list.push(plan);
        }
    }
}

fn changes_file(event: &Event, file: Inode) -> bool {
    matches!(event, Event::Write { inode, .. } | Event::SetLen { inode, .. } if *inode == file)
}

fn changes_folder(event: &Event, dir: &Path) -> bool {
    matches!(event, Event::Names(changes) if changes.iter().any(|(path, _)| path.parent() == Some(dir)))
}

/// Applies some sectors of a write: its first ones, its last ones, or any. Where it made the file
/// longer, the new length may be there without the bytes.
fn tear(disk: &mut Disk, inode: Inode, offset: usize, bytes: &[u8], draw: u64) {
    let mut draws = FateDraws(draw);
    let (shape, whole_len) = (draws.below(3), draws.below(2) == 0);
    let first = offset / SECTOR_BYTES;
    let sectors = (offset + bytes.len()).div_ceil(SECTOR_BYTES) - first;
    let edge = draws.below(sectors + 1);
    for sector in 0..sectors {
        let kept = match shape {
            0 => sector < edge,
            1 => sector >= edge,
            _ => draws.below(2) == 0,
        };
        let start = ((first + sector) * SECTOR_BYTES).max(offset);
        let end = ((first + sector + 1) * SECTOR_BYTES).min(offset + bytes.len());
        if let Some(piece) = bytes.get(start - offset..end - offset).filter(|_| kept) {
            disk.write(inode, start, piece);
        }
    }
    let end = offset + bytes.len();
    if whole_len && disk.bytes(inode).len() < end {
        disk.bytes_mut(inode).resize(end, 0);
    }
}

/// Pseudo-random numbers (SplitMix64): a seed names the same images everywhere.
struct FateDraws(u64);

impl FateDraws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Draws a number below `end`, or 0 where there is none.
    fn below(&mut self, end: usize) -> usize {
        let draw = self.next();
        usize::try_from(draw % (end as u64).max(1)).unwrap_or(0)
    }

    fn fate(&mut self) -> Fate {
        match self.below(8) {
            0..3 => Fate::Lost,
            3..6 => Fate::Kept,
            _ => Fate::Torn(self.next()),
        }
    }
}

/// Iterator over the points of a history; see [`CrashFs::power_cuts`](super::CrashFs::power_cuts).
#[derive(Debug)]
pub struct PowerCuts {
    next: Option<PowerCut>,
    history: std::vec::IntoIter<Event>,
}

impl PowerCuts {
    pub(super) fn new(start: PowerCut, history: Vec<Event>) -> Self {
        Self { next: Some(start), history: history.into_iter() }
    }
}

impl Iterator for PowerCuts {
    type Item = PowerCut;

    fn next(&mut self) -> Option<PowerCut> {
        let cut = self.next.take()?;
        if let Some(event) = self.history.next() {
            let mut after = cut.clone();
            after.pass(&event);
            self.next = Some(after);
        }
        Some(cut)
    }
}
