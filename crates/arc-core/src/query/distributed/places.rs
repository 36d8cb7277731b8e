//! Which worker reads which data files.
//!
//! A file goes to the worker that ranks highest by the hash of both (rendezvous hashing): so each
//! worker reads the same files again and has them in its caches, and where one comes or goes, only
//! its files move. A worker that has its share already gives a file to the next in rank. Decides
//! about speed alone: whoever reads a file reads the same rows.

use std::{cmp::Reverse, sync::Arc};

use datafusion::{
    common::{Result, internal_datafusion_err},
    datasource::{
        listing::PartitionedFile,
        physical_plan::{FileGroup, FileScanConfigBuilder},
        source::DataSourceExec,
    },
    physical_plan::ExecutionPlan,
};
use url::Url;

use super::leaf::{SentScan, scanned};
use crate::model::packed;

/// A worker takes files until it has this many quarters of an equal share.
const QUARTERS: u64 = 5;

/// The scan of each worker that has any files, with the same number of partitions each.
pub(super) struct Placed {
    pub(super) workers: Arc<[Url]>,
    pub(super) scans: Vec<Arc<dyn ExecutionPlan>>,
}

/// Divides the files of a scan among `workers`; each reads its own in up to `partitions` at once.
pub(super) fn place(scan: &Arc<dyn ExecutionPlan>, workers: &[Url], partitions: usize) -> Result<Placed> {
    let shares = shares(files_of(scan)?, workers);
    let (workers, shares): (Vec<Url>, Vec<_>) =
        workers.iter().cloned().zip(shares).filter(|(_, share)| !share.is_empty()).unzip();
    let most = shares.iter().map(Vec::len).max().unwrap_or(0);
    let partitions = partitions.clamp(1, most.max(1));
    let workers: Arc<[Url]> = workers.into();
    let scans = shares.into_iter().map(|share| {
        let scan = with_files(scan, in_partitions(share, partitions))?;
        Ok(Arc::new(SentScan::new(scan, Arc::clone(&workers))) as _)
    });
    Ok(Placed { scans: scans.collect::<Result<_>>()?, workers })
}

/// Returns the bytes and the number of the files, or parts of such, that a scan reads.
pub(super) fn size(scan: &Arc<dyn ExecutionPlan>) -> Result<(u64, usize)> {
    let files = files_of(scan)?;
    Ok((files.iter().map(bytes).sum(), files.len()))
}

/// Returns the same scan of nothing.
pub(super) fn without_files(scan: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    with_files(scan, vec![FileGroup::new(Vec::new())])
}

fn files_of(scan: &Arc<dyn ExecutionPlan>) -> Result<Vec<PartitionedFile>> {
    let (config, _) = scanned(scan).ok_or_else(|| internal_datafusion_err!("a scan of something else"))?;
    Ok(config.file_groups.iter().flat_map(FileGroup::iter).cloned().collect())
}

fn with_files(scan: &Arc<dyn ExecutionPlan>, groups: Vec<FileGroup>) -> Result<Arc<dyn ExecutionPlan>> {
    let (config, _) = scanned(scan).ok_or_else(|| internal_datafusion_err!("a scan of something else"))?;
    let config = FileScanConfigBuilder::from(config.clone()).with_file_groups(groups).build();
    Ok(DataSourceExec::from_data_source(config))
}

/// Returns the bytes that are read of a file, if all of them are.
fn bytes(file: &PartitionedFile) -> u64 {
    match &file.range {
        Some(range) => u64::try_from(range.end.saturating_sub(range.start)).unwrap_or(0),
        None => file.object_meta.size,
    }
}

/// Returns the files of each worker.
fn shares(mut files: Vec<PartitionedFile>, workers: &[Url]) -> Vec<Vec<PartitionedFile>> {
    let mut shares: Vec<(u64, Vec<PartitionedFile>)> = workers.iter().map(|_| (0, Vec::new())).collect();
    let total: u64 = files.iter().map(bytes).sum();
    let most = total / (workers.len() as u64).max(1) / 4 * QUARTERS;
    // Large ones first: small ones fill what is left. Equal ones in the order of their paths.
    files.sort_by(|a, b| {
        let key = |file: &PartitionedFile| (Reverse(bytes(file)), file.range.as_ref().map(|range| range.start));
        key(a).cmp(&key(b)).then_with(|| a.object_meta.location.cmp(&b.object_meta.location))
    });
    for file in files {
        let path = file.object_meta.location.as_ref();
        // Parts of a pack are read together.
        let object = packed(path).map_or(path, |(pack, _)| pack);
        let mut ranks: Vec<usize> = (0..workers.len()).collect();
        ranks.sort_by_key(|index| Reverse(workers.get(*index).map(|worker| rank(worker.as_str(), object))));
        let has_room =
            |index: &&usize| shares.get(**index).is_some_and(|(held, _)| *held == 0 || held + bytes(&file) <= most);
        let chosen = ranks.iter().find(has_room).or(ranks.first()).copied().unwrap_or(0);
        if let Some((held, share)) = shares.get_mut(chosen) {
            *held += bytes(&file);
            share.push(file);
        }
    }
    shares.into_iter().map(|(_, share)| share).collect()
}

/// Returns the rank of a worker for an object, the same on each node and in each build: FNV-1a,
/// whose bits are mixed as MurmurHash3 does at its end.
fn rank(worker: &str, object: &str) -> u64 {
    let bytes = worker.bytes().chain([0]).chain(object.bytes());
    let hash = bytes
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// Returns the files in as many partitions, some of which may be empty.
fn in_partitions(files: Vec<PartitionedFile>, partitions: usize) -> Vec<FileGroup> {
    let mut groups: Vec<(u64, Vec<PartitionedFile>)> = (0..partitions).map(|_| (0, Vec::new())).collect();
    for file in files {
        if let Some((held, group)) = groups.iter_mut().min_by_key(|(held, _)| *held) {
            *held += bytes(&file).max(1);
            group.push(file);
        }
    }
    groups.into_iter().map(|(_, files)| FileGroup::new(files)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, size: u64) -> PartitionedFile {
        PartitionedFile::new(path, size)
    }

    fn workers(count: usize) -> Vec<Url> {
        (0..count).map(|n| Url::parse(&format!("http://node-{n}:8086")).unwrap()).collect()
    }

    fn paths(shares: &[Vec<PartitionedFile>]) -> Vec<Vec<String>> {
        let path = |file: &PartitionedFile| file.object_meta.location.to_string();
        shares.iter().map(|share| share.iter().map(path).collect()).collect()
    }

    #[test]
    fn each_file_is_read_once_and_no_worker_reads_much_more_than_its_share() {
        let files: Vec<_> = (0..300).map(|n| file(&format!("data/d/t/{n}.parquet"), 1_000 + n)).collect();
        for count in 1..6 {
            let shares = shares(files.clone(), &workers(count));
            let mut all = paths(&shares).concat();
            all.sort_unstable();
            let mut expected: Vec<_> = files.iter().map(|file| file.object_meta.location.to_string()).collect();
            expected.sort_unstable();
            assert_eq!(all, expected);
            let total: u64 = files.iter().map(bytes).sum();
            for share in &shares {
                let held: u64 = share.iter().map(bytes).sum();
                assert!(held <= total / count as u64 * QUARTERS / 4 + 1_300, "{held} of {total} with {count}");
                assert!(held >= total / count as u64 / 3, "{held} of {total} with {count}");
            }
        }
    }

    #[test]
    fn a_file_stays_where_it_is_when_a_worker_comes() {
        let files: Vec<_> = (0..400).map(|n| file(&format!("data/d/t/{n}.parquet"), 1_000)).collect();
        let (before, after) = (paths(&shares(files.clone(), &workers(3))), paths(&shares(files, &workers(4))));
        let stayed: usize = before
            .iter()
            .zip(&after)
            .map(|(before, after)| before.iter().filter(|path| after.contains(path)).count())
            .sum();
        assert!(stayed > 240, "{stayed} of 400");
    }

    #[test]
    fn files_of_one_pack_are_read_by_one_worker() {
        let pack = "data/_packs/01ARZ3NDEKTSV4RRFFQ69G5FAV.pack";
        let files: Vec<_> = (0..4)
            .map(|n| file(&format!("{pack}/{}-10.parquet", n * 10), 10))
            .chain([file("data/d/t/a.parquet", 500), file("data/d/t/b.parquet", 500), file("data/d/t/c.parquet", 500)])
            .collect();
        let shares = paths(&shares(files, &workers(3)));
        let holders = shares.iter().filter(|share| share.iter().any(|path| path.starts_with(pack))).count();
        assert_eq!(holders, 1, "{shares:?}");
    }
}
