use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::model::TableSchema;

fn table() -> Arc<Table> {
    let schema = TableSchema { database: "d".into(), table: "t".into(), has_primary_key: true, columns: Vec::new() };
    Arc::new(Table::new(schema))
}

fn bounded(max_bytes: usize) -> (SeriesCache, Arc<MemoryBudget>) {
    let (mut cache, memory) = (SeriesCache::default(), Arc::new(MemoryBudget::new(1 << 30, 0)));
    cache.bound(max_bytes, &memory);
    (cache, memory)
}

/// Keys of one length, so that as many of them fill any region.
fn key(number: usize) -> Vec<u8> {
    format!("t,host={number:06}").into_bytes()
}

/// Asks for series as requests do: with a guess, and those that are not found are remembered when the
/// request is over. Returns how many were found.
fn round(cache: &mut SeriesCache, table: &Arc<Table>, numbers: impl Iterator<Item = usize>) -> usize {
    let (mut found, mut missed, mut guess) = (0, Vec::new(), 0);
    for number in numbers {
        match cache.get(&key(number), guess) {
            Some(series) => {
                assert_eq!(series.series as usize, number);
                guess = series.next;
                found += 1;
            }
            None => missed.push(number),
        }
    }
    missed.iter().for_each(|number| cache.insert(&key(*number), table, u32::try_from(*number).unwrap()));
    found
}

/// Returns how many series fit into a cache of so many bytes.
fn capacity(max_bytes: usize) -> usize {
    let (mut cache, _) = bounded(max_bytes);
    round(&mut cache, &table(), 0..max_bytes);
    cache.len
}

#[test]
fn cached_series_are_found_by_their_exact_bytes() {
    let (table, mut cache) = (table(), SeriesCache::default());
    for i in 0..1000u32 {
        cache.insert(format!("t,host={i}").as_bytes(), &table, i);
    }
    cache.insert(b"t,host=5", &table, 9999);
    for guess in [0, 5, 6, 1000, usize::MAX] {
        let found = |key: &[u8]| cache.get(key, guess).map(|found| (found.series, found.next));
        assert_eq!(found(b"t,host=5"), Some((5, 6)));
        assert_eq!(found(b"t,host=999"), Some((999, 1000)));
        assert_eq!(found(b"t,host=1000"), None);
        assert_eq!(found(b""), None);
    }
}

#[test]
fn keys_are_found_together_as_they_are_one_by_one() {
    let (table, mut cache) = (table(), SeriesCache::default());
    assert_eq!(cache.likely(&[b"t,host=1".as_slice(), b""]), [usize::MAX; 2]);
    let keys: Vec<String> = (0..LARGE_CACHE).map(|i| format!("t,host={i}")).collect();
    for (at, key) in (0..).zip(&keys) {
        assert!(!cache.is_large());
        cache.insert(key.as_bytes(), &table, at);
    }
    assert!(cache.is_large());
    for (at, key) in keys.iter().enumerate() {
        let found = cache.likely(&[b"t,host=x", key.as_bytes(), b""]);
        assert_eq!(found, [usize::MAX, at, usize::MAX]);
        assert!(cache.at(at, key.as_bytes()).is_some() && cache.at(at + 1, key.as_bytes()).is_none());
    }
}

#[test]
fn guesses_lead_from_one_region_to_the_next() {
    let (table, mut cache) = (table(), SeriesCache::default());
    let all = 2 * REGION_SERIES + 5;
    round(&mut cache, &table, 0..all);
    assert_eq!((cache.regions.len(), cache.len), (3, all));
    let mut guess = 0;
    for number in 0..all {
        guess = cache.at(guess, &key(number)).map(|found| found.next).expect("the guess is right");
    }
}

#[test]
fn what_a_cache_takes_is_bounded_and_counted() {
    for max_bytes in [10_000, 300_000] {
        let (table, (mut cache, memory)) = (table(), bounded(max_bytes));
        round(&mut cache, &table, 0..max_bytes);
        let bytes: usize = cache.regions.iter().map(Region::bytes).sum();
        assert!((max_bytes / 4 * 3..=max_bytes).contains(&bytes), "{bytes} of {max_bytes}");
        assert!((bytes - max_bytes / 8..=bytes).contains(&memory.used()), "{} of {bytes}", memory.used());
        cache.clear(1);
        assert_eq!((memory.used(), cache.len, cache.drops()), (0, 0, 1));
        assert_eq!(round(&mut cache, &table, 0..9) + round(&mut cache, &table, 0..9), 9, "it goes on");
    }
    let (table, (mut cache, memory)) = (table(), bounded(300_000));
    let others = memory.reserve((1 << 30) - 100_000);
    round(&mut cache, &table, 0..300_000);
    assert!(memory.used() <= memory.limit(), "no more than there is");
    drop(others);
}

#[test]
fn a_cache_that_is_too_small_for_all_series_still_finds_most_of_what_it_has() {
    const MAX_BYTES: usize = 100_000;
    let capacity = capacity(MAX_BYTES);
    // Percent of the series that there is room for, and how many of the lines it finds at least.
    for (series, least) in [(105, 80), (150, 55), (300, 25), (1_000, 3)] {
        let (table, (mut cache, _)) = (table(), bounded(MAX_BYTES));
        let series = capacity * series / 100;
        let mut found = 0;
        for number in 0..40 {
            found += if number < 20 { 0 } else { round(&mut cache, &table, 0..series) };
        }
        let percent = found * 100 / (series * 20);
        assert!(percent >= least, "{percent} of {least} % where {series} series come to room for {capacity}");
    }
}

#[test]
fn series_that_come_no_longer_make_room_for_others() {
    const MAX_BYTES: usize = 100_000;
    let (capacity, table, (mut cache, _)) = (capacity(MAX_BYTES), table(), bounded(MAX_BYTES));
    let rounds = |cache: &mut SeriesCache, first: usize, count: usize| {
        (0..12).map(|_| round(cache, &table, first..first + count)).last().unwrap_or(0) * 100 / count
    };
    assert!(rounds(&mut cache, 0, capacity / 10 * 9) >= 99);
    let others = rounds(&mut cache, 1 << 19, capacity / 10 * 9);
    assert!(others >= 90, "{others} % of the others are found");
    // A tenth of the series is replaced by others each time.
    let least = (0..30).map(|step| rounds(&mut cache, step * capacity / 12, capacity / 6 * 5)).min();
    assert!(least >= Some(60), "{least:?} %");
}

proptest! {
    #[test]
    fn whatever_a_small_cache_forgets_it_never_says_another_series(
        max_bytes in 1..3_000_usize,
        requests in prop::collection::vec((prop::collection::vec(0..200_usize, 1..40), any::<u16>()), 1..60),
    ) {
        let (table, (mut cache, memory)) = (table(), bounded(max_bytes));
        let mut known = BTreeMap::new();
        for (numbers, guess) in requests {
            for number in numbers {
                // Of many lengths, some of them the beginnings of others.
                let key = format!("t,host={}", "x".repeat(number % 50) + &(number / 50).to_string());
                let next = u32::try_from(known.len()).unwrap();
                let series = *known.entry(key.clone()).or_insert(next);
                match cache.get(key.as_bytes(), guess.into()) {
                    Some(found) => prop_assert_eq!(found.series, series),
                    None => cache.insert(key.as_bytes(), &table, series),
                }
            }
            let found = |key: &String| cache.get(key.as_bytes(), guess.into()).is_some();
            prop_assert_eq!(known.keys().filter(|key| found(key)).count(), cache.len);
            let indexed: usize = cache.by_key.iter().map(HashTable::len).sum();
            prop_assert_eq!(indexed, cache.len);
        }
        drop(cache);
        prop_assert_eq!(memory.used(), 0);
    }
}
