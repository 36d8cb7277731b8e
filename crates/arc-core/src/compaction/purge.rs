//! Which files are rewritten only because of deletes: a pure function of what the manifest says.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    order::{Output, output},
    plan::{Task, is_sorted},
};
use crate::{
    Tombstone,
    catalog::TableSchema,
    datafile::{DataFile, PartitionDay},
};

/// Returns tasks that carry deletes out, at most one for each partition; there may be more to do once they are done.
///
/// All files of a partition of which nothing is left go together, whatever their order, for nothing is merged. Others are
/// rewritten one by one, which keeps each in its place among the others.
pub(crate) fn purge(schema: &TableSchema, files: &[Arc<DataFile>], tombstones: &[Arc<Tombstone>]) -> Vec<Task> {
    if tombstones.is_empty() {
        return Vec::new();
    }
    let mut partitions: BTreeMap<PartitionDay, Vec<&Arc<DataFile>>> = BTreeMap::new();
    for file in files {
        partitions.entry(file.day()).or_default().push(file);
    }
    partitions.into_iter().filter_map(|(day, files)| task(schema, day, &files, tombstones)).collect()
}

fn task(
    schema: &TableSchema,
    day: PartitionDay,
    files: &[&Arc<DataFile>],
    tombstones: &[Arc<Tombstone>],
) -> Option<Task> {
    let is_empty = |file: &&&Arc<DataFile>| tombstones.iter().any(|tombstone| tombstone.takes_all_of(file));
    let empty: Vec<Arc<DataFile>> = files.iter().filter(is_empty).map(|file| Arc::clone(file)).collect();
    if !empty.is_empty() {
        return Some(Task { day, files: empty, output: Output::OnTime, may_drop_old: false });
    }
    let is_touched = |file: &&&Arc<DataFile>| {
        is_sorted(schema, file) && tombstones.iter().any(|tombstone| tombstone.applies_to(file))
    };
    let file = files.iter().find(is_touched)?;
    let partition: Vec<Arc<DataFile>> = files.iter().map(|file| Arc::clone(file)).collect();
    let output = output(&partition, |other| other.path == file.path)?;
    Some(Task { day, files: vec![Arc::clone(file)], output, may_drop_old: false })
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::fake::{DAY_NS, file, late, table},
        *,
    };
    use crate::{Comparison, Literal, Predicate, SequenceNumber, catalog::TIME_COLUMN};

    fn before(seq: u64, time_ns: i64) -> Arc<Tombstone> {
        let predicate = Predicate::compare(TIME_COLUMN, Comparison::Less, Literal::Time(time_ns));
        Arc::new(Tombstone { seq: SequenceNumber(seq), predicate })
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
        type Expected<'a> = &'a [(&'a [&'a str], Output)];
        let cases: [(Vec<Arc<Tombstone>>, Expected<'_>); 6] = [
            (vec![], &[]),
            (vec![before(5, 0)], &[]),
            (vec![before(5, 5)], &[(&["a", "b"], Output::OnTime)]),
            (vec![before(5, 3)], &[(&["a"], Output::OnTime)]),
            (vec![before(3, 3)], &[(&["a"], Output::OnTime)]),
            (vec![before(2, 3), before(3, DAY_NS + 1)], &[(&["a", "b"], Output::OnTime), (&["d"], Output::OnTime)]),
        ];
        for (tombstones, expected) in cases {
            let tasks = purge(&table(), &files, &tombstones);
            let paths = |task: &Task| task.files.iter().map(|file| file.path.clone()).collect::<Vec<_>>();
            let found: Vec<_> = tasks.iter().map(|task| (paths(task), task.output)).collect();
            let expected: Vec<_> = expected
                .iter()
                .map(|(paths, output)| (paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>(), *output))
                .collect();
            assert_eq!(found, expected, "{tombstones:?}");
        }
    }
}
