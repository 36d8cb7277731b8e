//! An operator with something done where it is executed, of which plans and what is shown of them tell nothing.

use std::{
    fmt::{self, Debug},
    sync::Arc,
};

use datafusion::{
    common::{Result, tree_node::TreeNodeRecursion},
    execution::{SendableRecordBatchStream, TaskContext},
    physical_expr::PhysicalExpr,
    physical_plan::{
        ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
        metrics::MetricsSet,
    },
};

/// What is done to an operator that is executed, and to its rows.
pub(super) trait Effect: Debug + Send + Sync {
    fn execute(
        &self,
        inner: &dyn ExecutionPlan,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream>;
}

/// See the module.
#[derive(Debug)]
pub(super) struct Around {
    inner: Arc<dyn ExecutionPlan>,
    effect: Arc<dyn Effect>,
}

impl Around {
    pub(super) fn plan(inner: Arc<dyn ExecutionPlan>, effect: Arc<dyn Effect>) -> Arc<dyn ExecutionPlan> {
        Arc::new(Self { inner, effect })
    }

    /// Returns the operator.
    #[cfg(feature = "distributed")]
    pub(super) fn inner(&self) -> &Arc<dyn ExecutionPlan> {
        &self.inner
    }
}

impl DisplayAs for Around {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_as(format, f)
    }
}

impl ExecutionPlan for Around {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.inner.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inner.children()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.inner.maintains_input_order()
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.inner.metrics()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        let inner = Arc::clone(&self.inner).replace_children(children, recompute)?;
        Ok(Self::plan(inner, Arc::clone(&self.effect)))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.inner.apply_expressions(f)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.effect.execute(&*self.inner, partition, context)
    }
}
