//! SQL functions: those that DataFusion lacks and clients of time-series stores use, and limits on those that it has.
//! Pure: no function here sees a table.

mod bounded;
mod epoch;
mod time_bucket;

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;

pub(super) use self::bounded::limit;
use self::{bounded::bounded, epoch::Epoch, time_bucket::TimeBucket};

/// Returns DataFusion's functions and ours; none makes much more than `limit_bytes` of little at once.
pub(super) fn all(theirs: Vec<Arc<ScalarUDF>>, limit_bytes: usize) -> Vec<Arc<ScalarUDF>> {
    let epochs = [Epoch::new("epoch_ns", 1), Epoch::new("epoch_us", 1_000), Epoch::new("epoch_ms", 1_000_000)];
    let mut functions: Vec<Arc<ScalarUDF>> = epochs.into_iter().map(|epoch| Arc::new(ScalarUDF::from(epoch))).collect();
    functions.push(Arc::new(ScalarUDF::from(TimeBucket::default())));
    functions.extend(bounded(theirs, limit_bytes));
    functions
}
