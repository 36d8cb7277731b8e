//! Data files through the mount: as a folder shows them, in one put and in parts.

use object_store::{ObjectStore, memory::InMemory};

use super::*;
use crate::{
    store::{ObjectStorage, OpenStorage, StoreOptions},
    vfs::CrashFs,
};

const FILE: &str = "root/data/d%20b/t/day=1970-01-01/x.parquet";

fn mount(store: &Arc<dyn ObjectStore>, local: Arc<dyn Vfs>, root: &str, part_bytes: u64) -> Arc<dyn Vfs> {
    let options = StoreOptions { part_bytes, tries: 2, first_pause: std::time::Duration::ZERO, ..Default::default() };
    let storage = ObjectStorage::new(Arc::clone(store), "pre/fix").options(options);
    OpenStorage::new(storage).unwrap().mount(local, Path::new(root))
}

/// Writes a file as a data file is written: in pieces, under a temporary name.
fn write(vfs: &dyn Vfs, path: &str, bytes: &[u8]) {
    let (path, temporary) = (Path::new(path), format!("{path}.tmp"));
    vfs.create_dir_all(path.parent().unwrap()).unwrap();
    let file = vfs.create_new(Path::new(&temporary)).unwrap();
    for (piece, offset) in bytes.chunks(1000).zip((0..).step_by(1000)) {
        file.write_all_at(&[piece], offset).unwrap();
    }
    file.sync_all().unwrap();
    vfs.rename(Path::new(&temporary), path).unwrap();
    vfs.sync_dir(path.parent().unwrap()).unwrap();
}

fn check_read(vfs: &dyn Vfs, path: &str, bytes: &[u8]) {
    let file = vfs.open_read(Path::new(path)).unwrap();
    assert_eq!(file.len().unwrap(), bytes.len() as u64);
    for (offset, len) in [(0, 10), (bytes.len() / 2, 3000), (bytes.len().saturating_sub(5), 50), (bytes.len() + 7, 1)] {
        let mut found = vec![0; len];
        let read = file.read_at(&mut found, offset as u64).unwrap();
        let expected = bytes.get(offset..(offset + len).min(bytes.len())).unwrap_or_default();
        assert!(found[..read] == *expected, "{len} bytes from {offset} on");
    }
    assert!(vfs.read(Path::new(path)).unwrap() == bytes);
}

fn content(len: usize) -> Vec<u8> {
    (0..=250).cycle().take(len).collect()
}

#[test]
fn files_of_any_size_come_back_and_leave_nothing_on_the_way() {
    for (len, part_bytes) in [(0, 4096), (1, 4096), (4096, 4096), (4097, 4096), (50_001, 4096), (50_001, 1 << 20)] {
        let (store, local): (Arc<dyn ObjectStore>, _) = (Arc::new(InMemory::new()), CrashFs::new());
        let vfs = mount(&store, Arc::new(local.clone()), "root", part_bytes);
        write(vfs.as_ref(), FILE, &content(len));
        check_read(vfs.as_ref(), FILE, &content(len));
        check_read(mount(&store, Arc::new(local.clone()), "root", 77).as_ref(), FILE, &content(len));
        let folder = |path: &str| vfs.list(Path::new(path)).unwrap();
        assert_eq!(folder("root/data/d%20b").iter().map(|e| (&*e.name, e.is_dir)).collect::<Vec<_>>(), [("t", true)]);
        let files = folder("root/data/d%20b/t/day=1970-01-01");
        assert_eq!(files.iter().map(|e| (&*e.name, e.len)).collect::<Vec<_>>(), [("x.parquet", len as u64)]);
        assert_eq!(vfs.list_below(Path::new("root/data")).unwrap().unwrap(), [PathBuf::from(FILE)]);
        vfs.remove_file(Path::new(FILE)).unwrap();
        assert_eq!(vfs.open_read(Path::new(FILE)).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(folder("root/data").is_empty());
        drop(vfs);
        assert!(local.list(Path::new("root/tmp/store")).unwrap().is_empty(), "{len} bytes");
    }
}

#[test]
fn an_object_is_never_replaced_and_never_written_in_place() {
    let (store, local): (Arc<dyn ObjectStore>, _) = (Arc::new(InMemory::new()), CrashFs::new());
    let vfs = mount(&store, Arc::new(local), "root", 4096);
    write(vfs.as_ref(), FILE, b"first");
    let other = Path::new("root/data/other.tmp");
    vfs.create_new(other).unwrap().write_all_at(&[b"other bytes"], 0).unwrap();
    assert_eq!(vfs.rename(other, Path::new(FILE)).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(vfs.create_new(Path::new(FILE)).unwrap_err().kind(), io::ErrorKind::Unsupported);
    assert_eq!(vfs.open(Path::new(FILE)).unwrap_err().kind(), io::ErrorKind::Unsupported);
    let link = vfs.hard_link(Path::new(FILE), Path::new("elsewhere/x.parquet"));
    assert_eq!(link.unwrap_err().kind(), io::ErrorKind::Unsupported);
    assert!(vfs.open_read(Path::new(FILE)).unwrap().write_all_at(&[b"x"], 0).is_err());
    assert_eq!(vfs.read(Path::new(FILE)).unwrap(), b"first");
    // What is not below `data` and `meta` is local.
    vfs.create_new(Path::new("root/data.x")).unwrap();
    assert!(vfs.list(Path::new("root")).unwrap().iter().any(|entry| entry.name == "data.x"));
}

#[cfg(feature = "object-store-aws")]
mod s3 {
    use super::*;
    use crate::vfs::RealVfs;

    /// Parts of the size that S3 allows, through its own client.
    #[test]
    #[ignore = "needs an S3 server; run scripts/s3"]
    fn a_file_in_parts_on_s3_comes_back() {
        let store = crate::store::test_bucket();
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_str().unwrap();
        let vfs = mount(&store, Arc::new(RealVfs), root, 5 << 20);
        let path = format!("{root}/data/d%20b/t%25/day=1970-01-01/x.parquet");
        write(vfs.as_ref(), &path, &content((12 << 20) + 77));
        check_read(vfs.as_ref(), &path, &content((12 << 20) + 77));
        assert_eq!(vfs.list_below(&Path::new(root).join("data")).unwrap().unwrap(), [PathBuf::from(&path)]);
        vfs.remove_file(Path::new(&path)).unwrap();
        assert!(vfs.open_read(Path::new(&path)).is_err());
    }
}

#[test]
fn parts_of_a_pack_that_lie_together_come_with_one_request_and_never_more_than_there_is() {
    const PACK: &str = "root/data/_packs/01ARZ3NDEKTSV4RRFFQ69G5FAV.pack";
    let (store, local): (Arc<dyn ObjectStore>, _) = (Arc::new(InMemory::new()), CrashFs::new());
    let vfs = mount(&store, Arc::new(local), "root", 1 << 20);
    let bytes = content(700_000);
    write(vfs.as_ref(), PACK, &bytes);
    let read = |vfs: &dyn Vfs, range: Range<u64>| {
        let file = vfs.open_range(Path::new(PACK), range).unwrap();
        let mut found = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
        assert_eq!(file.read_at(&mut found, 0).unwrap(), found.len());
        found
    };
    let whole = 0..700_000;
    let ranges = [0..1, 8..3_000, 3_000..262_144, 262_140..262_150, 600_000..700_000, 699_999..800_000, 10..600_000];
    for range in ranges.into_iter().chain([whole, 700_000..700_001, 2_000_000..3_000_000, 5..5]) {
        let at = |offset: u64| usize::try_from(offset).unwrap().min(bytes.len());
        assert!(read(vfs.as_ref(), range.clone()) == bytes[at(range.start)..at(range.end)], "{range:?}");
    }
    // What was fetched is asked for no more: the object may be gone.
    let key = "pre/fix/data/_packs/01ARZ3NDEKTSV4RRFFQ69G5FAV.pack";
    futures::executor::block_on(object_store::ObjectStoreExt::delete(store.as_ref(), &key.into())).unwrap();
    assert!(read(vfs.as_ref(), 100_000..100_500) == bytes[100_000..100_500]);
    let error = mount(&store, Arc::new(CrashFs::new()), "root", 77).open_range(Path::new(PACK), 0..1).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}
