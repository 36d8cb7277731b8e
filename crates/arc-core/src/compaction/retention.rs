//! Which files are past their time: a pure function of what the manifest says.

use std::{collections::BTreeMap, sync::Arc};

use crate::model::{DataFile, PartitionDay};

/// Returns the files of one table that may go, of those that are past their time, every row of them.
///
/// In a partition with late files all files go together, or none: without its late file a file on
/// time would show values that were overwritten, and without the file on time a late one would show
/// parts of rows.
pub(crate) fn expired(files: &[Arc<DataFile>], is_expired: impl Fn(&DataFile) -> bool) -> Vec<Arc<DataFile>> {
    let mut partitions: BTreeMap<PartitionDay, Vec<&Arc<DataFile>>> = BTreeMap::new();
    for file in files {
        partitions.entry(file.day()).or_default().push(file);
    }
    let may_go =
        |files: &Vec<&Arc<DataFile>>| files.iter().all(|file| !file.late) || files.iter().all(|file| is_expired(file));
    let partitions = partitions.into_values().filter(may_go).flatten();
    partitions.filter(|file| is_expired(file)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::fake::{DAY_NS, file, late},
        *,
    };

    #[test]
    fn whole_files_go_and_with_late_ones_whole_partitions() {
        let next_day = |path, first: i64, last: i64| file(path, DAY_NS + first..=DAY_NS + last, 9..=9);
        let plain = [file("a", 0..=9, 1..=1), file("b", 5..=20, 2..=2), next_day("c", 0, 5)];
        let with_late = [file("a", 0..=9, 1..=1), late("l", 0..=20, 2..=2), next_day("c", 0, 5)];
        let cases = [
            (&plain, 9, &[][..]),
            (&plain, 10, &["a"]),
            (&plain, 21, &["a", "b"]),
            (&plain, i64::MIN, &[]),
            (&plain, i64::MAX, &["a", "b", "c"]),
            (&with_late, 10, &[]),
            (&with_late, 20, &[]),
            (&with_late, 21, &["a", "l"]),
        ];
        for (files, from_ns, expected) in cases {
            let gone = expired(files, |file| file.max_time < from_ns);
            assert_eq!(gone.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), expected, "{from_ns}");
        }
    }
}
