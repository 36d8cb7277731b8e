//! Tables that a statement brings along.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray},
    datatypes::{Field, Int64Type, Schema},
};

use super::fake::{
    Cell::{Integer, Tag},
    Home::Buffer,
    Store, TableBuilder,
};
use crate::{Error, Statement};

fn store() -> Store {
    let store = Store::new();
    let row = |time, host, n| (time, vec![("host", Tag(host)), ("n", Integer(n))]);
    store.put("db", TableBuilder::new("cpu").part(Buffer, vec![row(1_000, "a", 1), row(2_000, "b", 2)]));
    store
}

fn hosts(names: &[&str]) -> RecordBatch {
    let hosts: ArrayRef = Arc::new(StringArray::from(names.to_vec()));
    RecordBatch::try_from_iter([("host", hosts)]).unwrap()
}

async fn count(store: &Store, database: &str, statement: Statement) -> Result<i64, Error> {
    let batches = store.query(database, &statement).await?.collect().await?;
    Ok(batches[0].column(0).as_primitive::<Int64Type>().value(0))
}

#[tokio::test]
async fn rows_of_the_caller_are_a_table_of_one_statement() {
    let store = store();
    let asked = Statement::parse("SELECT count(*) FROM cpu JOIN known USING (host)").unwrap();
    let known = vec![hosts(&["a"]), hosts(&["c"])];
    let statement = asked.clone().with_table("known", known.clone()).unwrap();
    assert_eq!(count(&store, "db", statement.clone()).await.unwrap(), 1);
    let missing = count(&store, "db", asked).await.unwrap_err();
    assert!(matches!(&missing, Error::TableNotFound { table, .. } if table == "known"), "{missing}");
    // They are in the database that is asked in.
    let elsewhere = Statement::parse("SELECT count(*) FROM other.known").unwrap().with_table("known", known).unwrap();
    assert!(matches!(count(&store, "db", elsewhere).await, Err(Error::TableNotFound { .. })));
}

#[tokio::test]
async fn a_table_that_is_there_comes_first_and_none_is_shown() {
    let store = store();
    let statement = |sql: &str| Statement::parse(sql).unwrap().with_table("cpu", vec![hosts(&["a"])]).unwrap();
    assert_eq!(count(&store, "db", statement("SELECT count(*) FROM cpu")).await.unwrap(), 2);
    let tables = "SELECT count(*) FROM information_schema.tables WHERE table_name = 'known'";
    let tables = Statement::parse(tables).unwrap().with_table("known", vec![hosts(&["a"])]).unwrap();
    assert_eq!(count(&store, "db", tables).await.unwrap(), 0);
}

#[test]
fn tables_without_columns_or_with_two_of_a_name_are_refused() {
    let statement = Statement::parse("SELECT 1").unwrap();
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let field = Field::new("n", numbers.data_type().clone(), true);
    let twice = Arc::new(Schema::new(vec![field.clone(), field]));
    let twice = RecordBatch::try_new(twice, vec![Arc::clone(&numbers), numbers.clone()]).unwrap();
    let other = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
    for (batches, expected) in
        [(vec![], "has no batch"), (vec![twice], "two columns called \"n\""), (vec![hosts(&["a"]), other], "mismatch")]
    {
        let refused = statement.clone().with_table("t", batches).unwrap_err();
        assert!(refused.to_string().to_lowercase().contains(expected), "{refused}");
    }
}
