//! Readers of data files whose footers and page indexes are read and decoded once, and whose bytes
//! are all checked.

use std::{fmt, ops::Range, sync::Arc};

use bytes::Bytes;
use datafusion::{
    common::{Result, internal_datafusion_err},
    datasource::{
        listing::PartitionedFile,
        physical_plan::parquet::{CachedParquetFileReaderFactory, ParquetFileReaderFactory},
    },
    execution::cache::cache_manager::FileMetadataCache,
    physical_plan::metrics::ExecutionPlanMetricsSet,
};
use futures::{FutureExt, future::BoxFuture};
use object_store::ObjectStore;
use parquet::{
    arrow::{arrow_reader::ArrowReaderOptions, async_reader::AsyncFileReader},
    errors::Result as ParquetResult,
    file::metadata::{PageIndexPolicy, ParquetMetaData},
};

use super::checked::CheckedReads;
use crate::datafile::{FileChecks, FileComparison};

/// Makes readers that remember page indexes along with footers.
///
/// DataFusion's own remember what they are asked for. A scan asks for a footer first, and reads the
/// page indexes of the whole file later, past the cache: most of the time that a small question
/// takes.
pub(super) struct IndexedReaders {
    store: Arc<dyn ObjectStore>,
    footers: Arc<FileMetadataCache>,
}

impl IndexedReaders {
    pub(super) fn new(store: Arc<dyn ObjectStore>, footers: Arc<FileMetadataCache>) -> Self {
        Self { store, footers }
    }
}

impl fmt::Debug for IndexedReaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexedReaders").field("store", &self.store).finish_non_exhaustive()
    }
}

impl ParquetFileReaderFactory for IndexedReaders {
    fn create_reader(
        &self,
        partition: usize,
        file: PartitionedFile,
        size_hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let checks = file.extension::<FileChecks>().copied();
        let checks = checks.ok_or_else(|| internal_datafusion_err!("a data file without checksums"))?;
        // One read brings all that the footer is in.
        let size_hint = match checks.checked() {
            FileComparison::Blocks { tail } => usize::try_from(checks.bytes.saturating_sub(tail)).ok(),
            FileComparison::Whole | FileComparison::Not => size_hint,
        };
        let store = CheckedReads::new(Arc::clone(&self.store), file.object_meta.clone(), checks, &self.footers);
        let readers = CachedParquetFileReaderFactory::new(Arc::new(store), Arc::clone(&self.footers));
        Ok(Box::new(IndexedReader(readers.create_reader(partition, file, size_hint, metrics)?)))
    }
}

struct IndexedReader(Box<dyn AsyncFileReader + Send>);

impl AsyncFileReader for IndexedReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        self.0.get_bytes(range)
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        self.0.get_byte_ranges(ranges)
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        async move {
            let options = options.cloned().unwrap_or_default().with_page_index_policy(PageIndexPolicy::Optional);
            self.0.get_metadata(Some(&options)).await
        }
        .boxed()
    }
}
