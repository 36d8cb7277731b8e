//! What a durable folder promises: `object_store`'s own rules, and that nothing acknowledged goes
//! with the power.

use futures::executor::block_on;
use object_store::{GetRange, ObjectStoreExt, PutMode, local::LocalFileSystem};

use super::*;
use crate::vfs::{CrashFs, Fault, FaultFs, Operation, RealVfs};

fn at(path: &str) -> StorePath {
    StorePath::parse(path).unwrap()
}

fn create() -> PutOptions {
    PutMode::Create.into()
}

/// What can be seen of a store after the same calls.
fn script(store: &dyn ObjectStore) -> Vec<String> {
    let mut seen = Vec::new();
    let mut see = |what: &str, result: Result<String>| {
        let result = result.map_err(|error| match error {
            StoreError::NotFound { .. } => "not found".to_owned(),
            StoreError::AlreadyExists { .. } => "exists".to_owned(),
            _ => "failed".to_owned(),
        });
        seen.push(format!("{what}: {result:?}"));
    };
    let text = |bytes: Bytes| String::from_utf8_lossy(&bytes).into_owned();
    block_on(async {
        for (path, bytes) in [("a", "first"), ("d/e/f", "0123456789"), ("d/g", "second"), ("d.x/h", ""), ("a", "again")]
        {
            see(path, store.put(&at(path), bytes.into()).await.map(|_| String::new()));
        }
        see("create new", store.put_opts(&at("n/new"), "new".into(), create()).await.map(|_| String::new()));
        see("create old", store.put_opts(&at("a"), "other".into(), create()).await.map(|_| String::new()));
        for path in ["a", "d/e/f", "d.x/h", "d/e", "none", "d/none"] {
            let got = async { store.get(&at(path)).await?.bytes().await };
            see(path, got.await.map(text));
            see(path, store.head(&at(path)).await.map(|meta| format!("{} {}", meta.location, meta.size)));
        }
        for range in [0..1, 3..7, 8..20, 0..10] {
            see(&format!("{range:?}"), store.get_range(&at("d/e/f"), range).await.map(text));
        }
        for range in [GetRange::Suffix(3), GetRange::Offset(4), GetRange::Suffix(30), GetRange::Offset(10)] {
            let options = GetOptions { range: Some(range.clone()), ..GetOptions::default() };
            let got = async { store.get_opts(&at("d/e/f"), options).await?.bytes().await };
            see(&range.to_string(), got.await.map(text));
        }
        let ranges = store.get_ranges(&at("d/e/f"), &[8..10, 0..2]).await;
        see("ranges", ranges.map(|found| found.into_iter().map(text).collect()));
        see("copy", store.copy(&at("a"), &at("c/copy")).await.map(|()| String::new()));
        see("copy over", store.copy(&at("d/g"), &at("c/copy")).await.map(|()| String::new()));
        see("copy new", store.copy_if_not_exists(&at("a"), &at("c/copy")).await.map(|()| String::new()));
        see("copy none", store.copy(&at("none"), &at("c/none")).await.map(|()| String::new()));
        see("rename", store.rename(&at("a"), &at("r/a")).await.map(|()| String::new()));
        see("rename new", store.rename_if_not_exists(&at("r/a"), &at("d/g")).await.map(|()| String::new()));
        let mut upload = store.put_multipart(&at("m/parts")).await.unwrap();
        let parts = [upload.put_part("12".into()), upload.put_part("345".into())];
        for part in parts.into_iter().rev() {
            part.await.unwrap();
        }
        see("upload", upload.complete().await.map(|_| String::new()));
        let mut upload = store.put_multipart(&at("m/none")).await.unwrap();
        upload.put_part("12".into()).await.unwrap();
        see("abort", upload.abort().await.map(|()| String::new()));
        see("delete", store.delete(&at("d.x/h")).await.map(|()| String::new()));
        for prefix in ["", "d", "d/e", "d/e/f", "none", "c", "m"] {
            let prefix = StorePath::from(prefix);
            let mut listed: Vec<_> = store.list(Some(&prefix)).try_collect().await.unwrap();
            listed.sort_by(|a: &ObjectMeta, b| a.location.cmp(&b.location));
            let names: Vec<_> = listed.iter().map(|meta| format!("{} {}", meta.location, meta.size)).collect();
            see(&format!("list {prefix}"), Ok(names.join(", ")));
            let mut found = store.list_with_delimiter(Some(&prefix)).await.unwrap();
            found.objects.sort_by(|a, b| a.location.cmp(&b.location));
            found.common_prefixes.retain(|prefix| prefix.as_ref() != "d.x");
            found.common_prefixes.sort();
            let names: Vec<_> = found.objects.iter().map(|meta| meta.location.to_string()).collect();
            see(&format!("folder {prefix}"), Ok(format!("{} | {:?}", names.join(", "), found.common_prefixes)));
        }
    });
    seen
}

#[test]
fn it_does_what_other_stores_do() {
    let [ours, theirs] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let expected = script(&LocalFileSystem::new_with_prefix(theirs.path()).unwrap());
    let on_disk = DurableLocal::new(Arc::new(RealVfs), ours.path());
    let in_memory = DurableLocal::new(Arc::new(CrashFs::new()), Path::new(""));
    for store in [&on_disk, &in_memory] {
        for (found, expected) in script(store).iter().zip(&expected) {
            assert_eq!(found, expected, "{store}");
        }
        assert!(matches!(block_on(store.get(&at("r/a/below"))), Err(StoreError::NotFound { .. })), "{store}");
    }
    // Nothing unfinished is left behind.
    let mut files = vec![ours.path().to_owned()];
    while let Some(path) = files.pop() {
        assert!(!path.to_string_lossy().ends_with(".tmp"), "{}", path.display());
        files.extend(std::fs::read_dir(&path).into_iter().flatten().map(|entry| entry.unwrap().path()));
    }
}

#[test]
fn large_objects_come_in_pieces() {
    let store = DurableLocal::new(Arc::new(CrashFs::new()), Path::new(""));
    let bytes: Vec<u8> = (0..5_u32 << 18).map(|i| u8::try_from(i % 251).unwrap()).collect();
    block_on(async {
        store.put(&at("x"), bytes.clone().into()).await.unwrap();
        let pieces: Vec<_> = store.get(&at("x")).await.unwrap().into_stream().try_collect().await.unwrap();
        assert_eq!(pieces.iter().map(Bytes::len).collect::<Vec<_>>(), [1 << 20, 1 << 18]);
        assert_eq!(pieces.concat(), bytes);
        assert_eq!(store.get_range(&at("x"), 7..1_200_000).await.unwrap(), bytes[7..1_200_000]);
    });
}

#[test]
fn no_location_leaves_the_root_or_is_that_of_an_unfinished_file() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    std::fs::create_dir(&root).unwrap();
    let store = DurableLocal::new(Arc::new(RealVfs), &root);
    let made = ["../x", "a/../../x", "/x", "..", "a/./b", "a//b", "%2e%2e/x", "..\\x"].map(StorePath::from);
    for location in made.iter().filter(|location| !location.is_root()) {
        // They are taken as names, or refused.
        let _ = block_on(store.put(location, "x".into()));
    }
    let outside: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(outside, ["root"]);
    for refused in ["x.1.tmp", "a/b.parquet.77.tmp"] {
        block_on(store.put(&at(refused), "x".into())).unwrap_err();
        block_on(store.get(&at(refused))).unwrap_err();
        block_on(store.delete(&at(refused))).unwrap_err();
    }
    block_on(store.put(&StorePath::default(), "x".into())).unwrap_err();
}

/// Objects by location, and what is in them; `None` is one that is gone.
type Seen = Vec<(&'static str, Option<&'static str>)>;

/// One call of each kind, each acknowledged; returns the operations done by then with what must be
/// seen from there on.
fn changes(store: &DurableLocal, fs: &CrashFs) -> Vec<(usize, Seen)> {
    let mut done: Vec<(usize, Seen)> = vec![(0, Vec::new())];
    let mut now = std::collections::BTreeMap::new();
    let mut note = |changed: &[(&'static str, Option<&'static str>)]| {
        now.extend(changed.iter().copied());
        done.push((fs.operations(), now.clone().into_iter().collect()));
    };
    block_on(async {
        store.put(&at("a/b/x"), "x1".into()).await.unwrap();
        note(&[("a/b/x", Some("x1"))]);
        store.put_opts(&at("a/c/y"), "y1".into(), create()).await.unwrap();
        note(&[("a/c/y", Some("y1"))]);
        store.put(&at("a/b/x"), "x2".into()).await.unwrap();
        note(&[("a/b/x", Some("x2"))]);
        let mut upload = store.put_multipart(&at("u/z")).await.unwrap();
        upload.put_part("z1".into()).await.unwrap();
        upload.put_part("z2".into()).await.unwrap();
        upload.complete().await.unwrap();
        note(&[("u/z", Some("z1z2"))]);
        store.copy(&at("u/z"), &at("v/copy")).await.unwrap();
        note(&[("v/copy", Some("z1z2"))]);
        store.rename(&at("a/c/y"), &at("w/y")).await.unwrap();
        note(&[("a/c/y", None), ("w/y", Some("y1"))]);
        store.delete(&at("v/copy")).await.unwrap();
        note(&[("v/copy", None)]);
    });
    done
}

#[test]
fn nothing_acknowledged_is_lost_with_the_power() {
    let fs = CrashFs::new();
    let store = DurableLocal::new(Arc::new(fs.clone()), Path::new(""));
    let done = changes(&store, &fs);
    let holds = |image: &crate::vfs::Image, seen: &Seen, path: &str| {
        let expected = seen.iter().find(|(known, _)| *known == path).and_then(|(_, bytes)| *bytes);
        image.get(Path::new(path)) == expected.map(str::as_bytes)
    };
    let mut images = 0;
    for cut in fs.power_cuts() {
        let last = done.iter().rposition(|(operations, _)| *operations <= cut.operations()).unwrap();
        let (before, after) = (&done[last].1, &done[(last + 1).min(done.len() - 1)].1);
        for image in cut.images(5, 40) {
            images += 1;
            for path in ["a/b/x", "a/c/y", "u/z", "v/copy", "w/y"] {
                let is_legal = holds(&image, before, path) || holds(&image, after, path);
                assert!(is_legal, "{path} after operation {}: {:?}", cut.operations(), image.get(Path::new(path)));
            }
        }
    }
    assert!(images > 200, "{images} images");
}

#[test]
fn what_a_listing_shows_is_durable_though_its_writer_was_killed() {
    let fs = CrashFs::new();
    fs.create_dir_all(Path::new("a")).unwrap();
    fs.sync_dir(Path::new("")).unwrap();
    let file = fs.create_new(Path::new("a/x.1.tmp")).unwrap();
    file.write_all_at(&[b"x"], 0).unwrap();
    file.sync_all().unwrap();
    fs.rename_new(Path::new("a/x.1.tmp"), Path::new("a/x")).unwrap();
    let store = DurableLocal::new(Arc::new(fs.clone()), Path::new(""));
    let listed: Vec<_> = block_on(store.list(Some(&at("a"))).try_collect()).unwrap();
    assert_eq!(listed.iter().map(|meta: &ObjectMeta| meta.location.as_ref()).collect::<Vec<_>>(), ["a/x"]);
    for image in fs.power_cut().images(3, 20) {
        assert_eq!(image.get(Path::new("a/x")), Some(b"x".as_slice()));
    }
}

#[test]
fn after_a_failed_sync_of_a_name_it_takes_no_more_and_does_not_show_the_one_in_doubt() {
    let faults = FaultFs::new(Arc::new(CrashFs::new()));
    let store = DurableLocal::new(Arc::new(faults.clone()), Path::new(""));
    block_on(async {
        store.put(&at("a/x"), "x".into()).await.unwrap();
        faults.set(Fault::nth(1, io::ErrorKind::Other).of(Operation::SyncDir));
        store.put(&at("a/y"), "y".into()).await.unwrap_err();
        faults.clear();
        for location in ["a/y", "a/z", "b/z"] {
            store.put(&at(location), "z".into()).await.unwrap_err();
        }
        store.delete(&at("a/x")).await.unwrap_err();
        store.get(&at("a/y")).await.unwrap_err();
        assert_eq!(store.get(&at("a/x")).await.unwrap().bytes().await.unwrap(), "x");
        let listed: Vec<_> = store.list(None).try_collect().await.unwrap();
        assert_eq!(listed.iter().map(|meta: &ObjectMeta| meta.location.as_ref()).collect::<Vec<_>>(), ["a/x"]);
    });
}

#[test]
fn a_put_in_which_any_call_fails_is_whole_or_absent() {
    for (nth, short) in (1..12).flat_map(|nth| [(nth, false), (nth, true)]) {
        let fs = CrashFs::new();
        let faults = FaultFs::new(Arc::new(fs.clone()));
        let store = DurableLocal::new(Arc::new(faults.clone()), Path::new(""));
        block_on(store.put(&at("a/x"), "old".into())).unwrap();
        let fault = Fault::nth(nth, io::ErrorKind::StorageFull);
        faults.set(if short { fault.short_write() } else { fault });
        let [over, new] = ["a/x", "a/y"].map(|location| block_on(store.put(&at(location), "new".into())));
        faults.clear();
        for image in fs.power_cut().images(1, 10) {
            let old = image.get(Path::new("a/x")).unwrap();
            assert!(old == b"new" || over.is_err() && old == b"old", "call {nth}: {over:?}");
            let found = image.get(Path::new("a/y"));
            assert!(found == Some(b"new") || new.is_err() && found.is_none(), "call {nth}: {new:?}");
        }
        assert!(over.is_ok() || matches!(over, Err(StoreError::Generic { .. })));
    }
}

#[test]
fn an_upload_with_a_part_missing_is_never_complete() {
    let fs = CrashFs::new();
    let faults = FaultFs::new(Arc::new(fs.clone()));
    let store = DurableLocal::new(Arc::new(faults.clone()), Path::new(""));
    block_on(async {
        let mut upload = store.put_multipart(&at("x")).await.unwrap();
        faults.set(Fault::nth(1, io::ErrorKind::StorageFull));
        upload.put_part("1".into()).await.unwrap_err();
        faults.clear();
        upload.put_part("2".into()).await.unwrap();
        upload.complete().await.unwrap_err();
        drop(upload);
        let mut dropped = store.put_multipart(&at("y")).await.unwrap();
        dropped.put_part("1".into()).await.unwrap();
    });
    assert_eq!(fs.current().files().count(), 0);
}

#[test]
fn opening_removes_what_a_killed_process_has_not_finished() {
    let fs = CrashFs::new();
    fs.create_dir_all(Path::new("root/d")).unwrap();
    let names = ["root/d/x.1.tmp", "root/d/x", "root/1.tmp", "root/.2.tmp", "root/y.12.tmp", "root/d/z.tmp"];
    for name in names {
        fs.create_new(Path::new(name)).unwrap();
    }
    let vfs: Arc<dyn Vfs> = Arc::new(fs.clone());
    // The first try to put an object uses the name that is taken.
    assert!(block_on(DurableLocal::new(Arc::clone(&vfs), Path::new("root")).put(&at("y/x"), "ok".into())).is_ok());
    assert!(block_on(DurableLocal::new(Arc::clone(&vfs), Path::new("root")).put(&at("d/x"), "new".into())).is_err());
    let store = DurableLocal::open(Arc::clone(&vfs), Path::new("root")).unwrap();
    let left: Vec<&str> = names.into_iter().filter(|name| fs.open_read(Path::new(name)).is_ok()).collect();
    assert_eq!(left, ["root/d/x", "root/1.tmp", "root/.2.tmp", "root/d/z.tmp"]);
    block_on(store.put(&at("d/x"), "new".into())).unwrap();
    assert_eq!(fs.read(Path::new("root/d/x")).unwrap(), b"new");
    let faulty = FaultFs::new(Arc::new(fs.clone()));
    fs.create_new(Path::new("root/d/x.1.tmp")).unwrap();
    faulty.set(Fault::nth(1, io::ErrorKind::PermissionDenied).of(Operation::RemoveFile));
    let error = DurableLocal::open(Arc::new(faulty), Path::new("root")).unwrap_err();
    assert_eq!(error.to_string(), "cannot remove root/d/x.1.tmp");
}
