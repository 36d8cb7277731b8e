//! The folders of tables have the files that the tables have, and no others, whatever older states
//! still need.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use super::{Recorded, options};
use crate::{
    Engine,
    engine::tests::{
        contents::{contents, contents_of},
        quiet_in,
    },
    model::PastMoment,
    vfs::{CrashFs, stride},
};

/// Compares the files in the folders of tables with those that the manifest says they have.
pub(super) fn check_folders(fs: &CrashFs, engine: &Engine) {
    let manifest = engine.writer().unwrap().manifest.lock();
    let own = manifest.state().files().filter(|file| file.packed().is_none());
    let live: BTreeSet<String> = own.map(|file| format!("/data/{}", file.path)).collect();
    let image = fs.current();
    let is_own = |path: &&Path| path.starts_with("/data/data") && path.extension().is_some_and(|end| end == "parquet");
    let found: BTreeSet<String> = image.files().filter(is_own).map(|path| path.display().to_string()).collect();
    assert_eq!(found, live);
}

#[test]
fn a_merge_a_drop_and_a_restore_at_any_cut_of_power_leave_each_file_where_it_belongs() {
    let recorded = Recorded::new(options(1_000));
    recorded.line("m,h=a v=1 1");
    recorded.engine.flush().unwrap();
    recorded.line("m,h=b v=2 2");
    recorded.engine.create_snapshot("kept").unwrap();
    let was = contents(&recorded.engine);
    let moment = PastMoment::Snapshot("kept".into());
    assert_eq!(recorded.engine.compact().unwrap().merges, 1);
    recorded.engine.restore_table("d", "m", &moment).unwrap();
    recorded.engine.drop_table("d", "m").unwrap();
    recorded.engine.restore_table("d", "m", &moment).unwrap();
    assert_eq!(contents(&recorded.engine), was);
    check_folders(&recorded.fs, &recorded.engine);
    drop(recorded.engine);
    for cut in recorded.fs.power_cuts().step_by(stride(3)) {
        for image in cut.images(3, 6) {
            let fs = CrashFs::from_image(&image);
            let engine = quiet_in(&fs).options(recorded.options.clone()).clock(Arc::new(recorded.clock.clone())).open();
            let engine = engine.unwrap_or_else(|error| panic!("after operation {}: {error}", cut.operations()));
            check_folders(&fs, &engine);
            // All files of now are there.
            contents(&engine);
            if !engine.snapshots().is_empty() {
                let past = engine.writer().unwrap().past_state(&moment).unwrap();
                assert_eq!(contents_of(&engine, &past.registry), was, "after operation {}", cut.operations());
            }
        }
    }
}
