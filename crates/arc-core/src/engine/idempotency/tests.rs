//! Keys through their life: claimed, kept, carried to the manifest, forgotten.

use bytes::Bytes;

use super::*;
use crate::{
    Durability, ErrorKind, Precision, WriteOptions,
    engine::frame::{FrameKind, WriteMeta},
};

const ONE: Fingerprint = Fingerprint { bytes: 1, crc: 1 };

fn keys(limit: usize, manifest: &ManifestState) -> Arc<IdempotencyKeys> {
    Arc::new(IdempotencyKeys::new(limit, Duration::from_secs(10), manifest))
}

fn empty() -> Arc<IdempotencyKeys> {
    keys(100, &ManifestState::default())
}

fn written(points: u64) -> Written {
    Written { points, rejected_points: 2, rejected: Vec::new(), durability: Durability::Process, replayed: false }
}

/// Claims a key that has to be free.
#[track_caller]
fn new(keys: &Arc<IdempotencyKeys>, database: &str, key: &str, time_ns: i64) -> KeyClaim {
    match keys.claim(database, key, ONE, time_ns) {
        Ok(Claimed::New(claim)) => claim,
        other => panic!("{database} {key}: {other:?}"),
    }
}

/// Writes `points` under a key, as number `seq`.
#[track_caller]
fn store(keys: &Arc<IdempotencyKeys>, key: &str, seq: u64) {
    new(keys, "d", key, seq.cast_signed()).stored(SequenceNumber(seq), &written(seq));
}

/// The number of points of the receipt that a key stands for.
fn kept(keys: &Arc<IdempotencyKeys>, key: &str) -> Option<u64> {
    match keys.claim("d", key, ONE, 0).unwrap() {
        Claimed::Kept(receipt) => Some(receipt.points),
        Claimed::New(_) => None,
        Claimed::Waiting(_) => panic!("{key} is claimed"),
    }
}

/// Flushes; returns the keys that went to the manifest and the number up to which receipts were
/// dropped.
fn flush(keys: &IdempotencyKeys, manifest: &mut ManifestState, now_ns: i64) -> (Vec<String>, Option<u64>) {
    keys.freeze();
    let round = keys.round(now_ns);
    let added = round.added.iter().flat_map(|edit| &edit.receipts).map(|receipt| receipt.key.to_string()).collect();
    manifest.databases.entry("d".into()).or_default();
    manifest.apply_receipts(round.added.clone(), round.dropped);
    keys.committed(&round);
    (added, round.dropped.map(|seq| seq.0))
}

#[test]
fn the_second_write_waits_for_the_first_and_gets_its_answer() {
    type Outcome = fn(KeyClaim);
    let cases: [(Outcome, Result<u64, ErrorKind>, bool); 4] = [
        (|claim| claim.stored(SequenceNumber(7), &written(3)), Ok(3), true),
        (|claim| claim.refused(&written(0)), Ok(0), false),
        (|claim| claim.unknown("?"), Err(ErrorKind::Unknown), false),
        (drop, Err(ErrorKind::Busy), false),
    ];
    for (outcome, answer, is_kept) in cases {
        let keys = empty();
        let first = new(&keys, "d", "k", 5);
        let waiting: Vec<_> = (0..2)
            .map(|_| match keys.claim("d", "k", ONE, 6) {
                Ok(Claimed::Waiting(receiver)) => receiver,
                other => panic!("{other:?}"),
            })
            .collect();
        outcome(first);
        for receiver in waiting {
            let found = futures::executor::block_on(receiver).unwrap();
            assert!(found.as_ref().map_or(true, |written| written.replayed && written.rejected_points == 2));
            assert_eq!(found.map(|written| written.points).map_err(|error| error.kind()), answer);
        }
        assert_eq!(kept(&keys, "k").is_some(), is_kept, "{answer:?}");
        assert_eq!(keys.replayed(), 2 * u64::from(answer.is_ok()) + u64::from(is_kept));
    }
}

#[test]
fn a_key_stands_for_one_request_of_one_database() {
    let keys = empty();
    let claim = new(&keys, "d", "k", 0);
    let _other_database = new(&keys, "e", "k", 0);
    for other in [Fingerprint { bytes: 2, ..ONE }, Fingerprint { crc: 2, ..ONE }] {
        let refused = |keys: &Arc<IdempotencyKeys>| keys.claim("d", "k", other, 0).unwrap_err().kind();
        assert_eq!(refused(&keys), ErrorKind::InvalidInput, "while the first is under way: {other:?}");
    }
    claim.stored(SequenceNumber(1), &written(4));
    for other in [Fingerprint { bytes: 2, ..ONE }, Fingerprint { crc: 2, ..ONE }] {
        let error = keys.claim("d", "k", other, 0).unwrap_err();
        assert!(matches!(&error, Error::IdempotencyKeyReused { key, .. } if key == "k"), "{error}");
    }
    assert_eq!(kept(&keys, "k"), Some(4));
}

#[test]
fn the_oldest_receipts_are_forgotten_first() {
    let (keys, mut manifest) = (keys(3, &ManifestState::default()), ManifestState::default());
    for seq in 1..=5 {
        store(&keys, &format!("k{seq}"), seq);
    }
    let found = |keys: &Arc<IdempotencyKeys>| ["k1", "k2", "k3", "k4", "k5"].map(|key| kept(keys, key));
    assert_eq!(found(&keys), [None, None, Some(3), Some(4), Some(5)]);
    let all = ["k3", "k4", "k5"].map(str::to_owned).to_vec();
    assert_eq!(flush(&keys, &mut manifest, 0), (all, Some(2)));
    store(&keys, "k6", 6);
    assert_eq!(found(&keys), [None, None, None, Some(4), Some(5)]);
    assert_eq!(flush(&keys, &mut manifest, 0), (vec!["k6".into()], Some(3)));
    assert_eq!(flush(&keys, &mut manifest, 0), (vec![], None));
    let kept: Vec<u64> = manifest.databases["d"].receipts.iter().map(|receipt| receipt.seq.0).collect();
    assert_eq!(kept, [4, 5, 6]);
}

#[test]
fn receipts_past_the_window_are_forgotten_at_a_flush() {
    let (keys, mut manifest) = (empty(), ManifestState::default());
    store(&keys, "old", 1);
    store(&keys, "new", 2);
    flush(&keys, &mut manifest, 0);
    let window_ns = 10_000_000_000;
    assert_eq!(flush(&keys, &mut manifest, window_ns + 1), (vec![], None));
    assert_eq!(flush(&keys, &mut manifest, window_ns + 2), (vec![], Some(1)));
    assert_eq!((kept(&keys, "old"), kept(&keys, "new")), (None, Some(2)));
}

#[test]
fn a_key_that_was_forgotten_and_used_again_stands_for_the_later_write() {
    let (keys, mut manifest) = (keys(2, &ManifestState::default()), ManifestState::default());
    for (key, seq) in [("a", 1), ("b", 2), ("c", 3), ("a", 4)] {
        store(&keys, key, seq);
    }
    flush(&keys, &mut manifest, 0);
    assert_eq!((kept(&keys, "a"), kept(&keys, "b"), kept(&keys, "c")), (Some(4), None, Some(3)));
    store(&keys, "d", 5);
    assert_eq!((kept(&keys, "a"), kept(&keys, "c")), (Some(4), None));
}

#[test]
fn a_round_takes_what_is_frozen_until_it_is_committed() {
    let (keys, mut manifest) = (empty(), ManifestState::default());
    store(&keys, "a", 1);
    keys.freeze();
    store(&keys, "b", 2);
    for _ in 0..2 {
        let round = keys.round(0);
        let numbers: Vec<u64> = round.added[0].receipts.iter().map(|receipt| receipt.seq.0).collect();
        assert_eq!(numbers, [1], "a failed commit is tried again");
    }
    assert_eq!(flush(&keys, &mut manifest, 0).0, ["a", "b"]);
    assert_eq!(flush(&keys, &mut manifest, 0).0, [""; 0]);
}

#[test]
fn receipts_go_with_their_database_and_all_others_stay() {
    let (keys, mut manifest) = (keys(4, &ManifestState::default()), ManifestState::default());
    let other = |key: &str, seq| new(&keys, "other", key, 0).stored(SequenceNumber(seq), &written(seq));
    for seq in [1, 3, 5] {
        other(&format!("o{seq}"), seq);
        store(&keys, &format!("k{seq}"), seq + 1);
    }
    // o1 and k1 are forgotten, for there may be four; what is left is about to be committed.
    keys.freeze();
    let round = keys.round(0);
    let under_way = new(&keys, "other", "under way", 0);
    keys.forget("other");
    keys.forget("never there");
    keys.committed(&round);
    store(&keys, "k7", 8);
    assert_eq!(["k1", "k3", "k5", "k7"].map(|key| kept(&keys, key)), [None, Some(4), Some(6), Some(8)]);
    under_way.stored(SequenceNumber(9), &written(9));
    assert!(matches!(keys.claim("other", "under way", ONE, 0), Ok(Claimed::Kept(_))), "it came behind the drop");
    drop(new(&keys, "other", "o5", 0));
    let state = keys.state.lock();
    assert_eq!((state.order.len(), state.databases["other"].len()), (4, 1));
    drop(state);
    manifest.databases.entry("other".into()).or_default();
    let (added, _) = flush(&keys, &mut manifest, 0);
    assert_eq!(
        added.iter().collect::<std::collections::BTreeSet<_>>().len(),
        2,
        "k7 and what was under way: {added:?}"
    );
}

#[test]
fn what_the_manifest_has_is_there_again_and_not_added_twice() {
    let (first, mut manifest) = (empty(), ManifestState::default());
    for seq in 1..=4 {
        store(&first, &format!("k{seq}"), seq);
    }
    flush(&first, &mut manifest, 0);
    for (limit, there) in [(100, [Some(1), Some(2), Some(3), Some(4)]), (2, [None, None, Some(3), Some(4)])] {
        let again = keys(limit, &manifest);
        assert_eq!(["k1", "k2", "k3", "k4"].map(|key| kept(&again, key)), there);
        let dropped = (limit == 2).then_some(2);
        assert_eq!(flush(&again, &mut manifest.clone(), 0), (vec![], dropped));
    }
}

#[test]
fn only_short_visible_text_is_a_key() {
    let long = "k".repeat(255);
    for key in ["k", "a b", "é", "\"8e03978e-40d5\"", long.as_str()] {
        assert!(WriteOptions::new().idempotency_key(key).check().is_ok(), "{key}");
    }
    for key in ["", " k", "k ", "a\nb", "a\0", "\u{7f}", &*(long.clone() + "k")] {
        let error = WriteOptions::new().idempotency_key(key).check().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{key:?}");
    }
}

#[test]
fn whatever_changes_what_is_stored_changes_the_fingerprint() {
    let request = |kind, body: &'static str, table: Option<&str>, options: WriteOptions| {
        let meta = WriteMeta::new("d", table, 0, &options);
        fingerprint(&WriteRequest { kind, body: Bytes::from(body), meta })
    };
    let (lp, plain) = (FrameKind::LineProtocol, WriteOptions::new);
    let all = [
        request(lp, "m v=1", None, plain()),
        request(lp, "m v=2", None, plain()),
        request(lp, "m v=12", None, plain()),
        request(FrameKind::MessagePack, "m v=1", None, plain()),
        request(lp, "m v=1", Some("t"), plain()),
        request(lp, "m v=1", None, plain().time_column("t")),
        request(lp, "m v=1", None, plain().tags(["t"])),
        request(lp, "m v=1", None, plain().tags(["a", "bc"])),
        request(lp, "m v=1", None, plain().tags(["ab", "c"])),
        request(lp, "m v=1", None, plain().precision(Precision::Second)),
    ];
    let distinct: std::collections::BTreeSet<_> = all.iter().map(|found| (found.bytes, found.crc)).collect();
    assert_eq!(distinct.len(), all.len());
    let said = request(lp, "m v=1", None, plain().precision(Precision::Nanosecond).time_column("time"));
    assert_eq!(said, all[0], "what is the default anyway");
    let same = request(lp, "m v=1", None, plain().durability(Durability::Memory).idempotency_key("k"));
    assert_eq!(same, all[0]);
    // On disk: it must not change from one version to the next.
    assert_eq!(same, Fingerprint { bytes: 5, crc: 796_703_575 });
}
