//! SQL functions that DataFusion lacks and clients of time-series stores use. Pure: no function here sees a table.

mod epoch;
mod time_bucket;

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;

use self::{epoch::Epoch, time_bucket::TimeBucket};

/// Returns all functions, to be added to DataFusion's own.
pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let epochs = [Epoch::new("epoch_ns", 1), Epoch::new("epoch_us", 1_000), Epoch::new("epoch_ms", 1_000_000)];
    let mut functions: Vec<Arc<ScalarUDF>> = epochs.into_iter().map(|epoch| Arc::new(ScalarUDF::from(epoch))).collect();
    functions.push(Arc::new(ScalarUDF::from(TimeBucket::default())));
    functions
}
