//! What a write promises: its own setting, else its database's, else the engine's.

use arc_core::{Durability, Engine, ErrorKind, WriteOptions};

use crate::support::{open, write};

/// What the receipt of a write to database `name` says.
fn promised(engine: &Engine, name: &str, options: &WriteOptions) -> Durability {
    engine.submit_lp(name, "m v=1 1".into(), options).unwrap().wait().unwrap().durability
}

#[test]
fn the_write_decides_before_its_database_and_that_before_the_engine() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path());
    let unset = WriteOptions::new();
    let own = WriteOptions::new().durability(Durability::Memory);
    write(&engine, "d", "m v=1 1");
    for setting in [Some(Durability::Process), None, Some(Durability::Memory), Some(Durability::Disk)] {
        engine.set_database_durability("d", setting).unwrap();
        for _ in 0..2 {
            assert_eq!(promised(&engine, "d", &unset), setting.unwrap_or(Durability::Disk));
            assert_eq!(promised(&engine, "d", &own), Durability::Memory);
            assert_eq!(promised(&engine, "other", &unset), Durability::Disk);
            let described = engine.databases().into_iter().find(|database| database.name == "d").unwrap();
            assert_eq!(described.durability, setting);
            drop(engine);
            engine = open(dir.path());
        }
    }
    let error = engine.set_database_durability("nowhere", None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    engine.close().unwrap();
    assert_eq!(engine.set_database_durability("d", None).unwrap_err().kind(), ErrorKind::Closed);
}
