//! The threads that plan: planning recurses as deep as a statement is, and keeps a core busy.
//!
//! Nothing can end a thread from outside. One whose statement no thread waits for any more ends at
//! the next rule of the optimizer, gives its permit to others at once, and is counted until then;
//! too many of these, and nothing is planned.

use std::{
    cell::RefCell,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use datafusion::{
    common::{DataFusionError, Result as PlanResult, config::ConfigOptions, tree_node::Transformed},
    logical_expr::LogicalPlan,
    optimizer::{AnalyzerRule, ApplyOrder, OptimizerConfig, OptimizerRule},
    physical_optimizer::{PhysicalOptimizerContext, PhysicalOptimizerRule},
    physical_plan::ExecutionPlan,
};
use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::{Semaphore, oneshot},
};

use super::error;
use crate::{Error, Result};

/// Stack of a planning thread. Only pages that are touched take memory.
pub(super) const STACK_BYTES: usize = 64 << 20;

/// Threads for each core that plan for a thread that waits.
const FOR_EACH_CORE: usize = 2;

/// How many times as many may still be at it that no thread waits for.
const ABANDONED: usize = 4;

thread_local! {
    /// The statement that this thread plans.
    static JOB: RefCell<Option<Arc<PlanningJob>>> = const { RefCell::new(None) };
}

/// The threads that plan.
#[derive(Debug)]
pub(super) struct Threads {
    /// One for each statement that is planned while a thread waits.
    permits: Semaphore,
    most_abandoned: usize,
    counts: Arc<Mutex<PlanningCounts>>,
}

#[derive(Debug, Default)]
struct PlanningCounts {
    running: usize,
    abandoned: usize,
}

/// One statement that is planned.
#[derive(Debug)]
struct PlanningJob {
    is_abandoned: AtomicBool,
    is_over: AtomicBool,
    /// Held wherever one of the two is written.
    counts: Arc<Mutex<PlanningCounts>>,
}

impl Threads {
    pub(super) fn new() -> Self {
        let permits = FOR_EACH_CORE * thread::available_parallelism().map_or(1, usize::from);
        Self { permits: Semaphore::new(permits), most_abandoned: ABANDONED * permits, counts: Arc::default() }
    }

    /// Returns how many threads there are, and how many of them no thread waits for any more.
    pub(super) fn counts(&self) -> (usize, usize) {
        let counts = self.counts.lock();
        (counts.running, counts.abandoned)
    }

    /// Does `work` on a thread with much stack, once not too many others are at it. A caller that
    /// stops waiting gives up `work`, which ends when it asks [`check`].
    pub(super) async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
        let runtime = Handle::try_current().map_err(|_| Error::internal("SQL needs a tokio runtime"))?;
        let _permit = self.permits.acquire().await.map_err(|e| Error::internal(e.to_string()))?;
        if self.counts.lock().abandoned >= self.most_abandoned {
            return Err(error::busy("too many statements are still planned whose time is over"));
        }
        let (sender, receiver) = oneshot::channel();
        let running = Running::begin(Arc::clone(&self.counts));
        let _waiting = WaitingCaller(Arc::clone(&running.0));
        let work = move || {
            JOB.set(Some(Arc::clone(&running.0)));
            // Some plans start tasks.
            let _runtime = runtime.enter();
            let planned = catch_unwind(AssertUnwindSafe(work));
            // Before the answer: the thread that has it finds nothing running.
            drop(running);
            // The caller may have stopped waiting.
            let _ = sender.send(planned.unwrap_or_else(|panic| Err(error::panicked(&*panic))));
        };
        let thread = thread::Builder::new().name("arc-plan".to_owned()).stack_size(STACK_BYTES);
        thread.spawn(work).map_err(|_| error::busy("no thread for planning a query"))?;
        receiver.await.map_err(|e| Error::internal(e.to_string()))?
    }
}

/// A thread that is at it, until this is dropped.
struct Running(Arc<PlanningJob>);

impl Running {
    fn begin(counts: Arc<Mutex<PlanningCounts>>) -> Self {
        counts.lock().running += 1;
        Self(Arc::new(PlanningJob { is_abandoned: AtomicBool::new(false), is_over: AtomicBool::new(false), counts }))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut counts = self.0.counts.lock();
        counts.running -= 1;
        self.0.is_over.store(true, Ordering::Relaxed);
        if self.0.is_abandoned.load(Ordering::Relaxed) {
            counts.abandoned -= 1;
        }
    }
}

/// A caller that waits, until this is dropped.
struct WaitingCaller(Arc<PlanningJob>);

impl Drop for WaitingCaller {
    fn drop(&mut self) {
        let mut counts = self.0.counts.lock();
        if !self.0.is_over.load(Ordering::Relaxed) {
            self.0.is_abandoned.store(true, Ordering::Relaxed);
            counts.abandoned += 1;
        }
    }
}

/// Returns whether this thread plans a statement.
pub(super) fn is_under_way() -> bool {
    JOB.with_borrow(Option::is_some)
}

/// Returns an error if no thread waits for the statement that this thread plans.
pub(super) fn check() -> PlanResult<()> {
    let is_abandoned = JOB.with_borrow(|job| job.as_ref().is_some_and(|job| job.is_abandoned.load(Ordering::Relaxed)));
    if is_abandoned {
        let error = Error::internal("nobody waits for this statement any more");
        return Err(DataFusionError::External(Box::new(error)));
    }
    Ok(())
}

/// A rule that is not applied once no thread waits.
#[derive(Debug)]
pub(super) struct AbortableRule<R>(pub(super) R);

impl OptimizerRule for AbortableRule<Arc<dyn OptimizerRule + Send + Sync>> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> PlanResult<Transformed<LogicalPlan>> {
        check()?;
        self.0.rewrite(plan, config)
    }
}

impl AnalyzerRule for AbortableRule<Arc<dyn AnalyzerRule + Send + Sync>> {
    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> PlanResult<LogicalPlan> {
        check()?;
        self.0.analyze(plan, config)
    }

    fn name(&self) -> &str {
        self.0.name()
    }
}

impl PhysicalOptimizerRule for AbortableRule<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> PlanResult<Arc<dyn ExecutionPlan>> {
        check()?;
        self.0.optimize(plan, config)
    }

    fn optimize_with_context(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: &dyn PhysicalOptimizerContext,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        check()?;
        self.0.optimize_with_context(plan, context)
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, time::Duration};

    use futures::poll;

    use super::*;

    /// Waits until as many threads are at it, and as many of them for nothing.
    async fn until(threads: &Threads, expected: (usize, usize)) {
        let wait = async {
            while threads.counts() != expected {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), wait).await.unwrap();
    }

    #[tokio::test]
    async fn what_is_given_up_holds_no_permit_and_is_counted_until_it_ends() {
        let threads = Threads { permits: Semaphore::new(1), most_abandoned: 2, counts: Arc::default() };
        let mut ends = Vec::new();
        for abandoned in 0..2 {
            let (end, wait) = mpsc::channel::<()>();
            ends.push(end);
            let mut work = Box::pin(threads.run(move || Ok(wait.recv().is_ok())));
            assert!(poll!(&mut work).is_pending());
            until(&threads, (abandoned + 1, abandoned)).await;
            drop(work);
            until(&threads, (abandoned + 1, abandoned + 1)).await;
        }
        let refused = threads.run(|| Ok(())).await.unwrap_err();
        assert!(matches!(refused, Error::Busy { .. }), "{refused}");
        ends.pop();
        until(&threads, (1, 1)).await;
        assert_eq!(threads.run(|| Ok(7)).await.unwrap(), 7);
        ends.clear();
        until(&threads, (0, 0)).await;
    }

    #[tokio::test]
    async fn a_thread_that_asks_ends_once_nobody_waits() {
        let threads = Threads::new();
        let mut work = Box::pin(threads.run(|| {
            while check().is_ok() {
                thread::yield_now();
            }
            Ok(())
        }));
        assert!(poll!(&mut work).is_pending());
        until(&threads, (1, 0)).await;
        drop(work);
        until(&threads, (0, 0)).await;
        assert!(threads.run(|| check().map_err(error::from_datafusion)).await.is_ok());
    }

    #[tokio::test]
    async fn a_panic_is_an_error_and_leaves_nothing_counted() {
        let threads = Threads::new();
        let failed = threads.run(|| -> Result<()> { panic!("bug") }).await.unwrap_err();
        assert!(failed.to_string().contains("bug"), "{failed}");
        assert_eq!(threads.counts(), (0, 0));
    }
}
