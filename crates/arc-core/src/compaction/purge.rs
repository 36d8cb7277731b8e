//! Which files are rewritten only because of deletes: a pure function of what the manifest says.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    order::MergeOutput,
    plan::{MergeTask, is_sorted},
};
use crate::{
    Tombstone,
    model::{DataFile, PartitionDay, TableSchema},
};

/// Files that one commit replaces, at most: what is written before it is for nothing if the process
/// dies.
const MAX_FILES: usize = 64;

/// Returns tasks that carry deletes out.
///
/// All files of a partition of which nothing is left go together, whatever their order, for nothing
/// is merged. Others are rewritten one by one, which keeps each in its place among the others; so
/// any number of them may be committed at once.
pub(crate) fn purge(schema: &TableSchema, files: &[Arc<DataFile>], tombstones: &[Arc<Tombstone>]) -> Vec<MergeTask> {
    if tombstones.is_empty() {
        return Vec::new();
    }
    let mut partitions: BTreeMap<PartitionDay, Vec<&Arc<DataFile>>> = BTreeMap::new();
    for file in files {
        partitions.entry(file.day()).or_default().push(file);
    }
    partitions.into_iter().flat_map(|(day, files)| tasks(schema, day, &files, tombstones)).collect()
}

/// Parts tasks into those that one commit takes: a limited number of files, and of bytes if it is
/// more than one task.
pub(crate) fn batches(tasks: Vec<MergeTask>, max_bytes: u64) -> Vec<Vec<MergeTask>> {
    let mut batches: Vec<Vec<MergeTask>> = Vec::new();
    let (mut files, mut bytes) = (0, 0);
    for task in tasks {
        files += task.files.len();
        bytes += task.files.iter().map(|file| file.bytes).sum::<u64>();
        match batches.last_mut() {
            Some(batch) if files <= MAX_FILES && bytes <= max_bytes => batch.push(task),
            _ => {
                files = task.files.len();
                bytes = task.files.iter().map(|file| file.bytes).sum();
                batches.push(vec![task]);
            }
        }
    }
    batches
}

fn tasks(
    schema: &TableSchema,
    day: PartitionDay,
    files: &[&Arc<DataFile>],
    tombstones: &[Arc<Tombstone>],
) -> Vec<MergeTask> {
    let is_empty = |file: &&&Arc<DataFile>| tombstones.iter().any(|tombstone| tombstone.takes_all_of(file));
    let empty: Vec<Arc<DataFile>> = files.iter().filter(is_empty).map(|file| Arc::clone(file)).collect();
    let is_touched = |file: &&&Arc<DataFile>| {
        !is_empty(file) && is_sorted(schema, file) && tombstones.iter().any(|tombstone| tombstone.applies_to(file))
    };
    let partition: Vec<Arc<DataFile>> = files.iter().map(|file| Arc::clone(file)).collect();
    let rewrite = |file: &&Arc<DataFile>| MergeTask::of(&partition, |other| other.path == file.path);
    let rewritten: Vec<MergeTask> = files.iter().filter(is_touched).filter_map(rewrite).collect();
    let gone = MergeTask {
        day,
        files: empty,
        output: MergeOutput::OnTime,
        cuts: Vec::new(),
        may_drop_old: false,
        is_last: false,
    };
    Some(gone).filter(|gone| !gone.files.is_empty()).into_iter().chain(rewritten).collect()
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::fake::{DAY_NS, file, late, table},
        *,
    };
    use crate::{Comparison, Literal, Predicate, SequenceNumber, model::TIME_COLUMN};

    fn before(seq: u64, time_ns: i64) -> Arc<Tombstone> {
        let predicate = Predicate::compare(TIME_COLUMN, Comparison::Less, Literal::Time(time_ns));
        Arc::new(Tombstone { seq: SequenceNumber(seq), predicate })
    }

    #[test]
    fn a_commit_takes_many_files_and_not_all() {
        let task = |files: usize, bytes: u64| {
            let file = |n| Arc::new(DataFile { bytes, ..DataFile::clone(&file(&format!("{n}"), 0..=1, 1..=1)) });
            MergeTask {
                day: file(0).day(),
                files: (0..files).map(file).collect(),
                output: MergeOutput::OnTime,
                cuts: Vec::new(),
                may_drop_old: false,
                is_last: false,
            }
        };
        type Case<'a> = (&'a [(usize, u64)], &'a [usize]);
        let cases: [Case<'_>; 5] = [
            (&[], &[]),
            (&[(1, 1); 64], &[64]),
            (&[(1, 1); 130], &[64, 64, 2]),
            (&[(100, 1), (1, 1), (1, 1)], &[1, 2]),
            (&[(1, 60), (1, 40), (1, 1), (1, 500), (1, 1)], &[2, 1, 1, 1]),
        ];
        for (tasks, expected) in cases {
            let made = batches(tasks.iter().map(|(files, bytes)| task(*files, *bytes)).collect(), 100);
            assert_eq!(made.iter().map(Vec::len).collect::<Vec<_>>(), expected, "{tasks:?}");
        }
    }

    #[test]
    fn what_is_gone_goes_at_once_and_the_rest_file_by_file() {
        let done = Arc::new(DataFile { deleted_seq: 5, ..DataFile::clone(&file("done", 0..=9, 1..=1)) });
        let files = [
            file("a", 0..=4, 1..=1),
            late("b", 0..=4, 2..=2),
            file("c", 2..=9, 3..=3),
            file("after", 0..=9, 4..=5),
            done,
            late("d", DAY_NS..=DAY_NS + 9, 1..=1),
        ];
        type Expected<'a> = &'a [(&'a [&'a str], MergeOutput)];
        let cases: [(Vec<Arc<Tombstone>>, Expected<'_>); 6] = [
            (vec![], &[]),
            (vec![before(5, 0)], &[]),
            (vec![before(5, 5)], &[(&["a", "b"], MergeOutput::OnTime), (&["c"], MergeOutput::OnTime)]),
            (
                vec![before(5, 3)],
                &[(&["a"], MergeOutput::OnTime), (&["b"], MergeOutput::Late), (&["c"], MergeOutput::OnTime)],
            ),
            (vec![before(3, 3)], &[(&["a"], MergeOutput::OnTime), (&["b"], MergeOutput::Late)]),
            (
                vec![before(2, 3), before(3, DAY_NS + 1)],
                &[(&["a", "b"], MergeOutput::OnTime), (&["d"], MergeOutput::OnTime)],
            ),
        ];
        for (tombstones, expected) in cases {
            let tasks = purge(&table(), &files, &tombstones);
            let paths = |task: &MergeTask| task.files.iter().map(|file| file.path.clone()).collect::<Vec<_>>();
            let found: Vec<_> = tasks.iter().map(|task| (paths(task), task.output)).collect();
            let expected: Vec<_> = expected
                .iter()
                .map(|(paths, output)| (paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>(), *output))
                .collect();
            assert_eq!(found, expected, "{tombstones:?}");
        }
    }
}
