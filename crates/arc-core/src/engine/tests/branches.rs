//! Branches in an object store, and out of one: whole or not there, whatever is cut off, and of no concern to
//! what they began as.

use std::{path::Path, sync::Arc, time::Duration};

use futures::{StreamExt, executor::block_on};
use object_store::{ObjectStore, ObjectStoreExt, PutPayload, memory::InMemory};

use super::{
    contents::contents,
    cut_store::{Cut, CutStore},
    quiet,
};
use crate::{
    BranchReport, ColumnTypes, Comparison, Engine, EngineBuilder, Error, Literal, OnConflict, Options, Predicate,
    model::PastMoment,
    store::{ObjectStorage, StoreOptions},
    vfs::{CrashFs, Vfs},
};

type Store = Arc<dyn ObjectStore>;

fn at(store: &Store, prefix: &str) -> ObjectStorage {
    ObjectStorage::new(Arc::clone(store), prefix)
}

fn in_memory() -> Store {
    Arc::new(InMemory::new())
}

fn options() -> Options {
    let mut options = Options { wal_segment_bytes: 64 << 10, compaction_files: 2, ..Options::default() };
    (options.compaction, options.flush_after) = (false, Duration::from_secs(1 << 30));
    (options.compaction_grace, options.history, options.pack_tables) = (Duration::ZERO, Duration::ZERO, 4);
    options.column_types = ColumnTypes::new().on_conflict(OnConflict::Widen);
    options
}

fn folder(fs: &CrashFs, root: &str) -> EngineBuilder {
    quiet(Path::new(root)).options(options()).vfs(Arc::new(fs.clone()))
}

fn write(engine: &Engine, lines: &str) {
    assert_eq!(engine.write_lp("d", lines.as_bytes()).unwrap().rejected_points, 0, "{lines}");
}

fn delete(engine: &Engine, host: &str) {
    let of = Predicate::compare("host", Comparison::Equal, Literal::Text(host.into()));
    engine.delete("d", "m", &of).unwrap();
}

/// Rows in files of their own and in a pack, deletes that the manifest has or not, late rows in files and
/// not, a column that became wider, a table that was dropped, and rows that are in no file.
fn fill(engine: &Engine) {
    write(engine, "s1 x=1 1\ns2 x=1 1\ns3 x=1 1\nm,host=a x=1i 1000\nm,host=b x=2i 2000\nm,host=c x=3i 3000");
    engine.flush().unwrap();
    write(engine, "m,host=c x=4.5 90000000000000\nm,host=a x=9 1000");
    delete(engine, "b");
    engine.drop_table("d", "s3").unwrap();
    engine.flush().unwrap();
    write(engine, "m,host=d x=4,y=\"z\" 4000\nm,host=c x=8 3000\nm,host=e x=5 500\nlate x=1 1");
    delete(engine, "a");
    write(engine, "m,host=a x=7 7000");
}

/// Opens what is below a prefix with a new folder.
fn opened(fs: &CrashFs, storage: ObjectStorage, root: &str) -> Engine {
    folder(fs, root).object_store(storage).open().unwrap()
}

/// Opens a branch with a folder of its own, and checks that it has exactly this.
fn check(store: &Store, prefix: &str, expected: &[String]) -> Engine {
    let branch = opened(&CrashFs::new(), at(store, prefix), "/branch");
    assert!(contents(&branch) == expected, "{prefix}: {:#?} is not {expected:#?}", contents(&branch));
    let report = branch.verify().unwrap();
    assert!(report.findings.is_empty(), "{prefix}: {report}");
    branch
}

fn in_store(engine: &Engine, store: &Store, prefix: &str) -> BranchReport {
    engine.branch_in_store(at(store, prefix), None).unwrap_or_else(|error| panic!("{prefix}: {error}"))
}

/// Checks that nothing stays of what was flushed on the way.
fn no_work_is_left(fs: &CrashFs) {
    let left: Vec<_> = fs.list(&std::env::temp_dir()).unwrap_or_default();
    assert!(left.iter().all(|entry| !entry.name.starts_with("arc-branch-")), "{left:?}");
}

#[test]
fn a_branch_in_a_store_has_all_points_and_goes_its_own_way_whatever_it_is_a_branch_of() {
    let (fs, store, elsewhere) = (CrashFs::new(), in_memory(), in_memory());
    let in_folder = folder(&fs, "/folder").open().unwrap();
    let with_store = opened(&fs, at(&store, "plant"), "/stored");
    [&in_folder, &with_store].into_iter().for_each(fill);
    let expected = contents(&in_folder);
    assert!(contents(&with_store) == expected && expected.len() > 10, "{expected:#?}");
    let beside = folder(&fs, "/folder").open_reader().unwrap();
    let near = folder(&fs, "/stored").object_store(at(&store, "plant")).open_reader().unwrap();
    let cases: [(&str, &Engine, &Store); 6] = [
        ("of a folder", &in_folder, &store),
        ("of a folder by a reader", &beside, &store),
        ("within a store", &with_store, &store),
        ("within a store by a reader", &near, &store),
        ("to another store", &with_store, &elsewhere),
        ("to another store by a reader", &near, &elsewhere),
    ];
    for (case, engine, target) in cases {
        let report = in_store(engine, target, case);
        assert_eq!(report.store_copied_files > 0, case.starts_with("within"), "{case}: {report:?}");
        assert!((report.frames, report.linked_files) == (0, 0) && report.copied_files > 0, "{case}: {report:?}");
        assert!(contents(&in_folder) == expected && contents(&with_store) == expected, "{case}: the origin");
    }
    no_work_is_left(&fs);
    for engine in [&in_folder, &with_store] {
        engine.drop_database("d").unwrap();
        engine.flush().unwrap();
        engine.compact().unwrap();
    }
    for (case, _, target) in cases {
        let branch = check(target, case, &expected);
        write(&branch, "m,host=f x=6 6000");
        let now = contents(&branch);
        branch.flush().unwrap();
        branch.compact().unwrap();
        assert!(contents(&branch) == now && now.len() == expected.len() + 1, "{case}");
        assert!(branch.verify().unwrap().findings.is_empty(), "{case}");
        branch.close().unwrap();
    }
}

#[test]
fn a_branch_in_a_folder_of_what_is_in_a_store_is_a_directory_of_its_own() {
    let (fs, store) = (CrashFs::new(), in_memory());
    let engine = opened(&fs, at(&store, "plant"), "/stored");
    fill(&engine);
    let expected = contents(&engine);
    let near = folder(&fs, "/stored").object_store(at(&store, "plant")).open_reader().unwrap();
    for (name, engine_of) in [("writer", &engine), ("near", &near)] {
        let report = engine_of.branch(format!("/to/{name}")).unwrap();
        assert!(report.copied_files == report.files && report.frames > 0, "{name}: {report:?}");
    }
    engine.flush().unwrap();
    let far = folder(&fs, "/far").object_store(at(&store, "plant")).open_reader().unwrap();
    let report = far.branch("/to/far").unwrap();
    assert!(report.copied_files == report.files && report.frames == 0, "{report:?}");
    in_store(&far, &store, "far");
    engine.drop_database("d").unwrap();
    engine.close().unwrap();
    drop(check(&store, "far", &expected));
    for name in ["writer", "near", "far"] {
        let branch = folder(&fs, &format!("/to/{name}")).open().unwrap();
        assert!(contents(&branch) == expected, "{name}");
        assert!(branch.verify().unwrap().findings.is_empty(), "{name}");
        write(&branch, "m,host=f x=6 6000");
        branch.flush().unwrap();
        branch.compact().unwrap();
        assert_eq!(contents(&branch).len(), expected.len() + 1, "{name}");
    }
}

#[test]
fn a_branch_goes_nowhere_else() {
    let (fs, store) = (CrashFs::new(), in_memory());
    let engine = opened(&fs, at(&store, "some/prefix"), "/stored");
    write(&engine, "m,host=a x=1 1");
    engine.flush().unwrap();
    let put = |path: &str| block_on(store.put(&path.into(), PutPayload::from_static(b"x"))).unwrap();
    put("full/notes.txt");
    put("lost/data/d/m/day=1970-01-01/01ARZ3NDEKTSV4RRFFQ69G5FAV.parquet");
    in_store(&engine, &store, "made");
    let objects = || block_on(store.list(None).map(|object| object.unwrap().location).collect::<Vec<_>>());
    let before = objects();
    for (prefix, reason) in [
        ("some/prefix", "it has a data directory already"),
        ("some/prefix/data", "among the objects that the branch is to be one of"),
        ("some/prefix/data/d/m", "among the objects that the branch is to be one of"),
        ("some/prefix/meta/0", "among the objects that the branch is to be one of"),
        ("some", "it is not empty: it has prefix/"),
        ("", "it is not empty"),
        ("full", "it is not empty: it has notes.txt"),
        ("lost", "it is not empty: it has data/d/m/"),
        ("made", "it has a data directory already"),
    ] {
        let error = engine.branch_in_store(at(&store, prefix), None).unwrap_err();
        assert!(matches!(error, Error::BadTarget { .. }) && error.to_string().contains(reason), "{prefix}: {error}");
    }
    let none = PastMoment::Snapshot("none".into());
    let error = engine.branch_in_store(at(&store, "none"), Some(&none)).unwrap_err();
    assert!(matches!(error, Error::SnapshotNotFound { .. }), "{error}");
    assert_eq!(objects(), before, "nothing is made for what is not there");
}

fn has(store: &Store, prefix: &str, object: &str) -> bool {
    block_on(store.head(&format!("{prefix}/meta/0/00000000000000000001{object}").into())).is_ok()
}

/// Makes branches of which each request may be the last: what is there then nothing opens, and another try
/// makes it whole; or it is whole already.
fn cut_off_at_each_request(how: Cut, is_within: bool) {
    let (fs, store) = (CrashFs::new(), CutStore::default());
    let shared: Store = Arc::new(store.clone());
    let elsewhere = in_memory();
    let mut options = StoreOptions::default();
    (options.tries, options.first_pause) = (1, Duration::ZERO);
    let storage = at(if is_within { &shared } else { &elsewhere }, "plant").options(options);
    let engine = opened(&fs, storage, "/stored");
    fill(&engine);
    let expected = contents(&engine);
    let (mut made_anew, mut begun) = (0, 0);
    for requests in 0.. {
        let prefix = format!("cut{requests}");
        store.cut_after(requests, how);
        let made = engine.branch_in_store(at(&shared, &prefix).options(options), None);
        let was_cut = store.mend();
        let case = format!("{prefix}, {how:?}, within: {is_within}");
        no_work_is_left(&fs);
        if !has(&shared, &prefix, ".snapshot") {
            assert!(made.is_err() && was_cut, "{case}");
            if has(&shared, &prefix, "") {
                begun += 1;
                let of = |root: &str| folder(&CrashFs::new(), root).object_store(at(&shared, &prefix).take_over(true));
                for error in [of("/a").open().unwrap_err(), of("/b").open_reader().unwrap_err()] {
                    assert!(error.to_string().contains("being made or was never finished"), "{case}: {error}");
                }
            }
            in_store(&engine, &shared, &prefix);
            made_anew += 1;
        }
        drop(check(&shared, &prefix, &expected));
        if !was_cut {
            assert!(made.is_ok() && made_anew > 6 && begun > 3, "{made_anew} {begun}");
            break;
        }
    }
    assert!(contents(&engine) == expected, "the origin");
}

#[test]
fn a_branch_that_is_cut_off_at_any_request_is_no_directory_and_the_next_try_makes_it() {
    cut_off_at_each_request(Cut::Before, true);
    cut_off_at_each_request(Cut::After, true);
    cut_off_at_each_request(Cut::Before, false);
}

#[test]
fn of_some_that_are_made_in_one_place_no_two_are_there_and_none_in_part() {
    let (fs, store) = (CrashFs::new(), in_memory());
    let engine = opened(&fs, at(&store, "plant"), "/stored");
    fill(&engine);
    let expected = contents(&engine);
    for round in 0..10 {
        let prefix = format!("race{round}");
        let made = std::thread::scope(|scope| {
            let tries = [(); 3].map(|()| scope.spawn(|| engine.branch_in_store(at(&store, &prefix), None)));
            tries.map(|made| made.join().unwrap())
        });
        let refused: Vec<_> = made.iter().filter_map(|made| made.as_ref().err()).collect();
        let is_refusal = |error: &&Error| matches!(error, Error::BadTarget { .. });
        assert!(refused.iter().all(is_refusal) && refused.len() == 2, "{prefix}: {refused:?}");
        drop(check(&store, &prefix, &expected));
    }
}

#[test]
fn a_branch_whose_place_is_taken_meanwhile_is_refused_as_that() {
    let (fs, store) = (CrashFs::new(), CutStore::default());
    let shared: Store = Arc::new(store.clone());
    let engine = opened(&fs, at(&shared, "plant"), "/stored");
    fill(&engine);
    let expected = contents(&engine);
    let (first, target) = (engine.clone(), at(&shared, "taken"));
    let make = move || _ = first.branch_in_store(target, None).unwrap();
    // Once the second has brought its files, of which the first removes what only the second needs.
    let later = store.clone();
    store.act_before_list("taken", move || later.act_before_list("taken", make));
    let error = engine.branch_in_store(at(&shared, "taken"), None).unwrap_err();
    assert!(matches!(&error, Error::BadTarget { .. }) && error.to_string().contains("meanwhile"), "{error}");
    drop(check(&shared, "taken", &expected));
}

#[test]
fn a_copy_that_is_not_what_it_is_a_copy_of_is_found_and_never_named() {
    let (fs, store) = (CrashFs::new(), CutStore::default());
    let shared: Store = Arc::new(store.clone());
    let engine = opened(&fs, at(&shared, "plant"), "/stored");
    fill(&engine);
    let expected = contents(&engine);
    for (damage, reason) in [(Cut::CopiesHalf, ""), (Cut::CopiesOther, "crc32c"), (Cut::CopiesNothing, "missing")] {
        let prefix = format!("{damage:?}");
        store.cut_after(0, damage);
        let error = engine.branch_in_store(at(&shared, &prefix), None).unwrap_err();
        store.mend();
        assert!(error.to_string().contains(reason), "{prefix}: {error}");
        assert!(!has(&shared, &prefix, ".snapshot"), "{prefix}");
        in_store(&engine, &shared, &prefix);
        drop(check(&shared, &prefix, &expected));
    }
    // A store that copies nothing at all is gone around.
    store.cut_after(0, Cut::CannotCopy);
    let report = in_store(&engine, &shared, "through");
    store.mend();
    assert!(report.store_copied_files == 0 && report.copied_files > 1, "{report:?}");
    drop(check(&shared, "through", &expected));
}

#[test]
fn a_reader_whose_files_are_removed_meanwhile_is_told_to_ask_again() {
    let (fs, store) = (CrashFs::new(), CutStore::default());
    let shared: Store = Arc::new(store.clone());
    let writer = opened(&fs, at(&shared, "plant"), "/stored");
    for n in 0..2 {
        write(&writer, &format!("m,host=a x={n} {n}"));
        writer.flush().unwrap();
    }
    let far = folder(&fs, "/far").object_store(at(&shared, "plant")).open_reader().unwrap();
    let expected = contents(&writer);
    let merge = |writer: &Engine| {
        let writer = writer.clone();
        move || _ = writer.compact().unwrap()
    };
    // After the look, and before the first file.
    store.act_before_list("plant", merge(&writer));
    let error = far.branch_in_store(at(&shared, "branch"), None).unwrap_err();
    assert!(matches!(error, Error::Expired), "{error}");
    in_store(&far, &shared, "branch");
    drop(check(&shared, "branch", &expected));
}

#[test]
fn what_is_damaged_is_named_and_not_copied() {
    let (fs, store) = (CrashFs::new(), in_memory());
    let engine = folder(&fs, "/folder").open().unwrap();
    write(&engine, "m,host=a x=1 1");
    engine.flush().unwrap();
    let file = Path::new("/folder").join(&engine.data_files("d", "m").unwrap()[0].path);
    fs.open(&file).unwrap().write_all_at(&[b"damage"], 9).unwrap();
    let error = engine.branch_in_store(at(&store, "branch"), None).unwrap_err();
    assert!(matches!(&error, Error::Corrupt { path, .. } if *path == file), "{error}");
    assert!(!has(&store, "branch", ".snapshot"));
}
