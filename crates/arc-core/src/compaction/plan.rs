//! Which files are merged next: a pure function of what the manifest says and the time.

use std::{collections::BTreeMap, sync::Arc};

use super::order::{MergeOutput, by_version, output};
use crate::model::{DataFile, PartitionDay, TIME_COLUMN, TableSchema};

/// Inputs of one task, whatever their columns.
const MAX_INPUTS: usize = 128;

/// Rows of a file from which on reading it is hardly dearer than reading as many rows of a larger
/// one: those of a row group of merged files.
const LARGE_ROWS: u64 = 1 << 20;
/// How many times as many of such files are merged at a time.
const LARGE_FACTOR: usize = 4;
/// Such files of one append-only table and one day that are left as they are (decision 028).
const MAX_LEFT_ALONE: usize = 1024;

/// Rows of a slice, see [`Partition::slices`]: a few row groups, so that the rows of a series in a
/// day are in few places.
pub(crate) const SLICE_ROWS: u64 = 4 * LARGE_ROWS;
/// Slices of a day, about, however many rows it has.
const MAX_SLICES: u64 = 8;

/// Bytes of what is merged from which on it gets a file of its own, and a commit. A file costs as
/// much as encoding about 100 KB.
const SMALL_BYTES: u64 = 256 << 10;

/// What decides when files are merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Files of about the same size that are merged into one.
    pub(crate) files: usize,
    /// Size that the last rewrite of a partition aims at.
    pub(crate) target_bytes: u64,
    /// Columns, over all inputs of one task, that are open at a time; two inputs may be, whatever
    /// their columns.
    pub(crate) open_columns: usize,
    /// How long a partition whose day has ended must have been left alone before its last rewrite.
    pub(crate) quiet_ns: i64,
    /// Rows from which on the last rewrite begins another file for later times; more where a
    /// partition has many.
    pub(crate) slice_rows: u64,
}

/// Files of one partition to be merged.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MergeTask {
    pub(crate) day: PartitionDay,
    /// The inputs, each overwriting those before it where a row of the same primary key is in both.
    pub(crate) files: Vec<Arc<DataFile>>,
    pub(crate) output: MergeOutput,
    /// Times, ascending, at which the outputs are parted: no file has rows from before one of them
    /// and from it on.
    pub(crate) cuts: Vec<i64>,
    /// Whether rows may be left out because of their age: only where every version of such a row
    /// takes part. A late file that stays outside would show its version as if it were all of the
    /// row, and one that is merged with late ones only would uncover what it has overwritten.
    pub(crate) may_drop_old: bool,
    /// Whether the partition is over: what comes of this is left alone from then on.
    pub(crate) is_last: bool,
}

impl MergeTask {
    /// Returns the task that merges or rewrites the `chosen` files of a partition and nothing else
    /// with them, if that may be.
    pub(super) fn of(partition: &[Arc<DataFile>], chosen: impl Fn(&DataFile) -> bool) -> Option<Self> {
        let output = output(partition, &chosen)?;
        let files: Vec<Arc<DataFile>> = partition.iter().filter(|file| chosen(file)).cloned().collect();
        let day = files.first()?.day();
        Some(Self { day, files, output, cuts: Vec::new(), may_drop_old: false, is_last: false })
    }

    /// Returns whether there is so little to read that a commit of its own would cost more.
    pub(crate) fn is_small(&self) -> bool {
        self.files.iter().map(|file| file.bytes).sum::<u64>() < SMALL_BYTES
    }

    /// Returns whether what comes of it is too little for a file of its own, as its inputs were.
    pub(crate) fn is_packed(&self) -> bool {
        !self.is_last && self.is_small() && self.files.iter().all(|file| file.packed().is_some())
    }
}

/// What is to be done for one table.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct CompactionPlan {
    /// At most one task for each partition; there may be more to do once they are done.
    pub(crate) tasks: Vec<MergeTask>,
    /// When a partition is due for its last rewrite that is not due yet.
    pub(crate) next_due_ns: Option<i64>,
}

/// Returns what is to be done for a table with these live files, in the manifest's order.
pub(crate) fn plan(schema: &TableSchema, files: &[Arc<DataFile>], now_ns: i64, settings: &Settings) -> CompactionPlan {
    let mut partitions: BTreeMap<PartitionDay, Vec<Arc<DataFile>>> = BTreeMap::new();
    for file in files {
        partitions.entry(file.day()).or_default().push(Arc::clone(file));
    }
    let mut plan = CompactionPlan::default();
    for (day, files) in partitions {
        // The merge relies on the order; a file without it can only stay as it is, and with it what
        // depends on it.
        if !files.iter().all(|file| is_sorted(schema, file)) {
            continue;
        }
        let limit = max_inputs(&files, settings.open_columns);
        let partition = Partition { day, files: &files, has_primary_key: schema.has_primary_key, limit, settings };
        let due_ns = partition.due_ns();
        let is_last = due_ns <= now_ns;
        let chosen =
            if is_last { partition.last_rewrite() } else { partition.merge_of_equals().map(ChosenFiles::from) };
        plan.tasks.extend(chosen.and_then(|chosen| partition.task(chosen, is_last)));
        if now_ns < due_ns && partition.last_rewrite().is_some() {
            plan.next_due_ns = Some(plan.next_due_ns.map_or(due_ns, |next| next.min(due_ns)));
        }
    }
    plan
}

/// Returns whether the rows of `file` are in the order of (tags, time), as its table has its tags
/// now. A tag that the file lacks is null in all its rows and changes no order.
pub(super) fn is_sorted(schema: &TableSchema, file: &DataFile) -> bool {
    let has = |tag: &&str| file.columns.iter().any(|column| column.name == *tag);
    let expected = schema.tags().map(|tag| tag.name.as_ref()).filter(has).chain([TIME_COLUMN]);
    expected.eq(file.sorted_by.iter().map(String::as_str))
}

fn max_inputs(files: &[Arc<DataFile>], open_columns: usize) -> usize {
    let columns = files.iter().map(|file| file.columns.len()).max().unwrap_or(1);
    (open_columns / columns.max(1)).clamp(2, MAX_INPUTS)
}

/// Files to be merged, and times at which the outputs are parted.
struct ChosenFiles<'a> {
    files: Vec<&'a DataFile>,
    cuts: Vec<i64>,
}

impl<'a> From<Vec<&'a DataFile>> for ChosenFiles<'a> {
    fn from(files: Vec<&'a DataFile>) -> Self {
        Self { files, cuts: Vec::new() }
    }
}

/// The live files of one table and day.
struct Partition<'a> {
    day: PartitionDay,
    files: &'a [Arc<DataFile>],
    /// Whether rows are in order of tags first, and not of time alone.
    has_primary_key: bool,
    /// Most inputs of one task.
    limit: usize,
    settings: &'a Settings,
}

impl<'a> Partition<'a> {
    /// Returns when the partition may be rewritten for the last time.
    fn due_ns(&self) -> i64 {
        let written = self.files.iter().filter_map(|file| file.written_ns()).max().unwrap_or(i64::MIN);
        self.day.end_ns().max(written).saturating_add(self.settings.quiet_ns)
    }

    fn task(&self, chosen: ChosenFiles<'_>, is_last: bool) -> Option<MergeTask> {
        let is_chosen = |file: &DataFile| chosen.files.iter().any(|chosen| chosen.path == file.path);
        let output = output(self.files, is_chosen)?;
        let mut files: Vec<Arc<DataFile>> = self.files.iter().filter(|file| is_chosen(file)).cloned().collect();
        // Stable: files on time stay in the order in which they were added, which is that of rows
        // of one time where rows append.
        files.sort_by_key(|file| if file.late { (1, file.version()) } else { (0, (0, 0)) });
        let may_drop_old = output == MergeOutput::OnTime && self.files.iter().all(|file| !file.late || is_chosen(file));
        Some(MergeTask { day: self.day, files, output, cuts: chosen.cuts, may_drop_old, is_last })
    }

    /// All that is late, what it overlaps, and the small files beside these; or else the small
    /// files of one slice. A packed file gets out of its pack, also where it is alone.
    fn last_rewrite(&self) -> Option<ChosenFiles<'a>> {
        let (slices, late) = (self.slices(), by_version(self.files));
        let is_small = |slice: &&Vec<&DataFile>| slice.len() > 1 || slice.iter().any(|file| file.packed().is_some());
        if late.is_empty() {
            return slices.iter().find(is_small).map(|slice| self.first_of(slice));
        }
        let is_overlapped = |file: &DataFile| late.iter().any(|late| late.overlaps(file));
        let touched: Vec<_> = slices.iter().filter(|slice| slice.iter().any(|file| is_overlapped(file))).collect();
        let mut files: Vec<&DataFile> = touched.iter().copied().flatten().copied().collect();
        let is_large =
            |file: &&DataFile| !touched.iter().any(|slice| slice.iter().any(|small| small.path == file.path));
        files.extend(self.on_time().filter(|file| is_overlapped(file)).filter(is_large));
        files.extend(&late);
        if files.len() <= self.limit {
            let starts = touched.iter().filter_map(|slice| Some(slice.first()?.min_time));
            return Some(ChosenFiles { files, cuts: starts.skip(1).collect() });
        }
        // Too many to be open at once: make fewer of them first, if that can be.
        if let Some(slice) = slices.iter().find(is_small) {
            return Some(self.first_of(slice));
        }
        late.iter().find_map(|file| self.late_step(&late, file)).or_else(|| self.merge_of_stuck(&late))
    }

    /// Returns as many files of a slice as may be open.
    fn first_of(&self, slice: &[&'a DataFile]) -> ChosenFiles<'a> {
        slice.iter().copied().take(self.limit).collect::<Vec<_>>().into()
    }

    /// Returns the small files in groups, ascending in time, each of which the last rewrite makes
    /// one file of.
    ///
    /// In a file of a whole day, in order of (tags, time), the rows of an hour are everywhere: a
    /// query about that hour reads all of it. So a slice that has enough rows ends where the next
    /// file begins after the middle of its time. Files that all reach over the same time are one
    /// slice, however many rows they have.
    fn slices(&self) -> Vec<Vec<&'a DataFile>> {
        let rows: u64 = self.on_time().map(|file| file.rows).sum();
        let enough = self.settings.slice_rows.max(rows / MAX_SLICES);
        let mut slices: Vec<Vec<&DataFile>> = Vec::new();
        for file in self.small() {
            match slices.last_mut() {
                Some(slice) if takes(slice, file, enough) => slice.push(file),
                _ => slices.push(vec![file]),
            }
        }
        slices
    }

    /// What brings one late file nearer to being on time: the merge with what it overlaps, or else
    /// a cut.
    ///
    /// What is merged is parted where the late file begins and ends. Files on time that reach
    /// beyond would otherwise grow with each part of a late file, and overlap the next one, all of
    /// them.
    fn late_step(&self, late: &[&'a DataFile], file: &'a DataFile) -> Option<ChosenFiles<'a>> {
        let mut files: Vec<&DataFile> = vec![file];
        // Those that it overwrites, from the latest to the earliest, with those that they
        // overwrite.
        for earlier in late.iter().rev().skip_while(|earlier| earlier.path != file.path).skip(1) {
            if files.iter().any(|later| later.overlaps(earlier)) {
                files.push(earlier);
            }
        }
        let from = files.iter().map(|file| file.min_time).min()?;
        let behind = files.iter().map(|file| file.max_time).max()?.checked_add(1)?;
        let overlapped: Vec<&DataFile> =
            self.on_time().filter(|file| files.iter().any(|late| late.overlaps(file))).collect();
        files.extend(overlapped);
        if files.len() <= self.limit {
            return Some(ChosenFiles { files, cuts: vec![from, behind] });
        }
        Some(ChosenFiles { files: vec![file], cuts: vec![self.cut(file)?] })
    }

    /// Returns a time at which to part a late file, so that one of the parts overlaps fewer files
    /// than may be open.
    fn cut(&self, late: &DataFile) -> Option<i64> {
        let overlapped: Vec<&DataFile> = self.on_time().filter(|file| file.overlaps(late)).collect();
        let mut starts: Vec<i64> = overlapped.iter().map(|file| file.min_time).collect();
        starts.sort_unstable();
        let one_too_many = starts.get(self.limit - 1).copied()?;
        if one_too_many > late.min_time {
            return Some(one_too_many);
        }
        // Too many from its beginning on: up to where there are fewer it stays as it is.
        let open_at =
            |time: i64| overlapped.iter().filter(|file| file.min_time <= time && time <= file.max_time).count();
        let ends = overlapped.iter().map(|file| file.max_time).filter(|end| *end < late.max_time);
        ends.map(|end| end + 1).filter(|time| open_at(*time) < self.limit).min()
    }

    /// Late files that overlap each other and of which none can be cut: one of them is better than
    /// many.
    fn merge_of_stuck(&self, late: &[&'a DataFile]) -> Option<ChosenFiles<'a>> {
        late.iter().enumerate().find_map(|(index, first)| {
            let others = late.iter().skip(index + 1).take_while(|file| file.overlaps(first)).copied();
            let files: Vec<&DataFile> = std::iter::once(*first).chain(others).take(self.limit).collect();
            (files.len() > 1).then(|| files.into())
        })
    }

    /// Files of about the same size, once there are enough of them.
    fn merge_of_equals(&self) -> Option<Vec<&'a DataFile>> {
        let mut tiers: BTreeMap<u32, Vec<&DataFile>> = BTreeMap::new();
        for file in self.small() {
            tiers.entry(self.tier(file)).or_default().push(file);
        }
        match tiers.into_iter().find(|(tier, files)| files.len() >= self.enough(*tier)) {
            Some((_, mut files)) => {
                files.truncate(self.limit);
                self.take_late_along(&mut files);
                Some(files)
            }
            None => self.merge_of_late(self.settings.files.min(self.limit)),
        }
    }

    /// Adds the late files that overlap no file on time but those in `chosen`.
    fn take_late_along(&self, chosen: &mut Vec<&'a DataFile>) {
        let mut left: Vec<&DataFile> = Vec::new();
        for late in by_version(self.files) {
            let is_chosen = |file: &DataFile| chosen.iter().any(|chosen| chosen.path == file.path);
            let fits = self.on_time().all(|file| !file.overlaps(late) || is_chosen(file))
                && !left.iter().any(|earlier| earlier.overlaps(late));
            if fits && chosen.len() < self.limit {
                chosen.push(late);
            } else {
                left.push(late);
            }
        }
    }

    /// Late files into what they overlap, if they are enough to be worth it, and else into each
    /// other.
    fn merge_of_late(&self, enough: usize) -> Option<Vec<&'a DataFile>> {
        let late = by_version(self.files);
        if late.len() < enough {
            return None;
        }
        let mut all: Vec<&DataFile> =
            self.on_time().filter(|file| late.iter().any(|late| late.overlaps(file))).collect();
        let rows = |files: &[&DataFile]| files.iter().map(|file| file.rows).sum::<u64>();
        let is_worth_it = rows(&all) <= rows(&late).saturating_mul(self.settings.files as u64);
        if is_worth_it && all.len() + late.len() <= self.limit {
            all.extend(late);
            return Some(all);
        }
        let largest = late.iter().map(|file| self.tier(file)).max().unwrap_or(0);
        let run_of = |tier: u32| {
            let mut runs = late.split(move |file| self.tier(file) > tier);
            runs.find(|run| run.len() >= enough)
        };
        let run = (0..=largest).find_map(run_of)?;
        Some(run.iter().copied().take(self.limit).collect())
    }

    fn on_time(&self) -> impl Iterator<Item = &'a DataFile> + use<'a> {
        self.files.iter().map(Arc::as_ref).filter(|file| !file.late)
    }

    /// Files on time that are worth merging because of their size or place, oldest first.
    fn small(&self) -> Vec<&'a DataFile> {
        let is_small =
            |file: &&DataFile| file.bytes < self.settings.target_bytes.div_ceil(2) || file.packed().is_some();
        let mut small: Vec<&DataFile> = self.on_time().filter(is_small).collect();
        // In order of time alone, rows of a merged file lie as they did in its inputs: one after
        // the other.
        let gains_nothing =
            |file: &DataFile| !self.has_primary_key && file.rows >= LARGE_ROWS && file.packed().is_none();
        if small.iter().filter(|file| gains_nothing(file)).count() <= MAX_LEFT_ALONE {
            small.retain(|file| !gains_nothing(file));
        }
        small.sort_by_key(|file| file.min_time);
        small
    }

    /// Rows rather than bytes: a file of few rows is mostly footer.
    fn tier(&self, file: &DataFile) -> u32 {
        let files = self.settings.files.max(2) as u64;
        match file.rows / LARGE_ROWS {
            0 => file.rows.max(1).ilog(files),
            times => LARGE_ROWS.ilog(files) + 1 + times.ilog(files * LARGE_FACTOR as u64),
        }
    }

    /// Returns how many files of a tier are merged at a time.
    fn enough(&self, tier: u32) -> usize {
        let is_large = tier > LARGE_ROWS.ilog(self.settings.files.max(2) as u64);
        let files = if is_large { self.settings.files * LARGE_FACTOR } else { self.settings.files };
        files.min(self.limit)
    }
}

/// Returns whether a slice of which some files are known takes the next one. A single file with
/// half of what is enough is left alone: it is a slice of before, or as good as one.
fn takes(slice: &[&DataFile], next: &DataFile, enough: u64) -> bool {
    let rows: u64 = slice.iter().map(|file| file.rows).sum();
    let start = slice.iter().map(|file| file.min_time).min().unwrap_or(i64::MAX);
    let end = slice.iter().map(|file| file.max_time).max().unwrap_or(i64::MIN);
    let has_enough = rows >= if slice.len() == 1 { enough / 2 } else { enough };
    !has_enough || next.min_time < start.midpoint(end)
}

#[cfg(test)]
mod tests;
