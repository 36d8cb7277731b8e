//! SQL.
use std::{
    pin::Pin,
    task::{Context, Poll},
};

use arc_core::{Engine, Result};
use arrow::{array::RecordBatch, datatypes::SchemaRef};
use futures::Stream;

pub(crate) struct Answer;
impl Answer {
    pub(crate) fn schema(&self) -> SchemaRef {
        std::sync::Arc::new(arrow::datatypes::Schema::empty())
    }
}
impl Stream for Answer {
    type Item = Result<RecordBatch>;
    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(None)
    }
}
pub(crate) async fn sql(_: &Engine, _: &str, _: &str) -> Result<Answer> {
    Ok(Answer)
}
