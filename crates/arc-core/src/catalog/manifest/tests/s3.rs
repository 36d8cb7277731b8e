//! The manifest on an S3 server, which `scripts/s3` starts. One test runs at a time there, in its
//! own bucket's prefix.

use super::*;
use crate::{
    catalog::survey::survey_at,
    store::{StoreLocation, StoreOptions, test_bucket},
};

fn s3(prefix: &str) -> Arc<dyn ObjectLocation> {
    Arc::new(StoreLocation::new(test_bucket(), prefix.into(), StoreOptions::default()).unwrap())
}

#[test]
#[ignore = "needs an S3 server; run scripts/s3"]
fn a_stream_on_s3_is_what_was_committed_beyond_one_page_of_names() {
    let mut manifest = Manifest::open_at(s3("life/meta/0")).unwrap();
    // A listing has 1,000 names a page; objects of the last day all stay.
    for number in 0..1_050 {
        manifest.commit(edit(number)).unwrap();
    }
    let reopened = Manifest::open_at(s3("life/meta/0")).unwrap();
    assert_eq!(reopened.state(), manifest.state());
    let listing = Listing::read(s3("life/meta/0").as_ref()).unwrap();
    assert_eq!(listing.commits, (1..=1_051).collect::<Vec<_>>());
    assert_eq!(listing.snapshots, [7 * 128, 8 * 128]);
    let survey = survey_at(s3("life/meta/0").as_ref()).unwrap();
    assert_eq!((survey.reached, survey.damage, &survey.state), (1_051, vec![], manifest.state()));
    let state = manifest.state().clone();
    Manifest::write_anew_at(s3("life/meta/0"), state.clone()).unwrap();
    assert_eq!(*Manifest::open_at(s3("life/meta/0")).unwrap().state(), state);
}

#[test]
#[ignore = "needs an S3 server; run scripts/s3"]
fn a_second_writer_on_s3_is_fenced() {
    let mut first = Manifest::open_at(s3("fence/meta/0")).unwrap();
    let mut second = Manifest::open_at(s3("fence/meta/0")).unwrap();
    first.commit(edit(0)).unwrap();
    let own = ManifestEdit { databases_added: vec![("db".into(), 9)], ..edit(0) };
    let error = second.commit(own).unwrap_err().to_string();
    assert!(error.ends_with("another writer has written fence/meta/0/00000000000000000002"), "{error}");
    first.commit(edit(1)).unwrap();
    assert_eq!(Manifest::open_at(s3("fence/meta/0")).unwrap().state(), first.state());
}

/// Of many threads that put one name, one succeeds.
#[test]
#[ignore = "needs an S3 server; run scripts/s3"]
fn one_of_many_writers_on_s3_gets_a_number() {
    for round in 0..10 {
        let name = format!("{round}");
        let puts = std::thread::scope(|scope| {
            let put = |writer: u8| {
                let name = &name;
                scope.spawn(move || s3("race").put_new(name, &[writer]).is_ok())
            };
            let threads: Vec<_> = (0..8).map(put).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        let winners: Vec<_> = puts.iter().enumerate().filter(|(_, won)| **won).map(|(writer, _)| writer).collect();
        let there = s3("race").get(&name).unwrap();
        assert_eq!(winners, [usize::from(there[0])], "round {round}");
    }
}
