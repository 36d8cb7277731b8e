//! What holds for any payload.

use proptest::prelude::*;

use super::*;

/// The columns of a model: what is sent, and what must come out, row by row.
#[derive(Debug, Clone)]
enum ColumnModel {
    Floats(Vec<Option<f64>>),
    Integers(Vec<Option<i64>>),
    Unsigned(Vec<Option<u64>>),
    Booleans(Vec<Option<bool>>),
    Texts(Vec<Option<String>>),
}

impl ColumnModel {
    fn value(&self, row: usize) -> V {
        match self {
            Self::Floats(v) => v[row].map_or(N, F),
            Self::Integers(v) => v[row].map_or(N, I),
            Self::Unsigned(v) => v[row].map_or(N, V::Uint),
            Self::Booleans(v) => v[row].map_or(N, B),
            Self::Texts(v) => v[row].clone().map_or(N, V::Owned),
        }
    }

    fn cell(&self, row: usize) -> Option<String> {
        match self {
            Self::Floats(v) => v[row].map(|v| format!("{v:?}")),
            Self::Integers(v) => v[row].map(|v| v.to_string()),
            Self::Unsigned(v) => v[row].map(|v| format!("{v}u")),
            Self::Booleans(v) => v[row].map(|v| v.to_string()),
            Self::Texts(v) => v[row].as_ref().map(|v| format!("{v:?}")),
        }
    }

    fn has_value(&self, rows: usize) -> bool {
        (0..rows).any(|row| self.cell(row).is_some())
    }
}

/// Values of which all, or only some, are there.
fn values<T: std::fmt::Debug + Clone + 'static>(
    rows: usize,
    one: impl Strategy<Value = T> + Clone + 'static,
) -> BoxedStrategy<Vec<Option<T>>> {
    let full = prop::collection::vec(one.clone().prop_map(Some), rows);
    prop_oneof![full, prop::collection::vec(prop::option::of(one), rows)].boxed()
}

fn column(rows: usize) -> impl Strategy<Value = ColumnModel> {
    let integers = prop_oneof![any::<i64>(), -200i64..200];
    let above = (1u64 << 63)..=u64::MAX;
    prop_oneof![
        values(rows, any::<f64>()).prop_map(ColumnModel::Floats),
        values(rows, integers).prop_map(ColumnModel::Integers),
        values(rows, above).prop_map(ColumnModel::Unsigned),
        values(rows, any::<bool>()).prop_map(ColumnModel::Booleans),
        values(rows, ".{0,40}").prop_map(ColumnModel::Texts),
    ]
}

fn table() -> impl Strategy<Value = (Vec<i64>, Vec<ColumnModel>)> {
    (1usize..20)
        .prop_flat_map(|rows| (prop::collection::vec(any::<i64>(), rows), prop::collection::vec(column(rows), 1..6)))
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

fn expected(times: &[i64], columns: &[ColumnModel]) -> Vec<String> {
    let line = |row: usize| {
        let cells = NAMES.iter().zip(columns).filter_map(|(name, c)| Some(format!(" {name}={}", c.cell(row)?)));
        format!("t {}{}", times[row], cells.collect::<String>())
    };
    (0..times.len()).map(line).collect()
}

fn as_columns(times: &[i64], columns: &[ColumnModel]) -> V {
    let rows = times.len();
    let time = ("time", A(times.iter().map(|time| I(*time)).collect()));
    let fields = NAMES.iter().zip(columns).map(|(name, c)| (*name, A((0..rows).map(|row| c.value(row)).collect())));
    columnar("t", std::iter::once(time).chain(fields).collect())
}

fn as_rows(times: &[i64], columns: &[ColumnModel]) -> V {
    let row = |row: usize| {
        let fields = NAMES.iter().zip(columns).map(|(name, c)| (*name, c.value(row))).collect();
        M(vec![("m", T("t")), ("t", I(times[row])), ("fields", M(fields))])
    };
    A((0..times.len()).map(row).collect())
}

/// The bodies that mutations start from: rows and columns with every kind of value.
fn seeds() -> Vec<Vec<u8>> {
    let columns = [
        ColumnModel::Floats(vec![Some(1.5), None]),
        ColumnModel::Integers(vec![Some(-1), Some(1 << 40)]),
        ColumnModel::Unsigned(vec![Some(u64::MAX), None]),
        ColumnModel::Booleans(vec![Some(true), Some(false)]),
        ColumnModel::Texts(vec![Some("ü".into()), Some("x".repeat(40))]),
    ];
    let (by_column, by_row) = (as_columns(&[1, 2], &columns), as_rows(&[1, 2], &columns));
    let tagged = M(vec![
        ("m", T("t")),
        ("h", T("x")),
        ("t", V::Ext(-1, vec![0; 4])),
        ("tags", M(vec![("zone", T("a"))])),
        ("f", A(vec![I(1)])),
    ]);
    let batch = M(vec![("batch", A(vec![by_column.clone(), tagged]))]);
    [by_column, by_row, batch].iter().map(V::pack).collect()
}

proptest! {
    #[test]
    fn columns_come_out_as_they_went_in((times, columns) in table()) {
        prop_assume!(columns.iter().any(|column| column.has_value(times.len())));
        let given = Given::nothing().precision(Precision::Nanosecond);
        let sent = as_columns(&times, &columns);
        prop_assert_eq!(given.rows(&sent), expected(&times, &columns));
        // Replay sees the table that the write made.
        given.register(&given.decode(&sent));
        prop_assert_eq!(given.rows(&sent), expected(&times, &columns));
    }

    #[test]
    fn rows_and_columns_are_the_same_points((times, columns) in table()) {
        let full = |row: &usize| columns.iter().any(|column| column.cell(*row).is_some());
        prop_assume!((0..times.len()).all(|row| full(&row)));
        let given = Given::nothing().precision(Precision::Nanosecond);
        let by_column = given.decode(&as_columns(&times, &columns));
        given.register(&by_column);
        prop_assert_eq!(given.rows(&as_rows(&times, &columns)), rows(by_column));
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Given::nothing().decode_bytes(&body).map(rows);
    }

    #[test]
    fn damaged_payloads_are_decoded_or_refused(
        seed in 0usize..3,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        has_primary_key in any::<bool>(),
    ) {
        let mut body = seeds().swap_remove(seed);
        for (at, byte) in damage {
            let at = at.index(body.len());
            body[at] = byte;
        }
        let given = if has_primary_key { Given::table("t", true).tags(&["e"]) } else { Given::nothing() };
        if let Ok(staged) = given.decode_bytes(&body) {
            let (points, numbers) = (staged.points(), staged.rejections.numbers.clone());
            prop_assert!(points > 0 || !numbers.is_empty());
            prop_assert!(numbers.is_sorted());
            prop_assert_eq!(rows(staged).len(), points);
        }
    }

    #[test]
    fn replay_of_a_damaged_payload_stores_the_same(
        seed in 0usize..3,
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut body = seeds().swap_remove(seed);
        let at = at.index(body.len());
        body[at] = byte;
        let mut given = Given::nothing();
        if let Ok(staged) = given.decode_bytes(&body) {
            given.register(&staged);
            given.skip = staged.rejections.numbers.clone();
            let again = given.decode_bytes(&body).unwrap();
            prop_assert_eq!(&again.rejections.first, &[]);
            let (mut live, mut replayed) = (rows(staged), rows(again));
            live.sort();
            replayed.sort();
            prop_assert_eq!(live, replayed);
        }
    }
}
