//! Object stores that builds of a format have written, with groups of the log in them: `store` in the folders of
//! `tests/golden`, and `contents.store`, what an engine finds that takes the store over.
//!
//! Made like the other golden directories, and as little changed (`golden`).

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use super::{contents::contents, scenario::Still};
use crate::{
    Durability, Engine, Options,
    catalog::NEWEST_VERSION,
    datafile,
    engine::frame::FrameKind,
    store::{DurableLocal, ObjectStorage},
    vfs::RealVfs,
};

fn golden() -> PathBuf {
    PathBuf::from("tests/golden")
}

fn open(path: &Path, store: &Path) -> Engine {
    fs::create_dir_all(store).unwrap();
    let store = DurableLocal::open(Arc::new(RealVfs), store).unwrap();
    let options = Options {
        durability: Durability::Remote,
        flush_after: Duration::from_secs(1 << 30),
        compaction: false,
        wal_segment_bytes: 64 << 10,
        history: Duration::ZERO,
        remote_interval: Duration::ZERO,
        ..Options::default()
    };
    let storage = ObjectStorage::new(Arc::new(store), "plant").take_over(true);
    Engine::builder(path).options(options).clock(Arc::new(Still)).object_store(storage).open().unwrap()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Leaves data files, a commit of each kind, and a log with a fence, and groups before and after it.
fn carry_out(dir: &Path) {
    let store = dir.join("store");
    let write =
        |engine: &Engine, lines: &str| assert_eq!(engine.write_lp("d", lines.as_bytes()).unwrap().rejected_points, 0);
    let engine = open(&dir.join("first"), &store);
    write(&engine, "cpu,host=a x=1.5 10\ncpu,host=b x=2.5 10");
    engine.flush().unwrap();
    write(&engine, "cpu,host=a x=3.5 11\nnew,host=a n=7i 12");
    write(&engine, "cpu,host=a x=4.5,y=true 10");
    drop(engine);
    let engine = open(&dir.join("second"), &store);
    write(&engine, "cpu,host=c x=5.5 13");
}

fn text(engine: &Engine) -> String {
    contents(engine).join("\n") + "\n"
}

#[test]
fn this_format_has_a_store() {
    let format = format!("{NEWEST_VERSION}-{}-{}", FrameKind::ALL.len(), datafile::FORMAT);
    let folder = golden().join(&format);
    if !folder.join("store").exists() && std::env::var("UPDATE_GOLDEN").is_ok() {
        let dir = tempfile::tempdir().unwrap();
        carry_out(dir.path());
        copy(&dir.path().join("store"), &folder.join("store"));
        fs::write(folder.join("contents.store"), text(&open(&dir.path().join("third"), &dir.path().join("store"))))
            .unwrap();
    }
    let how = "set UPDATE_GOLDEN=1 for this test once, look at what it adds, and commit it";
    assert!(folder.join("store").exists(), "there is no golden store of the format {format} yet: {how}");
}

#[test]
fn stores_of_all_formats_are_taken_over_with_what_they_had() {
    let mut stores = 0;
    for folder in fs::read_dir(golden()).unwrap().map(|entry| entry.unwrap().path()) {
        if !folder.join("store").exists() {
            continue;
        }
        let (dir, expected) =
            (tempfile::tempdir().unwrap(), fs::read_to_string(folder.join("contents.store")).unwrap());
        let store = dir.path().join("store");
        copy(&folder.join("store"), &store);
        for machine in ["first", "second"] {
            let engine = open(&dir.path().join(machine), &store);
            assert_eq!(text(&engine), expected, "{} taken over by the {machine}", folder.display());
            assert!(engine.stats().replayed_frames > 0, "of the log in the store");
        }
        let engine = open(&dir.path().join("third"), &store);
        engine.flush().unwrap();
        assert_eq!(text(&engine), expected, "{} flushed", folder.display());
        stores += 1;
    }
    assert!(stores >= 1);
}
