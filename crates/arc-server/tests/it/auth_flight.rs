//! Tokens and their rights by Arrow Flight: the handshake, the headers, and what each call may touch.

use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch, StringArray, TimestampNanosecondArray};
use arrow_flight::{
    encode::FlightDataEncoderBuilder,
    sql::{CommandGetDbSchemas, CommandGetTables, CommandStatementIngest},
};
use futures::{TryStreamExt, stream};
use hyper::Method;
use serde_json::json;
use tonic::Code;

use crate::{
    auth::Closed,
    flight::{self, Client, fails, fetch, status_of},
};

async fn scene() -> Closed {
    let closed = Closed::with(|config| config.delete.enabled = true);
    for (database, lines) in [("plant", "pump,id=1 rpm=1 1\nvalve,id=1 open=1 1"), ("office", "salary,id=1 v=7 1")] {
        let path = format!("/write?db={database}");
        assert_eq!(closed.send(&closed.admin, Method::POST, &path, lines).await.status, 204);
    }
    closed
}

fn client(closed: &Closed, token: &str) -> Client {
    let mut client = flight::client(&closed.server, "plant");
    client.set_header("authorization", format!("Bearer {token}"));
    client
}

async fn count(client: &mut Client, sql: &str) -> Result<usize, arrow_flight::error::FlightError> {
    let info = client.execute(sql.to_owned(), None).await?;
    Ok(fetch(client, info).await?.iter().map(RecordBatch::num_rows).sum())
}

#[tokio::test]
async fn a_client_logs_in_with_the_token_as_its_password() {
    let closed = scene().await;
    let mut client = flight::client(&closed.server, "plant");
    let refused = client.execute("SELECT 1".to_owned(), None).await;
    fails(refused, Code::Unauthenticated, "Authentication required");
    let wrong = client.handshake("somebody", "guess").await.unwrap_err();
    assert!(wrong.to_string().contains("Invalid or expired token"), "{wrong}");
    client.handshake("somebody", &closed.admin).await.unwrap();
    assert_eq!(client.token().map(String::as_str), Some(closed.admin.as_str()));
    assert_eq!(count(&mut client, "SELECT * FROM pump").await.unwrap(), 1);
    for value in [format!("Token {}", closed.admin), closed.admin.clone()] {
        let mut client = flight::client(&closed.server, "plant");
        client.set_header("authorization", value);
        assert_eq!(count(&mut client, "SELECT * FROM pump").await.unwrap(), 1);
    }
    let plain = flight::plain(&closed.server).list_actions().await;
    assert!(plain.is_err(), "every call asks for a token");
}

#[tokio::test]
async fn a_reader_of_one_table_reads_it_and_no_other() {
    let closed = scene().await;
    let one = json!({"name": "one", "permissions": ["read"], "databases": ["plant"], "tables": ["pump"]});
    let mut client = client(&closed, &closed.token(one).await);
    assert_eq!(count(&mut client, "SELECT * FROM pump").await.unwrap(), 1);
    for sql in ["SELECT * FROM valve", "SELECT * FROM office.salary", "SHOW COLUMNS FROM office.salary"] {
        fails(client.execute(sql.to_owned(), None).await, Code::PermissionDenied, "read required");
        let prepared = client.prepare(sql.to_owned(), None).await;
        fails(prepared.map(drop), Code::PermissionDenied, "read required");
    }
    for sql in ["INSERT INTO pump (time, id, rpm) VALUES (2, '2', 2)", "DROP TABLE pump", "CREATE DATABASE x"] {
        let done = client.execute_update(sql.to_owned(), None).await;
        assert_eq!(status_of(done.unwrap_err()).code(), Code::PermissionDenied, "{sql}");
        let as_query = client.execute(sql.to_owned(), None).await;
        assert_eq!(status_of(as_query.unwrap_err()).code(), Code::PermissionDenied, "{sql}");
    }
    let schemas = client.get_db_schemas(CommandGetDbSchemas { catalog: None, db_schema_filter_pattern: None }).await;
    let schemas = fetch(&mut client, schemas.unwrap()).await.unwrap();
    assert_eq!(schemas.iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
    let tables = client.get_tables(CommandGetTables { include_schema: true, ..CommandGetTables::default() }).await;
    let tables = fetch(&mut client, tables.unwrap()).await.unwrap();
    let names = tables[0].column_by_name("table_name").unwrap().as_any().downcast_ref::<StringArray>().unwrap();
    assert_eq!(names.iter().flatten().collect::<Vec<_>>(), ["pump"]);
}

#[tokio::test]
async fn a_ticket_and_a_prepared_statement_are_worth_what_their_bearer_may() {
    let closed = scene().await;
    let mut admin = client(&closed, &closed.admin);
    let info = admin.execute("SELECT * FROM office.salary".to_owned(), None).await.unwrap();
    let one = json!({"name": "one", "permissions": ["read"], "databases": ["plant"]});
    let mut reader = client(&closed, &closed.token(one).await);
    let taken = fetch(&mut reader, info.clone()).await;
    fails(taken, Code::PermissionDenied, "read required");
    // Nothing is kept of a change that would be refused.
    let change = reader.prepare("DROP TABLE office.salary".to_owned(), None).await;
    fails(change.map(drop), Code::PermissionDenied, "delete required");
    assert_eq!(fetch(&mut admin, info).await.unwrap().len(), 1);
    let mut nobody = flight::client(&closed.server, "plant");
    let ticket = admin.execute("SELECT 1".to_owned(), None).await.unwrap().endpoint[0].ticket.clone().unwrap();
    fails(nobody.do_get(ticket).await.map(drop), Code::Unauthenticated, "required");
}

#[tokio::test]
async fn rows_go_where_their_sender_may_write() {
    let closed = scene().await;
    let one = json!({"name": "one", "permissions": ["write"], "databases": ["plant"], "tables": ["pump"]});
    let mut client = client(&closed, &closed.token(one).await);
    let batch = RecordBatch::try_from_iter([
        ("time", Arc::new(TimestampNanosecondArray::from(vec![5])) as _),
        ("rpm", Arc::new(Int64Array::from(vec![5])) as _),
    ]);
    let batch = batch.unwrap();
    for (table, schema, is_fine) in [("pump", None, true), ("valve", None, false), ("pump", Some("office"), false)] {
        let command = CommandStatementIngest {
            table_definition_options: None,
            table: table.to_owned(),
            schema: schema.map(str::to_owned),
            ..CommandStatementIngest::default()
        };
        let batches = stream::iter([Ok(batch.clone())]);
        match client.execute_ingest(command, batches).await {
            Ok(rows) => assert!(is_fine && rows == 1, "{table} {schema:?}"),
            Err(error) => {
                let status = status_of(error);
                assert!(!is_fine && status.code() == Code::PermissionDenied, "{table} {schema:?}: {status:?}");
            }
        }
    }
    let done = client.execute_update("INSERT INTO pump (time, rpm) VALUES (6, 6)".to_owned(), None).await;
    assert_eq!(done.unwrap(), 1);
    fails(client.execute("SELECT * FROM pump".to_owned(), None).await, Code::PermissionDenied, "read required");
    let tables = client.get_tables(CommandGetTables { include_schema: true, ..CommandGetTables::default() }).await;
    let tables = fetch(&mut client, tables.unwrap()).await.unwrap();
    assert_eq!(tables.iter().map(RecordBatch::num_rows).sum::<usize>(), 0, "columns are for readers");
    let path = arrow_flight::FlightDescriptor::new_path(vec!["plant".into(), "valve".into()]);
    let encoder = FlightDataEncoderBuilder::new().with_flight_descriptor(Some(path));
    let messages: Vec<_> = encoder.build(stream::iter([Ok(batch)])).try_collect().await.unwrap();
    let sent = client.do_put(stream::iter(messages)).await;
    assert!(sent.is_err(), "a path is a table as well");
}
