//! What there is and what the server is, as clients of Flight SQL ask for it.

use arrow::{
    array::{Array, AsArray, RecordBatch},
    datatypes::{Int32Type, UInt32Type},
    ipc::convert::try_schema_from_ipc_buffer,
};
use arrow_flight::{
    FlightInfo,
    error::FlightError,
    sql::{
        CommandGetCrossReference, CommandGetDbSchemas, CommandGetExportedKeys, CommandGetImportedKeys,
        CommandGetPrimaryKeys, CommandGetTables, CommandGetXdbcTypeInfo, SqlInfo,
    },
};

use crate::{
    flight::{Client, client, fetch, text},
    support::Server,
};

async fn server() -> Server {
    let server = Server::new();
    for (database, line) in
        [("t", "cpu,host=a,core=1 usage=1.5 1"), ("t", "mem used=1i 1"), ("Plant", "pump,id=a rpm=1i 1")]
    {
        assert_eq!(server.post(&format!("/write?db={database}"), line).await.status, 204);
    }
    server
}

/// Fetches an answer of one batch, of none without rows, and checks that its columns were announced.
async fn one(client: &mut Client, info: Result<FlightInfo, FlightError>) -> RecordBatch {
    let info = info.unwrap();
    let announced = info.clone().try_decode_schema().unwrap();
    let mut batches = fetch(client, info).await.unwrap();
    let Some(batch) = batches.pop() else { return RecordBatch::new_empty(announced.into()) };
    assert!(batches.is_empty(), "{batches:?}");
    assert_eq!(*batch.schema(), announced);
    batch
}

fn tables(catalog: Option<&str>, database: Option<&str>, table: Option<&str>, types: &[&str]) -> CommandGetTables {
    CommandGetTables {
        catalog: catalog.map(str::to_owned),
        db_schema_filter_pattern: database.map(str::to_owned),
        table_name_filter_pattern: table.map(str::to_owned),
        table_types: types.iter().map(|name| (*name).to_owned()).collect(),
        include_schema: false,
    }
}

#[tokio::test]
async fn databases_are_the_schemas_of_one_catalog() {
    let server = server().await;
    let mut client = client(&server, "default");
    let info = client.get_catalogs().await;
    assert_eq!(text(&[one(&mut client, info).await]), ["arc"]);
    for (pattern, expected) in [(None, &["arc|Plant", "arc|t"][..]), (Some("P%"), &["arc|Plant"]), (Some("x"), &[])] {
        let asked = CommandGetDbSchemas { catalog: None, db_schema_filter_pattern: pattern.map(str::to_owned) };
        let info = client.get_db_schemas(asked).await;
        assert_eq!(text(&[one(&mut client, info).await]), expected, "{pattern:?}");
    }
    let info = client.get_table_types().await;
    assert_eq!(text(&[one(&mut client, info).await]), ["TABLE"]);
}

#[tokio::test]
async fn tables_are_found_by_patterns() {
    let server = server().await;
    let mut client = client(&server, "default");
    for (asked, expected) in [
        (tables(None, None, None, &[]), &["arc|Plant|pump|TABLE", "arc|t|cpu|TABLE", "arc|t|mem|TABLE"][..]),
        (tables(Some("arc"), Some("t"), Some("_pu"), &["TABLE"]), &["arc|t|cpu|TABLE"]),
        (tables(Some("other"), None, None, &[]), &[]),
        (tables(None, None, None, &["VIEW"]), &[]),
    ] {
        let info = client.get_tables(asked.clone()).await;
        assert_eq!(text(&[one(&mut client, info).await]), expected, "{asked:?}");
    }
    let info =
        client.get_tables(CommandGetTables { include_schema: true, ..tables(None, None, Some("cpu"), &[]) }).await;
    let found = one(&mut client, info).await;
    let schema = try_schema_from_ipc_buffer(found.column(4).as_binary::<i32>().value(0)).unwrap();
    let columns: Vec<_> = schema.fields().iter().map(|f| format!("{} {}", f.name(), f.data_type())).collect();
    assert_eq!(columns, ["time Timestamp(ns, \"UTC\")", "host Utf8", "core Utf8", "usage Float64"]);
}

#[tokio::test]
async fn the_key_of_a_table_is_its_tags_and_the_time() {
    let server = server().await;
    let mut client = client(&server, "default");
    let asked = |database: Option<&str>, table: &str| CommandGetPrimaryKeys {
        catalog: None,
        db_schema: database.map(str::to_owned),
        table: table.to_owned(),
    };
    for (database, table, expected) in
        [(Some("t"), "cpu", &["host", "core", "time"][..]), (None, "mem", &["time"]), (Some("Plant"), "cpu", &[])]
    {
        let info = client.get_primary_keys(asked(database, table)).await;
        let keys = one(&mut client, info).await;
        let columns: Vec<_> = keys.column(3).as_string::<i32>().iter().flatten().collect();
        assert_eq!(columns, expected, "{database:?} {table}");
        let positions = keys.column(4).as_primitive::<Int32Type>().values();
        assert!(positions.iter().copied().eq((1..).take(columns.len())), "{positions:?}");
    }
    let exported = client.get_exported_keys(CommandGetExportedKeys::default()).await;
    let imported = client.get_imported_keys(CommandGetImportedKeys::default()).await;
    let crossed = client.get_cross_reference(CommandGetCrossReference::default()).await;
    for info in [exported, imported, crossed] {
        assert_eq!(one(&mut client, info).await.num_rows(), 0);
    }
}

#[tokio::test]
async fn the_server_says_what_it_is() {
    let server = Server::new();
    let mut client = client(&server, "default");
    let info = client.get_sql_info(vec![SqlInfo::FlightSqlServerName, SqlInfo::FlightSqlServerBulkIngestion]).await;
    let two = one(&mut client, info).await;
    assert_eq!(two.column(0).as_primitive::<UInt32Type>().values(), &[0, 10]);
    assert_eq!(two.column(1).as_union().value(0).as_string::<i32>().value(0), "Arc");
    let info = client.get_sql_info(vec![]).await;
    assert!(one(&mut client, info).await.num_rows() > 20);
    let info = client.get_xdbc_type_info(CommandGetXdbcTypeInfo { data_type: None }).await;
    let all = one(&mut client, info).await;
    assert!(all.column(0).as_string::<i32>().iter().flatten().any(|name| name == "TIMESTAMP"));
    let info = client.get_xdbc_type_info(CommandGetXdbcTypeInfo { data_type: Some(-5) }).await;
    assert_eq!(one(&mut client, info).await.column(0).len(), 2);
}
