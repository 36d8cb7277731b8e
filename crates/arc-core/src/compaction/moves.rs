//! Which files take part where one is to get another place: a pure function of what the manifest
//! says.

use std::{collections::BTreeMap, sync::Arc};

use super::plan::MergeTask;
use crate::{
    defects::{Defect, is_on},
    model::{DataFile, PartitionDay},
};

/// Returns tasks that give the `wanted` files of a table another place.
///
/// A task of one file is the file as it is. Late files that it must not leave alone are merged with
/// it. No file is in two tasks.
pub(crate) fn moves(files: &[Arc<DataFile>], wanted: impl Fn(&DataFile) -> bool) -> Vec<MergeTask> {
    if !files.iter().any(|file| wanted(file)) {
        return Vec::new();
    }
    let mut partitions: BTreeMap<PartitionDay, Vec<Arc<DataFile>>> = BTreeMap::new();
    for file in files {
        partitions.entry(file.day()).or_default().push(Arc::clone(file));
    }
    let mut tasks: Vec<MergeTask> = Vec::new();
    for partition in partitions.values() {
        for file in partition.iter().filter(|file| wanted(file)) {
            let is_of_version = |other: &DataFile| other.late && other.version() == file.version();
            let task = if moves_alone(partition, file) {
                MergeTask::of(partition, |other| other.path == file.path)
            } else {
                MergeTask::of(partition, is_of_version)
            };
            let is_new = |task: &MergeTask| !tasks.iter().rev().any(|known| known.files == task.files);
            tasks.extend(task.filter(|task| task.files.len() == 1 || is_new(task)));
        }
    }
    tasks
}

/// Returns whether a file of a partition may move to the end of its table's list as it is.
///
/// Late files of one version overwrite each other in the order of that list. Without a log between
/// them, all late files of an engine are of one version.
pub(crate) fn moves_alone(partition: &[Arc<DataFile>], file: &DataFile) -> bool {
    let is_tied = |other: &DataFile| other.late && other.version() == file.version() && other.path != file.path;
    let is_tied = file.late && partition.iter().any(|other| is_tied(other));
    !is_tied
        || (is_on(Defect::TiedFilesMoveAlone) && MergeTask::of(partition, |other| other.path == file.path).is_some())
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            order::MergeOutput,
            tests::fake::{DAY_NS, file, late},
        },
        *,
    };

    #[test]
    fn a_file_moves_alone_unless_its_place_among_others_says_which_row_wins() {
        let files = [
            file("a", 0..=9, 1..=1),
            late("l1", 5..=8, 5..=5),
            file("b", DAY_NS..=DAY_NS, 2..=2),
            late("l2", 5..=8, 5..=5),
            late("l3", 5..=8, 5..=5),
            late("l4", 5..=8, 6..=6),
        ];
        type Case<'a> = (&'a [&'a str], &'a [&'a [&'a str]]);
        let cases: [Case<'_>; 6] = [
            (&[], &[]),
            (&["a", "b"], &[&["a"], &["b"]]),
            (&["l4"], &[&["l4"]]),
            (&["l1"], &[&["l1", "l2", "l3"]]),
            (&["l2"], &[&["l1", "l2", "l3"]]),
            (&["a", "b", "l1", "l2", "l4"], &[&["a"], &["l1", "l2", "l3"], &["l4"], &["b"]]),
        ];
        for (wanted, expected) in cases {
            let tasks = moves(&files, |file| wanted.contains(&file.path.as_str()));
            let found: Vec<Vec<&str>> =
                tasks.iter().map(|task| task.files.iter().map(|file| file.path.as_str()).collect()).collect();
            assert_eq!(found, expected, "{wanted:?}");
            for task in tasks {
                assert_eq!(task.output == MergeOutput::Late, task.files[0].late, "{wanted:?}");
            }
        }
    }

    #[test]
    fn late_files_of_one_version_move_together_also_where_no_file_on_time_is_below_them() {
        let tied = [late("l1", 5..=8, 5..=5), late("l2", 5..=8, 5..=5), late("l3", 20..=29, 5..=5)];
        for wanted in [&["l1"][..], &["l2"], &["l1", "l2"], &["l1", "l2", "l3"], &["l3"]] {
            let tasks = moves(&tied, |file| wanted.contains(&file.path.as_str()));
            let found: Vec<_> = tasks.iter().map(|task| task.files.as_slice()).collect();
            assert_eq!(found, [tied.as_slice()], "{wanted:?}");
        }
        let [alone, ..] = &tied;
        assert_eq!(moves(&tied[..1], |_| true)[0].files, [Arc::clone(alone)]);
    }
}
