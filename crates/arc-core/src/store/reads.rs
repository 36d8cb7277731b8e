//! An object store as queries read it: whole answers or an error, within a time limit.
//!
//! Only reads. A body that breaks off, a request that fails or hangs is asked for again; the
//! requests run on the client's own threads, so that no connection dies with the runtime of the
//! query that opened it.

use std::{fmt, ops::Range, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use object_store::{
    CopyOptions, Error as StoreError, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, path::Path as StorePath,
};

use super::client::{StoreClient, check_length};

/// What the errors of a store say that was asked as often as it may be, and may answer later.
pub(crate) const UNANSWERED: &str = "unanswering object store";

/// [`ObjectStore`] below a prefix of a client's store.
#[derive(Debug)]
pub(super) struct StoreReads {
    client: Arc<StoreClient>,
    prefix: StorePath,
}

/// What came, without the stream that it came in.
struct Whole {
    meta: ObjectMeta,
    range: Range<u64>,
    attributes: object_store::Attributes,
    bytes: Bytes,
}

impl StoreReads {
    pub(super) fn new(client: Arc<StoreClient>, prefix: StorePath) -> Self {
        Self { client, prefix }
    }

    fn key(&self, location: &StorePath) -> Result<StorePath> {
        // As it is: `join` would encode what is encoded already.
        Ok(StorePath::parse(format!("{}/{location}", self.prefix))?)
    }
}

impl fmt::Display for StoreReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.client.store(), self.prefix)
    }
}

#[async_trait]
impl ObjectStore for StoreReads {
    async fn get_opts(&self, location: &StorePath, options: GetOptions) -> Result<GetResult> {
        let key = self.key(location)?;
        let head = options.head;
        let get = || {
            let (store, key, options) = (self.client.store(), key.clone(), options.clone());
            async move {
                let got = store.get_opts(&key, options).await?;
                let (meta, range, attributes) = (got.meta.clone(), got.range.clone(), got.attributes.clone());
                let bytes = if head { Bytes::new() } else { got.bytes().await? };
                if !head {
                    check_length(bytes.len(), range.end - range.start)?;
                }
                Ok(Whole { meta, range, attributes, bytes })
            }
        };
        let Whole { meta, range, attributes, bytes } = self.client.ask_later(get).await.map_err(unanswered)?;
        let meta = ObjectMeta { location: location.clone(), ..meta };
        let payload = GetResultPayload::Stream(stream::iter([Ok(bytes)]).boxed());
        Ok(GetResult { payload, meta, range, attributes })
    }

    async fn get_ranges(&self, location: &StorePath, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let key = self.key(location)?;
        let get = || {
            let (store, key, ranges) = (self.client.store(), key.clone(), ranges.to_vec());
            async move {
                let found = store.get_ranges(&key, &ranges).await?;
                check_length(found.len(), ranges.len() as u64)?;
                for (bytes, range) in found.iter().zip(&ranges) {
                    check_length(bytes.len(), range.end - range.start)?;
                }
                Ok(found)
            }
        };
        self.client.ask_later(get).await.map_err(unanswered)
    }

    async fn put_opts(&self, _: &StorePath, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        Err(read_only("put"))
    }

    async fn put_multipart_opts(&self, _: &StorePath, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        Err(read_only("put"))
    }

    fn delete_stream(&self, _: BoxStream<'static, Result<StorePath>>) -> BoxStream<'static, Result<StorePath>> {
        stream::iter([Err(read_only("delete"))]).boxed()
    }

    fn list(&self, _: Option<&StorePath>) -> BoxStream<'static, Result<ObjectMeta>> {
        stream::iter([Err(read_only("list"))]).boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&StorePath>) -> Result<ListResult> {
        Err(read_only("list"))
    }

    async fn copy_opts(&self, _: &StorePath, _: &StorePath, _: CopyOptions) -> Result<()> {
        Err(read_only("copy"))
    }
}

/// Marks the errors of stores that come and go.
fn unanswered(error: StoreError) -> StoreError {
    match error {
        StoreError::Generic { source, .. } => StoreError::Generic { store: UNANSWERED, source },
        other => other,
    }
}

fn read_only(operation: &str) -> StoreError {
    StoreError::NotImplemented { operation: operation.into(), implementer: "StoreReads".into() }
}
