//! What tests of copies share: a disk with two folders, of which one has a data directory.

use std::{path::Path, sync::Arc};

use crate::{
    Engine,
    vfs::{CrashFs, Vfs},
};

pub(super) const ROOT: &str = "/store";
pub(super) const TARGET: &str = "/copies/a";

/// A file system on which both parents are safe.
pub(super) fn disk() -> CrashFs {
    let fs = CrashFs::new();
    fs.create_dir_all(Path::new(ROOT)).unwrap();
    fs.create_dir_all(Path::new("/copies")).unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
    fs
}

pub(super) fn write(engine: &Engine, n: i64) {
    assert_eq!(engine.write_lp("d", format!("m,host=h{} n={n}i {n}", n % 3).as_bytes()).unwrap().points, 1);
}

pub(super) fn counted(engine: &Engine) -> u64 {
    engine.tables("d").unwrap().iter().map(|table| table.file_rows + table.buffered_rows).sum()
}

/// The rows that a process sees which only reads there.
pub(super) fn read(fs: &CrashFs, root: &str) -> u64 {
    counted(&Engine::builder(root).vfs(Arc::new(fs.clone())).open_reader().unwrap())
}
