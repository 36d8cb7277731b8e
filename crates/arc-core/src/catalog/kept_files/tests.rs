//! The list beside a simple model: a set of paths for each state.

use std::{collections::BTreeSet, sync::Arc};

use proptest::prelude::*;

use super::*;
use crate::{
    FileTimeUnit,
    catalog::{ManifestEdit, TableEdit},
    model::TableSchema,
};

fn path(file: u8) -> String {
    format!("data/db/t/day=2026-01-31/{file}.parquet")
}

/// A state with some files.
fn state(files: &BTreeSet<u8>) -> ManifestState {
    let file = |file: &u8| {
        Arc::new(DataFile {
            path: path(*file),
            bytes: u64::from(*file),
            crc32c: 0,
            tail: None,
            hourly: None,
            rows: 1,
            time_unit: FileTimeUnit::Nanosecond,
            min_time: 0,
            max_time: 0,
            min_seq: 0,
            max_seq: 0,
            deleted_seq: 0,
            late: false,
            sorted_by: Vec::new(),
            columns: Vec::new(),
        })
    };
    let schema = TableSchema { database: "db".into(), table: "t".into(), has_primary_key: false, columns: Vec::new() };
    let mut state = ManifestState::default();
    state.apply(ManifestEdit {
        databases_added: vec![("db".into(), 0)],
        tables: vec![TableEdit {
            database: "db".into(),
            table: "t".into(),
            schema: Some(Arc::new(schema)),
            files_added: files.iter().map(file).collect(),
            ..TableEdit::default()
        }],
        ..ManifestEdit::default()
    });
    state
}

#[derive(Debug, Clone)]
enum Step {
    /// Files come and go, and the state gets a name after some more commits.
    Add {
        toggled: Vec<u8>,
        commits: u64,
    },
    Remove(prop::sample::Index),
    /// Some are kept, by the bits.
    Keep(u64),
    Cut(prop::sample::Index),
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (prop::collection::vec(0..24_u8, 0..5), 1..4_u64).prop_map(|(toggled, commits)| Step::Add { toggled, commits }),
        2 => any::<prop::sample::Index>().prop_map(Step::Remove),
        1 => any::<u64>().prop_map(Step::Keep),
        1 => any::<prop::sample::Index>().prop_map(Step::Cut),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..60)
}

fn check(list: &KeptFiles, model: &BTreeMap<u64, BTreeSet<u8>>) -> Result<(), TestCaseError> {
    let held: BTreeSet<u8> = model.values().flatten().copied().collect();
    for file in 0..24 {
        prop_assert_eq!(list.has(&path(file)), held.contains(&file), "file {}", file);
        for (number, files) in model {
            prop_assert_eq!(list.has_at(&path(file), *number), files.contains(&file), "file {} of {}", file, number);
        }
    }
    let is_odd = |found: &str| (0..24).any(|file| file % 2 == 1 && path(file) == found);
    let odd = |files: &BTreeSet<u8>| {
        files.iter().filter(|file| *file % 2 == 1).fold((0, 0), |(n, bytes), file| (n + 1, bytes + u64::from(*file)))
    };
    let expected: BTreeMap<u64, (u64, u64)> = model.iter().map(|(number, files)| (*number, odd(files))).collect();
    prop_assert_eq!(list.totals(is_odd), expected);
    prop_assert_eq!(list.files().count(), held.len(), "what no state has is forgotten");
    Ok(())
}

proptest! {
    #[test]
    fn a_list_says_what_its_states_have(steps in steps()) {
        let named = |number: u64| NamedSnapshot { number, time_ns: -i64::try_from(number).unwrap() };
        let (mut list, mut model) = (KeptFiles::default(), BTreeMap::<u64, BTreeSet<u8>>::new());
        let (mut files, mut number) = (BTreeSet::new(), 0);
        let nth = |model: &BTreeMap<u64, BTreeSet<u8>>, index: prop::sample::Index| {
            (!model.is_empty()).then(|| *model.keys().nth(index.index(model.len())).unwrap())
        };
        for step in steps {
            match step {
                Step::Add { toggled, commits } => {
                    for file in toggled {
                        if !files.remove(&file) {
                            files.insert(file);
                        }
                    }
                    number += commits;
                    list.add(named(number), &state(&files));
                    model.insert(number, files.clone());
                }
                Step::Remove(index) => {
                    let Some(number) = nth(&model, index) else { continue };
                    list.remove(number);
                    model.remove(&number);
                }
                Step::Keep(bits) => {
                    model.retain(|number, _| bits >> (number % 64) & 1 == 1);
                    // One that is not known, and one that has got its name at another time.
                    let strange = [named(number + 1), NamedSnapshot { time_ns: 1, ..named(number) }];
                    list.keep(&model.keys().map(|number| named(*number)).chain(strange).collect::<Vec<_>>());
                }
                Step::Cut(index) => {
                    let Some(number) = nth(&model, index) else { continue };
                    list.cut(number);
                    model.split_off(&number);
                }
                Step::Reopen => {
                    let read = KeptFiles::decode(&list.encode().unwrap()).unwrap();
                    prop_assert_eq!(&read, &list);
                    list = read;
                }
            }
            check(&list, &model)?;
        }
    }
}

#[test]
fn a_list_that_cannot_be_is_refused() {
    let files = vec![(Cow::from("a"), 1, Cow::from(vec![(2, 1)]))];
    let payload = rmp_serde::to_vec_named(&KeptRecord { states: vec![(1, 0)], files }).unwrap();
    assert_eq!(
        KeptFiles::decode(&payload).unwrap_err().to_string(),
        "a file is in the states from one to an earlier one"
    );
    assert!(KeptFiles::decode(b"").is_err());
}
