//! What the doubles promise, and that the real file system does the same.

use std::{collections::BTreeSet, io, path::Path, sync::Arc};

use super::*;

fn path(name: &str) -> &Path {
    Path::new(name)
}

fn create(vfs: &dyn Vfs, name: &str, contents: &[u8]) -> Box<dyn VfsFile> {
    let file = vfs.create_new(path(name)).unwrap();
    file.write_all_at(&[contents], 0).unwrap();
    file
}

/// The contents of `name` in every image, `None` where it is absent.
fn outcomes(fs: &CrashFs, name: &str) -> BTreeSet<Option<Vec<u8>>> {
    fs.power_cut().images(7, 200).map(|image| image.get(path(name)).map(<[u8]>::to_vec)).collect()
}

#[test]
fn all_file_systems_agree_on_every_call() {
    let folder = tempfile::tempdir().unwrap();
    let real: (&dyn Vfs, &Path) = (&RealVfs, folder.path());
    let crash: (&dyn Vfs, &Path) = (&CrashFs::new(), path("/root"));
    let fault: (&dyn Vfs, &Path) = (&FaultFs::new(Arc::new(CrashFs::new())), path("data"));
    for (vfs, root) in [real, crash, fault] {
        let at = |name: &str| root.join(name);
        vfs.create_dir_all(&at("a/b")).unwrap();
        vfs.create_dir_all(&at("a/b")).unwrap();
        let file = vfs.create_new(&at("a/x")).unwrap();
        assert_eq!(vfs.create_new(&at("a/x")).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(vfs.open(&at("a/y")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(vfs.create_new(&at("c/x")).unwrap_err().kind(), io::ErrorKind::NotFound);
        let large = vec![b'L'; 200_000];
        file.write_all_at(&[b"one", b"", &large, b"two", b"three", &large], 2).unwrap();
        file.sync_data().unwrap();
        let expected = [b"\0\0one", &large[..], b"twothree", &large].concat();
        assert_eq!(file.len().unwrap(), expected.len() as u64);
        assert_eq!(vfs.read(&at("a/x")).unwrap(), expected);
        // More parts than one call of the kernel takes.
        let numbers: Vec<String> = (0..3000).map(|n| if n % 7 == 0 { String::new() } else { n.to_string() }).collect();
        let parts: Vec<&[u8]> = numbers.iter().map(String::as_bytes).collect();
        let many = vfs.create_new(&at("a/many")).unwrap();
        many.write_all_at(&parts, 0).unwrap();
        assert_eq!(vfs.read(&at("a/many")).unwrap(), numbers.concat().as_bytes());
        vfs.remove_file(&at("a/many")).unwrap();
        file.set_len(7).unwrap();
        file.set_len(9).unwrap();
        file.sync_all().unwrap();
        let mut buf = [1; 8];
        assert_eq!(vfs.open(&at("a/./x")).unwrap().read_at(&mut buf, 3).unwrap(), 6);
        assert_eq!(&buf, b"neLL\0\0\x01\x01");
        assert_eq!(file.read_at(&mut buf, 100).unwrap(), 0);
        vfs.create_new(&at("a/z")).unwrap();
        assert_eq!(vfs.rename_new(&at("a/x"), &at("a/z")).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        vfs.rename_new(&at("a/x"), &at("a/w")).unwrap();
        vfs.rename(&at("a/w"), &at("a/z")).unwrap();
        vfs.hard_link(&at("a/z"), &at("a/link")).unwrap();
        assert_eq!(vfs.hard_link(&at("a/z"), &at("a/link")).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(vfs.hard_link(&at("a/y"), &at("a/v")).unwrap_err().kind(), io::ErrorKind::NotFound);
        file.write_all_at(&[b"Z"], 0).unwrap();
        assert_eq!(vfs.read(&at("a/link")).unwrap()[0], b'Z');
        assert_eq!(vfs.open_read(&at("a/link")).unwrap().read_at(&mut buf, 5).unwrap(), 4);
        assert_eq!(vfs.open_read(&at("a/y")).unwrap_err().kind(), io::ErrorKind::NotFound);
        vfs.remove_file(&at("a/link")).unwrap();
        vfs.sync_dir(&at("a")).unwrap();
        let listed = vfs.list(&at("a")).unwrap();
        let found: Vec<_> = listed.iter().map(|entry| (entry.name.as_str(), entry.is_dir, entry.len)).collect();
        assert_eq!(found, [("b", true, 0), ("z", false, 9)]);
        assert_eq!(listed[1].modified, vfs.open(&at("a/z")).unwrap().modified().unwrap());
        vfs.remove_file(&at("a/z")).unwrap();
        assert_eq!(vfs.remove_file(&at("a/z")).unwrap_err().kind(), io::ErrorKind::NotFound);
        let guard = vfs.lock(&at("lock")).unwrap();
        assert_eq!(vfs.lock(&at("lock")).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(guard);
        vfs.lock(&at("lock")).unwrap();
    }
}

#[test]
fn a_file_survives_only_with_its_name_and_contents_synced() {
    let fs = CrashFs::new();
    let file = create(&fs, "f", b"abc");
    let (absent, empty, full) = (None, Some(vec![]), Some(b"abc".to_vec()));
    let zeros = Some(vec![0; 3]);
    assert_eq!(outcomes(&fs, "f"), BTreeSet::from([absent.clone(), empty.clone(), zeros, full.clone()]));
    file.sync_data().unwrap();
    assert_eq!(outcomes(&fs, "f"), BTreeSet::from([absent, full.clone()]));
    fs.sync_dir(path("")).unwrap();
    assert_eq!(outcomes(&fs, "f"), BTreeSet::from([full]));
    assert_eq!(fs.power_cut().images(1, 100).count(), 1);
}

#[test]
fn a_folder_survives_only_once_its_parent_is_synced() {
    let fs = CrashFs::new();
    fs.create_dir_all(path("/a/b")).unwrap();
    create(&fs, "/a/b/f", b"x").sync_all().unwrap();
    fs.sync_dir(path("/a/b")).unwrap();
    fs.sync_dir(path("/a")).unwrap();
    assert!(outcomes(&fs, "/a/b/f").contains(&None));
    fs.sync_dir(path("/")).unwrap();
    assert_eq!(outcomes(&fs, "/a/b/f"), BTreeSet::from([Some(b"x".to_vec())]));
}

#[test]
fn a_rename_is_atomic_and_a_removal_may_be_lost() {
    let fs = CrashFs::new();
    create(&fs, "old", b"1").sync_all().unwrap();
    create(&fs, "gone", b"2").sync_all().unwrap();
    fs.sync_dir(path("")).unwrap();
    fs.rename(path("old"), path("new")).unwrap();
    fs.remove_file(path("gone")).unwrap();
    let states: BTreeSet<Vec<String>> = fs
        .power_cut()
        .images(3, 100)
        .map(|image| image.files().map(|file| file.display().to_string()).collect())
        .collect();
    let expected = [vec!["gone", "new"], vec!["gone", "old"], vec!["new"], vec!["old"]];
    assert_eq!(states, expected.map(|names| names.into_iter().map(String::from).collect()).into());
}

#[test]
fn an_unsynced_overwrite_is_torn_at_sectors_and_never_inside_one() {
    let fs = CrashFs::new();
    let file = create(&fs, "f", &[b'a'; 1536]);
    file.sync_all().unwrap();
    fs.sync_dir(path("")).unwrap();
    file.write_all_at(&[&[b'b'; 1000]], 100).unwrap();
    let states = outcomes(&fs, "f");
    for state in states.iter().flatten() {
        for (sector, write) in [(0..512, 100..512), (512..1024, 512..1024), (1024..1536, 1024..1100)] {
            let written = write.clone().filter(|at| state[*at] == b'b').count();
            assert!(written == 0 || written == write.len(), "{sector:?} is torn inside");
            assert!(sector.filter(|at| !write.contains(at)).all(|at| state[at] == b'a'));
        }
    }
    assert_eq!(states.len(), 8, "every subset of three sectors");
}

#[test]
fn power_cuts_follow_the_history_and_images_start_a_new_one() {
    let fs = CrashFs::new();
    let file = create(&fs, "f", b"1");
    file.sync_all().unwrap();
    fs.sync_dir(path("")).unwrap();
    file.write_all_at(&[b"2"], 0).unwrap();
    let seen: Vec<_> = fs.power_cuts().map(|cut| (cut.operations(), cut.images(1, 100).count())).collect();
    assert_eq!(seen.len(), fs.operations() + 1);
    assert_eq!((seen[0], seen[4]), ((0, 1), (4, 1)));
    let again = CrashFs::from_image(&fs.current());
    create(&again, "g", b"3");
    assert_eq!(again.read(path("f")).unwrap(), b"2");
    assert_eq!(outcomes(&again, "f"), BTreeSet::from([Some(b"2".to_vec())]));
    assert_eq!(fs.current().get(path("g")), None);
}

#[test]
fn a_write_that_failed_to_be_synced_is_seen_and_yet_lost() {
    let fs = CrashFs::new();
    let file = create(&fs, "f", b"1");
    fs.forget_unsynced_writes();
    file.sync_all().unwrap();
    fs.sync_dir(path("")).unwrap();
    assert_eq!(fs.read(path("f")).unwrap(), b"1");
    assert_eq!(outcomes(&fs, "f"), BTreeSet::from([Some(vec![])]));
}

#[test]
fn one_seed_names_the_same_images() {
    let fs = CrashFs::new();
    let file = create(&fs, "f", &[1; 5000]);
    (0..20).for_each(|i| file.write_all_at(&[&[2; 700]], i * 600).unwrap());
    let images = |seed| fs.power_cut().images(seed, 50).collect::<Vec<_>>();
    assert_eq!(images(1), images(1));
    assert_ne!(images(1), images(2));
    assert_eq!(images(1).len(), 50);
}

#[test]
fn an_image_is_written_to_a_real_folder() {
    let mut image = Image::default();
    image.set(path("/a/b/f"), b"x".to_vec());
    image.set(path("/a/g"), b"y".to_vec());
    image.remove(path("/a/g"));
    let folder = tempfile::tempdir().unwrap();
    image.write_to(folder.path()).unwrap();
    assert_eq!(std::fs::read(folder.path().join("a/b/f")).unwrap(), b"x");
    assert!(!folder.path().join("a/g").exists());
    assert_eq!(CrashFs::from_image(&image).current(), image);
}

#[test]
fn the_nth_call_fails_once_or_from_then_on() {
    let fs = FaultFs::new(Arc::new(CrashFs::new()));
    let file = create(&fs, "0012-ab3.wal", b"x");
    fs.set(Fault::nth(2, io::ErrorKind::StorageFull).of(Operation::SyncData));
    let results = |n: usize| (0..n).map(|_| file.sync_data().is_ok()).collect::<Vec<_>>();
    assert_eq!(results(3), [true, false, true]);
    fs.set(Fault::nth(2, io::ErrorKind::Other).from_then_on());
    assert_eq!(results(3), [true, false, false]);
    fs.clear();
    assert_eq!(results(1), [true]);
    assert_eq!(fs.calls(Operation::SyncData), 7);
    assert_eq!(fs.total_calls(), 9);
    let site = Site { operation: Operation::SyncData, name: "#-#.wal".into() };
    assert_eq!(fs.failed().into_iter().collect::<Vec<_>>(), [(site.clone(), 3)]);
    assert_eq!(fs.called().get(&site), Some(&7));
}

#[test]
fn a_short_write_leaves_its_first_half() {
    let fs = FaultFs::new(Arc::new(CrashFs::new()));
    let file = create(&fs, "f", b"");
    fs.set(Fault::nth(1, io::ErrorKind::StorageFull).short_write());
    let error = file.write_all_at(&[b"ab", b"cdef"], 1).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!(fs.read(path("f")).unwrap(), b"\0abc");
}

#[test]
fn a_short_read_brings_its_first_half() {
    let fs = FaultFs::new(Arc::new(CrashFs::new()));
    let file = create(&fs, "f", b"abcdef");
    fs.set(Fault::nth(1, io::ErrorKind::Other).of(Operation::Read).short_read());
    assert_eq!((fs.read(path("f")).unwrap(), fs.read(path("f")).unwrap()), (b"abc".to_vec(), b"abcdef".to_vec()));
    fs.set(Fault::nth(1, io::ErrorKind::Other).of(Operation::ReadAt).short_read());
    let mut buf = [0; 4];
    assert_eq!((file.read_at(&mut buf, 1).unwrap(), &buf), (2, b"bc\0\0"));
    assert_eq!((file.read_at(&mut buf, 1).unwrap(), &buf), (4, b"bcde"));
}

#[test]
fn what_a_sync_that_fails_was_to_make_durable_is_lost_whoever_syncs_again() {
    for forgets in [Forgets::Writes, Forgets::WritesAndNames] {
        let crash = CrashFs::new();
        let fs = FaultFs::over(&crash, forgets);
        let (lost, kept) = (create(&fs, "lost", b"1"), create(&fs, "kept", b"2"));
        fs.set(Fault::nth(1, io::ErrorKind::Other).of(Operation::SyncData));
        assert!(lost.sync_data().is_err());
        lost.sync_data().unwrap();
        kept.sync_data().unwrap();
        fs.sync_dir(path("")).unwrap();
        assert_eq!(fs.read(path("lost")).unwrap(), b"1", "it is still seen");
        assert_eq!(outcomes(&crash, "lost"), BTreeSet::from([Some(vec![])]));
        assert_eq!(outcomes(&crash, "kept"), BTreeSet::from([Some(b"2".to_vec())]));
        // What is written anew is not.
        lost.write_all_at(&[b"3"], 0).unwrap();
        lost.sync_data().unwrap();
        assert_eq!(outcomes(&crash, "lost"), BTreeSet::from([Some(b"3".to_vec())]));
        create(&fs, "name", b"4").sync_all().unwrap();
        fs.set(Fault::nth(1, io::ErrorKind::Other).of(Operation::SyncDir));
        assert!(fs.sync_dir(path("")).is_err());
        fs.sync_dir(path("")).unwrap();
        let name = (forgets == Forgets::Writes).then(|| b"4".to_vec());
        assert_eq!(outcomes(&crash, "name"), BTreeSet::from([name]));
    }
}

#[test]
fn a_fault_reaches_every_kind_of_call() {
    let fs = FaultFs::new(Arc::new(CrashFs::new()));
    let file = create(&fs, "f", b"x");
    fs.set(Fault::nth(1, io::ErrorKind::Other).from_then_on());
    let p = path("f");
    let results = [
        fs.create_dir_all(p).is_err(),
        fs.create_new(p).is_err(),
        fs.open(p).is_err(),
        fs.read(p).is_err(),
        fs.rename(p, p).is_err(),
        fs.rename_new(p, p).is_err(),
        fs.remove_file(p).is_err(),
        fs.sync_dir(p).is_err(),
        fs.list(p).is_err(),
        fs.lock(p).is_err(),
        file.len().is_err(),
        file.read_at(&mut [0], 0).is_err(),
        file.write_all_at(&[b"y"], 0).is_err(),
        file.sync_data().is_err(),
        file.sync_all().is_err(),
        file.set_len(0).is_err(),
    ];
    assert!(results.iter().all(|failed| *failed));
    assert_eq!(fs.failed().len(), results.len());
    fs.clear();
    assert_eq!(fs.read(p).unwrap(), b"x");
}

#[test]
fn a_folder_is_listed_while_files_come_and_go_in_it() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let folder = tempfile::tempdir().unwrap();
    let at = |name: String| folder.path().join(name);
    create(&RealVfs, at("stays".into()).to_str().unwrap(), b"here");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in (0..64).cycle().take_while(|_| !is_over.load(Ordering::Relaxed)) {
                let (from, to) = (at(format!("{round}.spare")), at(format!("{round}.wal")));
                create(&RealVfs, from.to_str().unwrap(), b"");
                RealVfs.rename(&from, &to).unwrap();
                RealVfs.remove_file(&to).unwrap();
            }
        });
        let listed = |_| RealVfs.list(folder.path()).map(|entries| entries.iter().any(|entry| entry.name == "stays"));
        let lists: Vec<io::Result<bool>> = (0..5_000).map(listed).collect();
        is_over.store(true, Ordering::Relaxed);
        for list in lists {
            assert!(list.unwrap(), "what stays is listed");
        }
    });
}
