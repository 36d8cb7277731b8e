mod logged;
mod parallel;

use std::{collections::BTreeMap, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray, RecordBatch},
    datatypes::{DataType, TimestampNanosecondType},
    util::{
        display::{ArrayFormatter, FormatOptions},
        pretty::pretty_format_batches,
    },
};
use proptest::prelude::*;

use super::*;
use crate::{
    ColumnTypes, LineDecoder, OnConflict, SequenceNumber,
    buffer::ChunkReader,
    ingest::{TypePolicy, staged::Rejections},
    memory::MemoryBudget,
    model::{ColumnKind, TableSchema},
    registry::{Database, Layout, Table},
};

/// Decodes `body` into database `db` and registers what it adds, as the engine does.
fn write(db: &Arc<Database>, body: &str, precision: Option<Precision>, skip: &[u64]) -> Staged {
    let context = Context { receive_ns: 1_000, precision, skip, ..Context::plain(db) };
    let as_rows = decode_rows(body.as_bytes(), &context);
    let mut staged = decode(body.as_bytes(), &context);
    assert_eq!(reasons(&as_rows), reasons(&staged));
    assert_eq!((as_rows.points(), as_rows.rejections.numbers), (staged.points(), staged.rejections.numbers.clone()));
    staged.tables.retain(|table| !table.rows.is_empty());
    for table in &staged.tables {
        table.table.set_schema(table.grown_schema());
        db.add(Arc::clone(&table.table));
    }
    staged
}

fn database() -> Arc<Database> {
    Arc::new(Database::new("d", 0, true))
}

fn batch(staged: Staged, table: &str) -> RecordBatch {
    let table = staged.tables.into_iter().find(|t| t.name() == table).unwrap();
    let reader = ChunkReader::new(table.table.schema(), Arc::clone(&table.table.series));
    reader.rows(&Arc::new(table.rows.into_chunk().unwrap())).all().unwrap()
}

fn shown(staged: Staged, table: &str) -> String {
    let batch = batch(staged, table);
    let mut columns: Vec<(String, ArrayRef)> =
        batch.schema().fields().iter().map(|f| f.name().clone()).zip(batch.columns().iter().cloned()).collect();
    columns[0].1 = arrow::compute::cast(&columns[0].1, &DataType::Int64).unwrap();
    pretty_format_batches(&[RecordBatch::try_from_iter(columns).unwrap()]).unwrap().to_string()
}

fn reasons(staged: &Staged) -> Vec<(u64, u64, String)> {
    staged.rejections.first.iter().map(|r| (r.line, r.column, r.reason.clone())).collect()
}

#[test]
fn points_become_rows_with_nulls_where_something_is_absent() {
    let staged = write(&database(), "m,h=a x=1,s=\"t\" 5\nm,h=b,z=1 x=2i,b=t 6\nm x=3 7\n", None, &[]);
    assert!(staged.rejections.numbers.is_empty());
    assert_eq!(
        shown(staged, "m"),
        "\
+------+---+---+-----+---+------+
| time | h | z | x   | s | b    |
+------+---+---+-----+---+------+
| 5    | a |   | 1.0 | t |      |
| 6    | b | 1 | 2.0 |   | true |
| 7    |   |   | 3.0 |   |      |
+------+---+---+-----+---+------+"
    );
}

#[test]
fn every_kind_of_bad_line_is_named_and_the_good_lines_around_it_stay() {
    // What stands between two good lines, the column and a part of the reason.
    let cases = [
        ("m,h=a", 6, "field"),
        ("m,h= x=1 1", 5, "tag"),
        (",h=a x=1 1", 1, "measurement"),
        ("m,h=a x= 1", 9, "value"),
        ("m,h=a x=1 nope", 11, "timestamp"),
        ("m,h=a x=1 99999999999999999999", 11, "timestamp"),
        (
            "m,h=a x=\"s\" 1",
            7,
            "field type conflict: input field \"x\" on measurement \"m\" is type string, already exists as type float; the \
             setting on_conflict = \"widen\" would let it in",
        ),
        ("m,h=a h=1 1", 7, "field \"h\" on measurement \"m\" is a tag already"),
        ("m h=1 1", 3, "field \"h\" on measurement \"m\" is a tag already"),
        ("m,h=a,q=1 q=1 1", 11, "field \"q\" has the name of a tag"),
        ("m,x=a y=1 1", 0, "tag \"x\" on measurement \"m\" is a field already"),
        ("m,h=a,h=b x=1 1", 0, "tag \"h\" comes twice"),
        ("m,h=a n=1i,n=\"t\" 1", 12, "comes twice"),
        ("m,h=a time=1 1", 7, "time column"),
        ("m,time=a x=1 1", 0, "time column"),
        ("m\u{1},h=a x=1 1", 0, "control character"),
        ("m,h=a \u{1}=1 1", 7, "control character"),
    ];
    for (bad, column, reason) in cases {
        let db = database();
        let staged = write(&db, &format!("m,h=a x=1 1\n{bad}\nm,h=a x=2 2\n"), None, &[]);
        let found = reasons(&staged);
        assert_eq!(found.len(), 1, "{bad}: {found:?}");
        assert_eq!((found[0].0, found[0].1), (2, column), "{bad}: {found:?}");
        assert!(found[0].2.contains(reason), "{bad}: {found:?}");
        assert_eq!(staged.points(), 2, "{bad}");
        let schema = db.table("m").unwrap().schema();
        assert_eq!(schema.columns.len(), 2, "{bad} must leave no column behind");
    }
}

#[test]
fn names_of_all_kinds_are_kept_and_long_ones_are_refused() {
    let long = "n".repeat(257);
    let db = database();
    let staged = write(&db, "a/b..,../t=😀 \\ sp=1 1\n", None, &[]);
    assert_eq!(staged.points(), 1);
    let schema = db.table("a/b..").unwrap().schema();
    assert!(schema.position("../t").is_some() && schema.position(" sp").is_some());
    for line in [format!("{long} x=1"), format!("m,{long}=1 x=1"), format!("m {long}=1")] {
        let staged = write(&database(), &line, None, &[]);
        assert_eq!(staged.points(), 0);
        assert!(staged.rejections.first[0].reason.contains("longer than 256 bytes"));
        assert!(staged.rejections.first[0].reason.len() < 200);
    }
}

#[test]
fn timestamps_are_scaled_exactly_or_refused() {
    let second = Some(Precision::Second);
    let cases = [
        (None, "9223372036854775807", Some(i64::MAX)),
        (None, "-9223372036854775808", Some(i64::MIN)),
        (second, "9223372036", Some(9_223_372_036_000_000_000)),
        (second, "9223372037", None),
        (second, "-9223372037", None),
        (Some(Precision::Microsecond), "-1", Some(-1_000)),
        (Some(Precision::Hour), "1", Some(3_600_000_000_000)),
    ];
    for (precision, written, expected) in cases {
        let staged = write(&database(), &format!("m x=1 {written}"), precision, &[]);
        assert_eq!(staged.tables.first().map(|t| t.rows.time[0]), expected, "{written}");
        assert_eq!(staged.rejections.numbers.len(), usize::from(expected.is_none()));
    }
}

#[test]
fn points_without_a_timestamp_get_distinct_times_of_arrival() {
    let staged = write(&database(), "m x=1\nm x=2\nm x=3 7\nm x=4", None, &[]);
    assert_eq!(staged.tables[0].rows.time, [1_000, 1_001, 7, 1_002]);
}

#[test]
fn the_cache_and_the_slow_path_find_the_same_series() {
    let db = database();
    for _ in 0..3 {
        let staged = write(&db, "m,h=a,z=1 x=1 1\nm,z=1,h=a x=1 2\nm,h=b x=1 3\n", None, &[]);
        assert_eq!(staged.tables[0].rows.series, [0, 0, 1]);
    }
    assert!(db.series_cache.read().get(b"m,z=1,h=a", 0).is_some());
}

#[test]
fn a_known_series_has_no_tags_of_the_line_before() {
    let db = database();
    for _ in 0..2 {
        write(&db, "n,h=1 x=1 1", None, &[]);
    }
    let staged = write(&db, "m,y=1 x=1 1\nn,h=1 y=2 2", None, &[]);
    assert_eq!(reasons(&staged), []);
}

#[test]
fn tags_of_a_request_that_was_decoded_and_never_stored_come_again() {
    let db = database();
    write(&db, "m,h=1 x=1 1", None, &[]);
    let context = Context::plain(&db);
    for _ in 0..3 {
        let refused = decode(b"m,h=1,z=2 x=1 2", &context);
        assert_eq!(refused.tables[0].added.iter().map(|column| column.name.as_ref()).collect::<Vec<_>>(), ["z"]);
    }
}

#[test]
fn shuffled_and_repeated_fields_find_their_columns() {
    let db = database();
    write(&db, "m a=1,b=2,c=3 1", None, &[]);
    let staged = write(&db, "m c=3,a=1,b=2 1\nm b=5,b=6 2\nm a=1,d=4,c=3 3\n", None, &[]);
    assert_eq!(
        shown(staged, "m"),
        "\
+------+-----+-----+-----+-----+
| time | a   | b   | c   | d   |
+------+-----+-----+-----+-----+
| 1    | 1.0 | 2.0 | 3.0 |     |
| 2    |     | 6.0 |     |     |
| 3    | 1.0 |     | 3.0 | 4.0 |
+------+-----+-----+-----+-----+"
    );
}

#[test]
fn replay_passes_over_the_lines_that_were_rejected() {
    let body = "m x=1 1\nm x=\"bad\" 2\nbroken\nm x=3 3\n";
    let db = database();
    let first = write(&db, body, None, &[]);
    assert_eq!(first.rejections.numbers, [2, 3]);
    let again = write(&db, body, None, &first.rejections.numbers);
    assert!(again.rejections.numbers.is_empty());
    assert_eq!(again.points(), first.points());
}

#[test]
fn lines_that_tags_refuse_do_not_move_the_times_of_the_others() {
    let body = "t,a=1 v=0\nt,b=1,b=2 v=1\nt,a=1 v=2\n";
    let db = database();
    let first = write(&db, body, None, &[]);
    assert_eq!(first.tables[0].rows.time, [1_000, 1_001]);
    let again = write(&db, body, None, &first.rejections.numbers);
    assert_eq!(again.tables[0].rows.time, first.tables[0].rows.time);
}

#[test]
fn a_table_has_a_limit_of_columns_and_a_request_of_empty_cells() {
    let wide: Vec<String> = (0..MAX_COLUMNS).map(|i| format!("f{i}=1")).collect();
    let db = database();
    let staged = write(&db, &format!("m {} 1\nm one_more=1 2\nm f1=1 3\n", wide.join(",")), None, &[]);
    assert_eq!(staged.rejections.numbers, [2]);
    assert!(staged.rejections.first[0].reason.contains("more than 4096 columns"));
    let staged = write(&database(), &format!("m {},f=1 1", wide.join(",")), None, &[]);
    assert!(staged.rejections.first[0].reason.contains("more than 4096 fields"));
    // Each line has one of all columns: their cells are counted, not their values.
    let sparse: String = (0..20_000).map(|i| format!("m f{}=1 {i}\n", i % MAX_COLUMNS)).collect();
    let staged = write(&db, &sparse, None, &[]);
    assert!(!staged.rejections.numbers.is_empty());
    assert!(staged.rejections.first[0].reason.contains("too many columns empty"), "{:?}", staged.rejections.first[0]);
}

#[test]
fn tags_of_an_append_only_table_are_text_fields() {
    let db = database();
    let schema = crate::model::TableSchema {
        database: "d".into(),
        table: "m".into(),
        has_primary_key: false,
        columns: vec![crate::model::Column { name: "host".into(), kind: ColumnKind::Field, data_type: DataType::Utf8 }],
    };
    db.add(Arc::new(crate::registry::Table::new(schema)));
    let staged = write(&db, "m,host=a,zone=z x=1 1\nm,host=a host=\"b\" 2\nm,x=1 y=1 3", None, &[]);
    let found = reasons(&staged);
    assert_eq!(found.iter().map(|(line, ..)| *line).collect::<Vec<_>>(), [2, 3], "{found:?}");
    assert_eq!(
        shown(staged, "m"),
        "\
+------+------+-----+------+
| time | host | x   | zone |
+------+------+-----+------+
| 1    | a    | 1.0 | z    |
+------+------+-----+------+"
    );
    let layout: Arc<Layout> = db.table("m").unwrap().layout();
    assert!(layout.schema.tags().next().is_none());
}

#[test]
fn a_name_with_escapes_finds_its_column_also_after_a_bad_line_took_one_back() {
    let db = database();
    // The second line proposes `b c` and is bad; the third proposes another column in its place.
    let body = "m a\\ b=1 1\nm b\\ c=1,a\\ b=\"bad\" 2\nm d\\ e=2,a\\ b=3 3\nm b\\ c=4,d\\ e=5 4\n";
    let staged = write(&db, body, None, &[]);
    assert_eq!(reasons(&staged).iter().map(|(line, column, _)| (*line, *column)).collect::<Vec<_>>(), [(2, 10)]);
    assert_eq!(
        shown(staged, "m"),
        "\
+------+-----+-----+-----+
| time | a b | d e | b c |
+------+-----+-----+-----+
| 1    | 1.0 |     |     |
| 3    | 3.0 | 2.0 |     |
| 4    |     | 5.0 | 4.0 |
+------+-----+-----+-----+"
    );
}

/// A database whose tables have buffers, as in an engine.
struct Buffered(Arc<Database>);

impl Buffered {
    fn new() -> Self {
        Self(database())
    }

    /// Writes as the engine does, with staged rows or without.
    fn write(&self, seq: u64, body: &str, as_rows: bool) -> Staged {
        self.write_as(seq, body, as_rows, TypePolicy::STRICT, &[])
    }

    /// The same, with the numbers of lines to pass over.
    fn write_as(&self, seq: u64, body: &str, as_rows: bool, types: TypePolicy<'_>, skip: &[u64]) -> Staged {
        self.write_with(seq, body, types, skip, if as_rows { decode_rows } else { decode })
    }

    fn write_with(
        &self,
        seq: u64,
        body: &str,
        types: TypePolicy<'_>,
        skip: &[u64],
        decode: impl Fn(&[u8], &Context<'_>) -> Staged,
    ) -> Staged {
        let context = Context { skip, types, ..Context::plain(&self.0) };
        let mut staged = decode(body.as_bytes(), &context);
        staged.tables.retain(|table| !table.rows.is_empty());
        let fits = |table: &StagedTable| {
            let mut to_floats = table.widened.iter().filter(|(_, column)| column.data_type == DataType::Float64);
            to_floats.all(|(index, _)| table.table.fits_floats(*index).unwrap())
        };
        if !staged.tables.iter().all(fits) {
            return self.write_with(seq, body, types, skip, decode);
        }
        for table in &staged.tables {
            if table.changes_schema() || !table.table.is_registered() {
                table.table.set_schema(table.grown_schema());
                self.0.add(Arc::clone(&table.table));
            }
        }
        let held = || {
            self.0.staging.buffer.drain().unwrap();
            self.0.tables().iter().map(|table| table.undrained_rows().buffer.bytes()).sum::<usize>()
        };
        let before = held();
        let refused = Rejections { numbers: staged.rejections.numbers.clone(), first: staged.rejections.first.clone() };
        let counted = Staged { rejections: refused, ..Staged::new(&self.0) };
        let bytes = crate::engine::apply_rows(SequenceNumber(seq), staged).unwrap();
        assert_eq!(held() - before, bytes, "what is taken of the memory is given back");
        counted
    }

    /// Returns all rows of all tables, in the order of their arrival, by whether they were late.
    fn rows(&self) -> BTreeMap<String, Vec<(bool, String)>> {
        let options = FormatOptions::default().with_null("-");
        let of = |table: &Arc<Table>| {
            let (parts, schema) = (table.undrained_rows().buffer.snapshot().unwrap(), table.schema());
            let reader = ChunkReader::new(Arc::clone(&schema), Arc::clone(&table.series));
            let mut rows = Vec::new();
            for (late, chunk) in parts.iter().flat_map(|part| part.chunks.iter().map(|chunk| (part.late, chunk))) {
                let batch = reader.rows(chunk).all().unwrap();
                let (fields, mut columns) = (batch.schema(), batch.columns().to_vec());
                columns[0] = arrow::compute::cast(&columns[0], &DataType::Int64).unwrap();
                let shown =
                    fields.fields().iter().zip(&columns).map(|(field, column)| {
                        (field.name().clone(), ArrayFormatter::try_new(column, &options).unwrap())
                    });
                let shown: Vec<_> = shown.collect();
                let value =
                    |row| shown.iter().map(move |(name, of)| (name, of.value(row).to_string())).filter(|v| v.1 != "-");
                rows.extend((0..batch.num_rows()).map(|row| (late, format!("{:?}", value(row).collect::<Vec<_>>()))));
            }
            rows.sort_by_key(|(late, _)| *late);
            (schema.table.to_string(), rows)
        };
        self.0.tables().iter().map(of).collect()
    }
}

#[test]
fn a_line_that_is_refused_changes_no_type() {
    let types = ColumnTypes::new().on_conflict(OnConflict::Widen);
    for (known, bad, good) in [
        ("m a=1i,b=true 1", "m a=0.5,b=?", "m a=2i"),
        ("m a=1i,b=true 1", "m a=0.5,b=\"t\",c=?", "m a=2i,b=false"),
        ("m a=1i 1", "m a=2i,a=0.5,a=\"t\",a=? 2", "m a=3i"),
        ("m a=1i 1", "m a=0.5 99999999999999999999", "m a=3i"),
    ] {
        let db = Buffered::new();
        for body in [known.to_owned(), format!("{good} 2\n{bad}\n{good} 3\n")] {
            let staged = db.write_as(1, &body, false, TypePolicy::Settings(&types), &[]);
            assert_eq!(staged.rejections.numbers.len(), usize::from(body.contains(bad)), "{body}");
        }
        let table = db.0.table("m").unwrap();
        let expected = [DataType::Int64, DataType::Boolean];
        let found: Vec<_> = table.schema().columns.iter().map(|column| column.data_type.clone()).collect();
        assert_eq!(found, expected[..found.len()], "{bad}");
        assert!(!db.rows().is_empty());
    }
}

#[test]
fn few_lines_of_a_table_are_staged_as_rows_and_the_ones_after_them_are_not() {
    let db = Buffered::new();
    db.write(1, "m,h=a x=1,s=\"t\" 1\nn,h=a x=1i 1\n", true);
    let context = Context::plain(&db.0);
    let decoded = |body: &str| {
        let staged = decode_rows(body.as_bytes(), &context);
        (staged.rows.len(), staged.tables.iter().map(|table| table.rows.len()).collect::<Vec<_>>())
    };
    let m = |lines: usize| "m,h=a s=\"t\",x=2 5\n".repeat(lines);
    // The cache has the series from the second request on that names its tags.
    db.write(2, "m,h=a x=1 2\nn,h=a x=1i 2\n", true);
    assert_eq!(decoded(&format!("{}n,h=a x=2i 6\n", m(3))), (4, vec![]));
    assert_eq!(decoded(&m(9)), (4, vec![5]));
    for odd in ["x=1i", "y=1", "x=1,x=2", "s=\"a\\\"b\"", "\\x=1", "x=?", "x=1,s=1"] {
        let good = usize::from(!["x=?", "x=1,s=1"].contains(&odd));
        let (as_rows, staged) = decoded(&format!("{}m,h=a {odd} 7\n{}", m(2), m(1)));
        assert_eq!(
            (as_rows, staged.iter().sum::<usize>() + as_rows),
            (if odd == "x=?" { 3 } else { 2 }, 3 + good),
            "{odd}"
        );
    }
    // A series that is new says its table by name.
    assert_eq!(decoded(&format!("{}m,h=b x=1 8\n{}", m(1), m(1))), (1, vec![2]));
}

#[test]
fn staged_rows_count_among_the_cells_of_a_request() {
    let wide: Vec<String> = (0..MAX_COLUMNS - 1).map(|i| format!("f{i}=1")).collect();
    let lines: String = (0..17_000).map(|i| format!("m,h=a f0=1 {}\n", i + 9)).collect();
    let body = format!("m,h=a f{}=1 8\n{lines}", MAX_COLUMNS - 2);
    let refused = [false, true].map(|as_rows| {
        let db = Buffered::new();
        for seq in 1..3 {
            db.write(seq, &format!("m,h=a {} {seq}\n", wide.join(",")), as_rows);
        }
        db.write(3, &body, as_rows).rejections.numbers
    });
    assert!(!refused[0].is_empty());
    assert_eq!(refused[0], refused[1]);
}

/// What a request gave: rows as (table, time, values by name), and refusals as (line, column,
/// reason).
type Outcome = (Vec<(String, i64, BTreeMap<String, String>)>, Vec<(u64, u64, String)>);

/// Adds the outcome of one request to `all`, its lines counted from `first_line`.
fn collect(decoder: &mut LineDecoder, body: &[u8], first_line: u64, all: &mut Outcome) {
    let decoded = decoder.decode(body, 0).unwrap();
    for table in decoded.tables {
        let batch = table.batch;
        let times = batch.column(0).as_primitive::<TimestampNanosecondType>().clone();
        let columns: Vec<(String, ArrayFormatter<'_>, &ArrayRef)> = (batch.schema().fields().iter())
            .zip(batch.columns())
            .skip(1)
            .map(|(f, c)| (f.name().clone(), ArrayFormatter::try_new(c, &FormatOptions::default()).unwrap(), c))
            .collect();
        for row in 0..batch.num_rows() {
            let present = columns.iter().filter(|(.., column)| !column.is_null(row));
            let values = present.map(|(name, shown, _)| (name.clone(), shown.value(row).to_string())).collect();
            all.0.push((table.name.to_string(), times.value(row), values));
        }
    }
    all.1.extend(decoded.rejected.into_iter().map(|r| (r.line + first_line - 1, r.column, r.reason)));
}

/// One line, often good, of few names: they meet again with other types, in other orders, as tags,
/// with escapes.
fn any_line() -> impl Strategy<Value = String> {
    let name =
        || prop::sample::select(vec!["a", "b", "c", "x\\ y", "long_name_of_a_field_1", "long_name_of_a_field_2"]);
    let values = vec!["1", "2.5", "3i", "9007199254740993i", "4u", "t", "\"s\"", "\"a\\\"b\"", "\"ü\"", "?", "", "1i"];
    let field = (name(), prop::sample::select(values)).prop_map(|(name, value)| format!("{name}={value}"));
    let tags = prop::collection::vec((name(), "[pq]"), 0..3);
    let measurement = prop::sample::select(vec!["m", "n", "o\\ p"]);
    (measurement, tags, prop::collection::vec(field, 1..5)).prop_map(|(measurement, tags, fields)| {
        let tags: String = tags.iter().map(|(name, value)| format!(",{name}={value}")).collect();
        format!("{measurement}{tags} {}", fields.join(","))
    })
}

proptest! {
    #[test]
    fn tables_that_take_turns_get_what_they_get_alone(
        requests in prop::collection::vec(prop::collection::vec((any_line(), 0i64..30), 1..30), 1..5),
    ) {
        let (as_rows, staged, alone) = (Buffered::new(), Buffered::new(), Buffered::new());
        for (seq, lines) in (1..).zip(&requests) {
            let lines: Vec<String> = lines.iter().map(|(line, time)| format!("{line} {time}\n")).collect();
            let found = as_rows.write(seq, &lines.concat(), true);
            let expected = staged.write(seq, &lines.concat(), false);
            prop_assert_eq!(reasons(&found), reasons(&expected));
            for table in ["m", "n", "o"] {
                let of_table = |line: &&String| line.starts_with(table);
                alone.write(seq, &lines.iter().filter(of_table).cloned().collect::<String>(), false);
            }
        }
        let found = as_rows.rows();
        prop_assert_eq!(&found, &staged.rows());
        prop_assert_eq!(&found, &alone.rows());
    }

    #[test]
    fn columns_that_change_their_type_do_so_on_every_path_and_in_the_log(
        requests in prop::collection::vec(prop::collection::vec((any_line(), 0i64..30), 1..30), 1..5),
    ) {
        let types = ColumnTypes::new().on_conflict(OnConflict::Widen).string_columns(["long*1"]);
        let policy = TypePolicy::Settings(&types);
        let (as_rows, staged, replayed) = (Buffered::new(), Buffered::new(), Buffered::new());
        let mut refused = Vec::new();
        for (seq, lines) in (1..).zip(&requests) {
            let body: String = lines.iter().map(|(line, time)| format!("{line} {time}\n")).collect();
            let found = as_rows.write_as(seq, &body, true, policy, &[]);
            let expected = staged.write_as(seq, &body, false, policy, &[]);
            prop_assert_eq!(reasons(&found), reasons(&expected));
            refused.push((seq, body, found.rejections.numbers));
        }
        prop_assert_eq!(as_rows.rows(), staged.rows());
        // With the schemas that the tables have in the end, as when a flush has put them into the
        // manifest.
        for table in as_rows.0.tables() {
            replayed.0.add(Arc::new(Table::new(TableSchema::clone(&table.schema()))));
        }
        for (seq, body, numbers) in refused {
            let found = replayed.write_as(seq, &body, true, TypePolicy::Logged, &numbers);
            prop_assert_eq!(reasons(&found), vec![]);
        }
        prop_assert_eq!(as_rows.rows(), replayed.rows());
    }

    #[test]
    fn a_request_equals_its_lines_one_by_one(lines in prop::collection::vec(any_line(), 1..40), cut in 0usize..40) {
        let lines: Vec<String> = lines.iter().zip(1..).map(|(line, time)| format!("{line} {time}\n")).collect();
        let (mut fast, mut slow) = (Outcome::default(), Outcome::default());
        let (mut together, mut alone) = (LineDecoder::new(), LineDecoder::new());
        // Two requests, so that the second one meets tables and series that are known.
        let (first, second) = lines.split_at(cut.min(lines.len()));
        collect(&mut together, first.concat().as_bytes(), 1, &mut fast);
        collect(&mut together, second.concat().as_bytes(), 1 + first.len() as u64, &mut fast);
        for (line, number) in lines.iter().zip(1..) {
            collect(&mut alone, line.as_bytes(), number, &mut slow);
        }
        fast.0.sort();
        slow.0.sort();
        prop_assert_eq!(fast.1, slow.1);
        prop_assert_eq!(fast.0, slow.0);
    }
}

proptest! {
    /// With a cache that keeps next to nothing, and whatever the order of series, requests come to the
    /// same rows.
    #[test]
    fn rows_are_the_same_with_a_cache_that_forgets(
        requests in prop::collection::vec(prop::collection::vec((0..60_u32, 0..3_u32), 1..80), 1..8),
        max_bytes in 1..2_000_usize,
    ) {
        let (small, all) = (database(), database());
        small.series_cache.write().bound(max_bytes, &Arc::new(MemoryBudget::new(1 << 30, 0)));
        let mut time = 0;
        for request in requests {
            let mut line = |(host, zone): &(u32, u32)| {
                time += 1;
                format!("m,host=h{host},zone={zone} x={time} {time}\n")
            };
            let body: String = request.iter().map(&mut line).collect();
            let [of_small, of_all] = [&small, &all].map(|db| write(db, &body, None, &[]));
            prop_assert_eq!(shown(of_small, "m"), shown(of_all, "m"));
        }
    }
}
