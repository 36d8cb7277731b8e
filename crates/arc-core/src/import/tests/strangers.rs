//! Files as people have them: what they mean is found out, or asked for, and told.

use arrow::{
    array::{Date32Array, FixedSizeBinaryArray, Int32Array},
    datatypes::{Field, Schema},
};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use parquet::{
    arrow::{ARROW_SCHEMA_META_KEY, arrow_writer::ArrowWriterOptions, encode_arrow_schema},
    file::{metadata::KeyValue, properties::WriterProperties},
};

use super::*;

/// Imports one file into a table of its own; returns what was said and the rows, or the error.
fn one(name: &str, bytes: &[u8], options: ImportOptions) -> Result<(ImportReport, Vec<String>), String> {
    let (_dir, engine) = engine();
    let report = all_of(name, bytes, &options, &engine).map_err(|error| error.to_string())?;
    let rows = rows(&engine, "t");
    Ok((report, rows))
}

fn named(time: &str) -> ImportOptions {
    ImportOptions { time_column: Some(time.to_owned()), ..table("t") }
}

/// 2024-01-31.
const DAY: &str = "time=1706659200000000000";
const NOON: &str = "time=1706702400000000000";
/// 2024-04-01.
const SPRING: &str = "time=1711929600000000000";
/// 2024-01-01.
const NEW_YEAR: &str = "time=1704067200000000000";

#[test]
fn files_of_csv_are_what_they_look_like() {
    let utf16 = |text: &str| {
        let units: Vec<u16> = std::iter::once(0xfeff).chain(text.encode_utf16()).collect();
        units.iter().flat_map(|unit| unit.to_le_bytes()).collect::<Vec<u8>>()
    };
    let text = |text: &str| text.as_bytes().to_vec();
    let cases: Vec<(&str, Vec<u8>, ImportOptions, String)> = vec![
        ("a.csv", text("time,v\n20240131,1\n"), table("t"), format!("{DAY} v=1")),
        ("a.csv", text("Date,v\n2024/01/31,1\n"), table("t"), format!("{DAY} v=1")),
        ("a.csv", text("timestamp,v\n2024-01-31T12:00Z,1\n"), table("t"), format!("{NOON} v=1")),
        ("a.csv", text("time,v\n31/01/2024 12:00,1\n"), table("t"), format!("{NOON} v=1")),
        ("a.csv", text("day,hour,v\n2024-01-31,12,1\n"), named("day,hour"), format!("{NOON} v=1")),
        ("a.csv", text("day,at,v\n31.01.2024,12:00,1\n"), named("day,at"), format!("{NOON} v=1")),
        ("a.csv", text("year,month,day,hour,v\n2024,1,31,12,1\n"), named("year,month,day,hour"), format!("{NOON} v=1")),
        ("a.csv", text("a,b,v\n2024-01-31,x,1\n"), named("a"), format!("{DAY} b=x v=1")),
        ("a.csv", text("year,quarter,v\n2024,2,1\n"), named("year,quarter"), format!("{SPRING} v=1")),
        ("a.csv", text("Qtr,YEAR,v\n2.0,2024.0,1\n"), named("Qtr,YEAR"), format!("{SPRING} v=1")),
        ("a.csv", text("year,q,v\n2024,Q2,1\n"), named("year,q"), format!("{SPRING} v=1")),
        ("a.csv", text("at,v\n2024Q2,1\n"), named("at"), format!("{SPRING} v=1")),
        ("a.csv", text("year,v\n2024,1\n"), named("year"), format!("{NEW_YEAR} v=1")),
        ("a.csv", text("Year,v\n2024.0,1\n"), named("Year"), format!("{NEW_YEAR} v=1")),
        ("a.csv", text("year,doy,v\n2024,31,1\n"), patterned("year,doy", "%Y %j"), format!("{DAY} v=1")),
        ("a.csv", text("year,week,day,v\n2024,5,3,1\n"), patterned("year,week,day", "%G %V %u"), format!("{DAY} v=1")),
        ("a.csv", text(",v\n2024-01-31,1\n"), table("t"), format!("{DAY} v=1")),
        ("a.csv", text(";v;w\n31.01.2024 12:00;1;2\n"), table("t"), format!("{NOON} v=1 w=2")),
        (
            "a.csv",
            text("time, \"s\", u\n2024-01-31, \"a \"\"b\"\" c\", \"d\"\n"),
            table("t"),
            format!("{DAY} s=a \"b\" c u=d"),
        ),
        ("a.csv", text(",time,v\n0,2024-01-31,1\n"), table("t"), format!("{DAY} v=1")),
        ("a.csv", text("time,v,\n2024-01-31,1,\n"), table("t"), format!("{DAY} v=1")),
        ("a.csv", text("time,v,\n2024-01-31,1\n"), table("t"), format!("{DAY} v=1")),
        ("a.csv", text("time,v\n2024-01-31,1,\n"), table("t"), format!("{DAY} v=1")),
        ("a.csv", text("time,\"v\n(m)\"\n2024-01-31,1\n"), table("t"), format!("{DAY} v (m)=1")),
        ("a.csv", text("time, v, s\n2024-01-31, 1, a b \n"), table("t"), format!("{DAY} v=1 s=a b")),
        ("a.csv", text("time,v,s\n2024-01-31, 1, a\n"), table("t"), format!("{DAY} v=1 s= a")),
        ("a.csv", text("time;v;w\n2024-01-31;1,5;2\n"), table("t"), format!("{DAY} v=1.5 w=2")),
        ("a.csv", text("time;v\n2024-01-31;1,234\n"), table("t"), format!("{DAY} v=1,234")),
        ("a.csv", text("time,\"a;b;c\"\n2024-01-31,1\n"), table("t"), format!("{DAY} a;b;c=1")),
        ("a.csv", text("time|v\n2024-01-31|1\n"), table("t"), format!("{DAY} v=1")),
        ("a.tsv", text("time\tv,w\n2024-01-31\t1\n"), table("t"), format!("{DAY} v,w=1")),
        ("a.csv", utf16("time,v\n2024-01-31,ü\n"), table("t"), format!("{DAY} v=ü")),
        ("a.csv", text("time,v,w\n2024-01-31,1,2\n"), without("w"), format!("{DAY} v=1")),
        ("a.csv", text("time,v,x\n2024-01-31,1,none\n"), null("none"), format!("{DAY} v=1")),
        ("a.csv", text("time,v\n45322.5,1\n"), format("excel"), format!("{NOON} v=1")),
        ("a.csv", text("time,v\n01/31/24,1\n"), format("%m/%d/%y"), format!("{DAY} v=1")),
    ];
    for (name, bytes, options, expected) in cases {
        let shown = String::from_utf8_lossy(&bytes).into_owned();
        let (report, rows) = one(name, &bytes, options).unwrap_or_else(|error| panic!("{shown}: {error}"));
        assert_eq!((report.refused, rows), (0, vec![expected]), "{shown}");
    }
}

fn without(name: &str) -> ImportOptions {
    ImportOptions { exclude: vec![name.to_owned()], ..table("t") }
}

fn null(word: &str) -> ImportOptions {
    ImportOptions { nulls: vec![word.to_owned()], ..table("t") }
}

fn format(format: &str) -> ImportOptions {
    ImportOptions { time_format: Some(format.parse().unwrap()), ..table("t") }
}

fn patterned(time: &str, pattern: &str) -> ImportOptions {
    ImportOptions { time_column: Some(time.to_owned()), ..format(pattern) }
}

#[test]
fn parts_of_a_year_are_what_their_column_says() {
    for part in ["week", "Week", "doy", "period", "semester"] {
        let body = format!("year,{part},v\n2024,5,1\n");
        let error = one("a.csv", body.as_bytes(), named(&format!("year,{part}"))).unwrap_err();
        assert!(error.contains(part) && error.contains("%G %V %u"), "{error}");
    }
    // What is missing is no midnight, and no January.
    let (report, rows) = one("a.csv", b"day,at,v\n2024-01-31,,1\n2024-01-31,12:00,2\n", named("day,at")).unwrap();
    assert_eq!((report.refused, rows), (1, vec![format!("{NOON} v=2")]));
    let (report, _) = one("a.csv", b"year,month,v\n2024,,1\n2024,2,2\n", named("year,month")).unwrap();
    assert_eq!((report.rows, report.refused), (1, 1));
    let (report, _) = one("a.csv", b"year,quarter,v\n2024,5,1\n2024,4,2\n", named("year,quarter")).unwrap();
    assert_eq!((report.rows, report.refused), (1, 1));
}

#[test]
fn an_index_without_a_name_is_the_time_if_it_has_times() {
    for index in ["0", "1959", "20240131", "x", ""] {
        let error = one("a.csv", format!(",v\n{index},1\n").as_bytes(), table("t")).unwrap_err();
        assert!(error.contains("there are v; say which it is"), "{index}: {error}");
    }
    let (report, _) = one("a.csv", b",time,v\n2023-01-31,2024-01-31,1\n", table("t")).unwrap();
    assert_eq!(report.types[0].kind, "left out");
    let file = |name: &str, index: ArrayRef| {
        let value: ArrayRef = Arc::new(Int32Array::from(vec![7]));
        let batch = RecordBatch::try_from_iter([("v", value), (name, index)]).unwrap();
        let mut parquet = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        parquet.write(&batch).unwrap();
        parquet.into_inner().unwrap()
    };
    let time: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![1_706_659_200_000_000_000]));
    let number: ArrayRef = Arc::new(Int32Array::from(vec![1_706_659_200]));
    for name in ["", "__index_level_0__"] {
        let (_, rows) = one("a.parquet", &file(name, Arc::clone(&time)), table("t")).unwrap();
        assert_eq!(rows, [format!("{DAY} v=7")], "{name}");
        let error = one("a.parquet", &file(name, Arc::clone(&number)), table("t")).unwrap_err();
        assert!(error.contains("say which it is"), "{name}: {error}");
    }
}

#[test]
fn what_may_mean_two_things_is_asked_for() {
    let cases = [
        ("time,v\n1,1\n2,2\n", "precision"),
        ("time,v\n45322.5,1\n", "time_format"),
        ("time,v\n2008.75,1\n", "time_format"),
        ("time,v\n01/02/2024,1\n02/03/2024,2\n", "%d/%m/%Y"),
        ("date,hour,v\n2024-01-31,5,1\n", "time_column"),
        ("a;b\n1;2\n", "there are a, b"),
        (",\n1,2\n", "there are ;"),
    ];
    for (body, says) in cases {
        let error = one("a.csv", body.as_bytes(), table("t")).unwrap_err();
        assert!(error.contains(says), "{body}: {error}");
    }
    let number: ArrayRef = Arc::new(Int32Array::from(vec![1959, 1960]));
    let seconds: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let days: ArrayRef = Arc::new(Date32Array::from(vec![19_753, 19_754]));
    let hours: ArrayRef = Arc::new(Int32Array::from(vec![12, 13]));
    let file = |columns: &[(&str, &ArrayRef)]| {
        let columns = columns.iter().map(|(name, array)| (*name, Arc::clone(array)));
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut parquet = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        parquet.write(&batch).unwrap();
        parquet.into_inner().unwrap()
    };
    let (report, rows) = one("a.parquet", &file(&[("time", &number), ("v", &seconds)]), table("t")).unwrap();
    assert_eq!(rows[1], "time=-347155200000000000 v=1");
    assert_eq!(report.time_form.as_deref(), Some("digits of YYYY"));
    let error = one("a.parquet", &file(&[("time", &seconds), ("v", &number)]), table("t")).unwrap_err();
    assert!(error.contains("precision"), "{error}");
    let together = file(&[("d", &days), ("h", &hours), ("v", &seconds), ("w", &number)]);
    let options = ImportOptions { exclude: vec!["w".to_owned()], ..named("d,h") };
    let (report, rows) = one("a.parquet", &together, options).unwrap();
    assert_eq!(rows[0], "time=1706702400000000000 v=1");
    let kinds: Vec<_> = report.types.iter().map(|column| (&*column.name, &*column.kind)).collect();
    assert_eq!(kinds, [("w", "left out"), ("d", "time"), ("h", "time"), ("v", "Int32")]);
}

#[test]
fn rows_that_are_refused_do_not_decide_and_what_decided_is_told() {
    let units = "time,temp\n,degC\n2024-01-31,1.5\n2024-02-01,2\nTotal,n/a\ntime,temp\n";
    let (report, rows) = one("a.csv", units.as_bytes(), table("t")).unwrap();
    assert_eq!((report.rows, report.refused, rows[0].as_str()), (2, 3, "time=1706659200000000000 temp=1.5"));
    let body =
        "at,host,n,word,none,seldom,odd\n1706659200,a,1,NA,,NA,1\n1706659201,b,NA,x,,2.5,2\n1706659202,c,2,y,,-,x\n";
    let options = ImportOptions { tags: vec!["host".to_owned()], ..named("at") };
    let (report, rows) = one("a.csv", body.as_bytes(), options).unwrap();
    assert_eq!(rows[1], "time=1706659201000000000 host=b n= word=x seldom=2.5 odd=2");
    let kinds: Vec<_> = report.types.iter().map(|column| (&*column.name, &*column.kind)).collect();
    assert_eq!(
        kinds,
        [
            ("at", "time"),
            ("host", "tag"),
            ("n", "integer"),
            ("word", "string"),
            ("none", "empty"),
            ("seldom", "float"),
            ("odd", "string")
        ]
    );
    let decided: Vec<_> = report.types.iter().map(|column| column.decided_by.clone()).collect();
    assert_eq!(decided[2], Some((2, "1".to_owned())));
    assert_eq!(decided[5], Some((3, "2.5".to_owned())));
    assert_eq!(decided[6], Some((4, "x".to_owned())));
    assert_eq!(report.time_form.as_deref(), Some("seconds since 1970"));
}

#[test]
fn types_that_arrow_cannot_make_are_refused_by_their_column() {
    let time: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![1_706_659_200_000_000_000]));
    let wide: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter([[7_u8; 16]].iter()).unwrap());
    let batch = RecordBatch::try_from_iter([("time", time), ("v", wide)]).unwrap();
    let time = Field::new("time", batch.schema().field(0).data_type().clone(), false);
    let types = [
        DataType::Int64,
        DataType::List(Arc::new(Field::new_list_field(DataType::Int64, true))),
        DataType::Dictionary(Box::new(DataType::Int64), Box::new(DataType::Utf8)),
    ];
    for data_type in types {
        // As Polars says that a column is of 128-bit integers: Arrow has no such type.
        let carried = encode_arrow_schema(&Schema::new(vec![time.clone(), Field::new("v", data_type.clone(), true)]));
        let mut carried = BASE64_STANDARD.decode(carried).unwrap();
        let widths: Vec<usize> = (0..carried.len()).filter(|at| carried[*at..].starts_with(&[64, 0, 0, 0])).collect();
        // The last one is the integer: what is before it are places of other things.
        carried[*widths.last().unwrap()] = 128;
        let pair = KeyValue::new(ARROW_SCHEMA_META_KEY.to_owned(), BASE64_STANDARD.encode(&carried));
        let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![pair])).build();
        let options = ArrowWriterOptions::new().with_skip_arrow_metadata(true).with_properties(properties);
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new_with_options(&mut bytes, batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let error = one("a.parquet", &bytes, table("t")).unwrap_err();
        assert!(error.contains("column \"v\" has the type"), "{data_type}: {error}");
        let (report, _) = one("a.parquet", &bytes, without("v")).unwrap();
        assert_eq!((report.rows, report.refused), (1, 0), "{data_type}");
    }
}
