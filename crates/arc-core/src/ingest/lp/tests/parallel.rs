//! A body in splits gives what it gives in one.

use std::thread;

use bytes::Bytes;
use proptest::sample::Index;

use super::*;
use crate::{
    ingest::{
        decode_pool::{DecodePool, SharedWork},
        lp::{parallel::decode_splits, splits::Splits},
    },
    registry::Table,
};

/// Decodes a body cut at `cuts`, with the help of `threads`.
pub(super) fn decode_split(body: &[u8], cuts: &[usize], threads: usize, context: &Context<'_>) -> Staged {
    let body = Bytes::copy_from_slice(body);
    let splits = Splits::new(&body, context, cuts);
    thread::scope(|scope| {
        (0..threads).for_each(|_| drop(scope.spawn(|| splits.help())));
        decode_splits(&body, context, &splits)
    })
}

/// Returns what a request leaves behind: its refusals, all rows of all tables, and their schemas.
type Left = (Vec<u64>, Vec<(u64, u64, String)>, BTreeMap<String, Vec<(bool, String)>>, Vec<String>);

fn left(db: &Buffered, staged: &Staged) -> Left {
    let mut schemas: Vec<String> = db.0.tables().iter().map(|table| format!("{:?}", table.schema())).collect();
    schemas.sort();
    (staged.rejections.numbers.clone(), reasons(staged), db.rows(), schemas)
}

/// Writes bodies one after the other, in one and in splits, and compares.
fn assert_same(bodies: &[(String, Vec<usize>)], threads: usize) {
    let widen = ColumnTypes::new().on_conflict(OnConflict::Widen).string_columns(["long*1"]);
    assert_same_as(bodies, threads, TypePolicy::STRICT);
    assert_same_as(bodies, threads, TypePolicy::Settings(&widen));
}

fn assert_same_as(bodies: &[(String, Vec<usize>)], threads: usize, types: TypePolicy<'_>) {
    let (whole, parallel) = (Buffered::new(), Buffered::new());
    for (seq, (body, cuts)) in (1..).zip(bodies) {
        let expected = whole.write_as(seq, body, true, types, &[]);
        let found =
            parallel.write_with(seq, body, types, &[], |body, context| decode_split(body, cuts, threads, context));
        assert_eq!(left(&parallel, &found), left(&whole, &expected), "{body:?} cut at {cuts:?}");
    }
}

/// How many rows of `body` are found without the decoder of the whole body, cut in front of
/// `second`.
fn rows_of_splits(db: &Buffered, body: &str, second: &str) -> usize {
    let context = Context::plain(&db.0);
    let cut = body.find(second).unwrap();
    let splits = Splits::new(&Bytes::copy_from_slice(body.as_bytes()), &context, &[cut]);
    splits.help();
    splits.take(0).unwrap().tables.iter().map(|table| table.rows.len()).sum()
}

#[test]
fn parts_take_what_is_plain_and_end_in_front_of_all_else() {
    let db = Buffered::new();
    let text = Table::new(crate::model::TableSchema {
        database: "d".into(),
        table: "log".into(),
        has_primary_key: false,
        columns: Vec::new(),
    });
    db.0.add(Arc::new(text));
    for seq in 1..3 {
        db.write(seq, &format!("m,h=a x=1,s=\"t\" {seq}\nn,h=a y=1i {seq}\nlog,h=a text=\"t\" {seq}"), true);
    }
    let plain = "m,h=a x=1 5\nn,h=a y=2i 5\n# comment\n\n";
    assert_eq!(rows_of_splits(&db, &format!("{plain}{plain}m,h=a x=3 7"), "# comment"), 3, "the last line has no end");
    for odd in [
        "m,h=a x=1",
        "m,h=a z=1 6",
        "m,h=a,k=b x=1 6",
        "o,h=a x=1 6",
        "m,h=a x=t 6",
        "m,h=a x=1,x=? 6",
        "bad",
        "m,h=a x=\"not closed 6",
        "m,time=a x=1 6",
    ] {
        assert_eq!(rows_of_splits(&db, &format!("{plain}{plain}{odd}\n{plain}"), "# comment"), 2, "{odd}");
    }
    // What is new here can be the text of a string, unless there is none.
    for (new, rows) in [("m,h=b x=1 6\nm,h=b x=2 7", 6), ("m,h=c s=\"t\" 6\n", 2), ("log,h=b text=\"t\" 6\n", 5)] {
        assert_eq!(rows_of_splits(&db, &format!("{plain}{plain}{new}\n{plain}"), "# comment"), rows, "{new}");
    }
}

#[test]
fn text_with_lines_in_it_may_be_cut() {
    let line = "m,h=a s=\"one\nm,h=evil x=1 1\ntwo\" 5\n";
    let body = format!("{line}{line}m,h=a s=\"x\" 6");
    for cut in 0..body.len() {
        assert_same(&[(line.into(), vec![]), (line.into(), vec![]), (body.clone(), vec![cut])], 0);
    }
    let db = Buffered::new();
    db.write(1, line, true);
    db.write_with(2, &body, TypePolicy::STRICT, &[], |body, context| decode_split(body, &[body.len() / 2], 0, context));
    let next = db.0.table("m").unwrap().series.write().resolve([("h", "b")].into_iter()).unwrap();
    assert_eq!(next, 1, "what is text makes no series");
}

#[test]
fn series_that_parts_find_are_known_the_next_time() {
    let db = Buffered::new();
    db.write(1, "m,h=a x=1 1\n", true);
    let body = "m,h=b x=1 2\nm,h=c x=1 3\nm,h=d x=1 4";
    db.write_with(2, body, TypePolicy::STRICT, &[], |body, context| decode_split(body, &[12], 0, context));
    for key in ["m,h=b", "m,h=c", "m,h=d"] {
        assert!(db.0.series_cache.read().get(key.as_bytes(), 0).is_some(), "{key}");
    }
}

#[test]
fn cells_of_all_parts_count_together() {
    let wide: Vec<String> = (0..MAX_COLUMNS - 1).map(|i| format!("f{i}=1")).collect();
    let setup = format!("m,h=a {} 1\n", wide.join(","));
    let lines: String = (0..17_000).map(|i| format!("m,h=a f0=1 {}\n", i + 9)).collect();
    let body = format!("m,h=a f{}=1 8\n{lines}", MAX_COLUMNS - 2);
    let cuts = [body.find(" 4000\n").unwrap() + 6, body.find(" 16400\n").unwrap() + 7];
    let db = Buffered::new();
    db.write(1, &setup, true);
    db.write(2, &setup, true);
    let refused = |cuts: &[usize]| {
        let context = Context::plain(&db.0);
        decode_split(body.as_bytes(), cuts, 1, &context).rejections.numbers
    };
    assert!(!refused(&[]).is_empty());
    assert_eq!(refused(&cuts), refused(&[]));
}

#[test]
fn large_bodies_are_cut_where_threads_are_spare() {
    let db = Buffered::new();
    let line = |i: usize| format!("m,h={} x={i}i {i}\n", i % 10);
    let body: String = (0..60_000).map(line).collect();
    let body = Bytes::from(body);
    let decode = |cores: usize, others: usize| {
        let context = Context::plain(&db.0);
        let decode_pool = DecodePool::with_cores(cores);
        let _at_work = decode_pool.at_work();
        let staged = decode_parallel(&body, &context, &decode_pool, || others);
        assert_eq!(staged.points(), 60_000);
        staged.tables.len()
    };
    db.write(1, &line(0), true);
    assert_eq!([(1, 0), (4, 3), (2, 0), (4, 1)].map(|(cores, others)| decode(cores, others)), [1, 1, 2, 3]);
}

/// Something that a body can have at any place.
fn any_piece() -> impl Strategy<Value = String> {
    let odd = [
        "\n",
        "\r\n",
        "# \"\n",
        "bad\n",
        "m s=\"two\nm,a=p a=1 1\nthree\" 4\n",
        "m s=\"never\n",
        "m,a=p s=\"a\\\"\nb\"\n",
    ];
    prop_oneof![
        30 => (any_line(), 0i64..30, prop::sample::select(vec!["\n", "\r\n"]))
            .prop_map(|(line, time, end)| format!("{line} {time}{end}")),
        60 => (prop::sample::select(vec!["m,a=p", "m,a=q", "n", "m,b=p"]), 0i64..30)
            .prop_map(|(series, time)| format!("{series} long_name_of_a_field_1=1,c=2i {time}\n")),
        2 => any_line().prop_map(|line| format!("{line}\n")),
        3 => prop::sample::select(odd.to_vec()).prop_map(str::to_owned),
    ]
}

proptest! {
    #[test]
    fn a_body_may_be_cut_into_parts_anywhere(
        bodies in prop::collection::vec(
            (prop::collection::vec(any_piece(), 1..40), prop::collection::vec((any::<Index>(), any::<bool>()), 0..6), any::<bool>()),
            1..5,
        ),
        threads in 0usize..3,
    ) {
        let cut = |(pieces, places, is_ended): &(Vec<String>, Vec<(Index, bool)>, bool)| {
            let body = pieces.concat();
            let body = if *is_ended { body } else { body.trim_end().to_owned() };
            let mut cuts: Vec<usize> = places
                .iter()
                .map(|(place, at_line)| {
                    let at = place.index(body.len().max(1));
                    let line = body.as_bytes().iter().skip(at).position(|byte| *byte == b'\n').map_or(body.len(), |n| at + n + 1);
                    if *at_line { line } else { at }
                })
                .collect();
            cuts.sort_unstable();
            cuts.dedup();
            (body, cuts)
        };
        assert_same(&bodies.iter().map(cut).collect::<Vec<_>>(), threads);
    }
}
