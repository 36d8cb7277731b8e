//! The rules of overwriting: which files of a partition may be merged, and what comes out.

use std::sync::Arc;

use crate::model::DataFile;

/// What a merge of files makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MergeOutput {
    /// Files whose rows are unique by primary key among all files on time.
    OnTime,
    /// A file whose rows overwrite those of files on time and of earlier late files.
    Late,
}

/// Returns what a merge of the `chosen` files of a partition makes, or `None` where it would change
/// which row wins.
///
/// `partition` has all live files of one table and day. The module's documentation has the reasons.
pub(crate) fn output(partition: &[Arc<DataFile>], chosen: impl Fn(&DataFile) -> bool) -> Option<MergeOutput> {
    let late = by_version(partition);
    let chosen_late: Vec<&DataFile> = late.iter().copied().filter(|file| chosen(file)).collect();
    let mut on_time = partition.iter().map(Arc::as_ref).filter(|file| !file.late);
    if chosen_late.is_empty() {
        return on_time.any(&chosen).then_some(MergeOutput::OnTime);
    }
    let is_complete = on_time.clone().all(|file| chosen(file) || !chosen_late.iter().any(|late| late.overlaps(file)));
    if is_complete && !skips_a_version(&late, &chosen) {
        return Some(MergeOutput::OnTime);
    }
    let is_plain = !on_time.any(&chosen) && keeps_its_place(&late, &chosen);
    is_plain.then_some(MergeOutput::Late)
}

/// Returns the late files of a partition, each overwriting those before it.
pub(super) fn by_version(partition: &[Arc<DataFile>]) -> Vec<&DataFile> {
    let mut late: Vec<&DataFile> = partition.iter().map(Arc::as_ref).filter(|file| file.late).collect();
    late.sort_by_key(|file| file.version());
    late
}

/// Returns whether a late file that stays outside is overwritten by one that is chosen.
fn skips_a_version(late: &[&DataFile], chosen: &impl Fn(&DataFile) -> bool) -> bool {
    let mut skipped: Vec<&DataFile> = Vec::new();
    for file in late {
        if !chosen(file) {
            skipped.push(file);
        } else if skipped.iter().any(|earlier| earlier.overlaps(file)) {
            return true;
        }
    }
    false
}

/// Returns whether every other late file that may share a row with the chosen ones stands before
/// all of them or after all of them, and so before or after their merge.
fn keeps_its_place(late: &[&DataFile], chosen: &impl Fn(&DataFile) -> bool) -> bool {
    let (run, others): (Vec<&DataFile>, Vec<&DataFile>) = late.iter().partition(|file| chosen(file));
    let (Some(first), Some(last)) = (run.first(), run.last()) else { return false };
    let merged = (last.max_seq, run.iter().map(|file| file.min_seq).min().unwrap_or(last.min_seq));
    let from = run.iter().map(|file| file.min_time).min().unwrap_or(i64::MIN);
    let to = run.iter().map(|file| file.max_time).max().unwrap_or(i64::MAX);
    let mut near = others.into_iter().filter(|other| other.min_time <= to && other.max_time >= from);
    near.all(|other| {
        let version = other.version();
        (version < first.version() && version < merged) || (version > last.version() && version > merged)
    })
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::fake::{file, late},
        *,
    };

    /// Asks for a merge of the files with these paths.
    fn merged(partition: &[Arc<DataFile>], paths: &[&str]) -> Option<MergeOutput> {
        output(partition, |file| paths.contains(&file.path.as_str()))
    }

    #[test]
    fn a_merge_keeps_which_row_wins_or_is_refused() {
        // Name, first and last time, first and last sequence number.
        let partition = [
            file("a", 0..=9, 1..=1),
            file("b", 10..=19, 2..=2),
            late("l1", 5..=8, 2..=2),
            file("c", 20..=29, 3..=3),
            late("l2", 7..=12, 3..=3),
            late("l3", 40..=50, 4..=4),
        ];
        let cases: [(&[&str], Option<MergeOutput>); 16] = [
            (&[], None),
            (&["a"], Some(MergeOutput::OnTime)),
            (&["a", "c"], Some(MergeOutput::OnTime)),
            (&["a", "l1"], Some(MergeOutput::OnTime)),
            (&["a", "c", "l1"], Some(MergeOutput::OnTime)),
            // a is missing: its rows of l1's primary keys would be on time twice.
            (&["b", "l1"], None),
            (&["c", "l1"], None),
            // l1 would overwrite what l2 has overwritten.
            (&["a", "b", "l2"], None),
            (&["a", "b", "l1", "l2"], Some(MergeOutput::OnTime)),
            (&["a", "l1", "l2"], None),
            (&["l1"], Some(MergeOutput::Late)),
            (&["l1", "l2"], Some(MergeOutput::Late)),
            (&["l2", "l3"], Some(MergeOutput::Late)),
            (&["l1", "l3"], None),
            // Nothing of l1 lies between them.
            (&["l1", "l2", "l3"], Some(MergeOutput::Late)),
            // Nothing overlaps it.
            (&["l3"], Some(MergeOutput::OnTime)),
        ];
        for (paths, expected) in cases {
            assert_eq!(merged(&partition, paths), expected, "{paths:?}");
        }
    }

    #[test]
    fn late_files_of_one_version_are_not_torn_apart() {
        let on_time = file("a", 0..=9, 1..=5);
        let tied = |path| late(path, 0..=9, 5..=5);
        let partition = [on_time, tied("l1"), tied("l2"), tied("l3")];
        for paths in [&["l1", "l2"][..], &["l2", "l3"], &["l2"]] {
            assert_eq!(merged(&partition, paths), None, "{paths:?}");
        }
        assert_eq!(merged(&partition, &["l1", "l2", "l3"]), Some(MergeOutput::Late));
        assert_eq!(merged(&partition, &["a", "l1"]), Some(MergeOutput::OnTime));
    }

    #[test]
    fn late_files_that_share_no_time_have_no_order() {
        let on_time = file("a", 0..=99, 1..=5);
        let partition = [on_time, late("l1", 0..=9, 5..=5), late("l2", 10..=19, 5..=5), late("l3", 0..=9, 6..=6)];
        assert_eq!(merged(&partition, &["l2"]), Some(MergeOutput::Late));
        assert_eq!(merged(&partition, &["l1", "l3"]), Some(MergeOutput::Late));
        // Their merge would begin before l2 ends.
        let between = [&partition[..], &[late("l4", 15..=29, 7..=7)]].concat();
        assert_eq!(merged(&between, &["l1", "l4"]), None);
    }
}
