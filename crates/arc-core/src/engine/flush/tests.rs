use std::{io, sync::Arc, time::Duration};

use crate::{
    Engine, ErrorKind, Options,
    vfs::{CrashFs, Fault, FaultFs, Operation},
};

fn options() -> Options {
    Options { compaction: false, flush_after: Duration::from_secs(1 << 30), ..Options::default() }
}

fn open(faults: &FaultFs) -> Engine {
    Engine::builder("/store").options(options()).vfs(Arc::new(faults.clone())).open().unwrap()
}

#[test]
fn nothing_is_flushed_once_another_engine_may_have_the_directory() {
    let fs = CrashFs::new();
    let faults = FaultFs::new(Arc::new(fs.clone()));
    let old = open(&faults);
    assert_eq!(old.write_lp("d", b"m v=1 1").unwrap().points, 1);
    faults.set(Fault::nth(1, io::ErrorKind::StorageFull).of(Operation::CreateNew).from_then_on());
    assert_eq!(old.close().unwrap_err().kind(), ErrorKind::StorageFull, "what was frozen is in no file");
    faults.clear();
    let new = open(&faults);
    let before = fs.operations();
    assert_eq!(old.flush().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(fs.operations(), before, "it writes nothing");
    new.flush().unwrap();
    let tables = new.tables("d").unwrap();
    assert_eq!((tables[0].file_rows, new.closed_to_writes()), (1, None));
}
