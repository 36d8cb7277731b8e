//! A plan with cuts in it, made into one that the library executes.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use datafusion::{
    catalog::Session,
    common::{DFSchema, Result, internal_datafusion_err},
    execution::{SessionStateBuilder, context::QueryPlanner},
    logical_expr::{EmptyRelation, LogicalPlan},
    physical_plan::ExecutionPlan,
};
use datafusion_distributed::SessionStateBuilderExt;

/// Plans nothing: it has the plan already.
struct Given(Arc<dyn ExecutionPlan>);

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Given").finish_non_exhaustive()
    }
}

#[async_trait]
impl QueryPlanner for Given {
    async fn create_physical_plan(&self, _: &LogicalPlan, _: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::clone(&self.0))
    }
}

/// Returns the plan that sends its parts to workers when it is executed.
///
/// The library's planner leaves a plan as it is that has cuts already, and gives each of them the
/// number by which workers know it.
pub(super) async fn executable(plan: Arc<dyn ExecutionPlan>, session: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
    let builder = SessionStateBuilder::new().with_query_planner(Arc::new(Given(plan)));
    let planner = builder.with_distributed_planner().query_planner().take();
    let planner = planner.ok_or_else(|| internal_datafusion_err!("a library without its planner"))?;
    let nothing =
        LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema: Arc::new(DFSchema::empty()) });
    planner.create_physical_plan(&nothing, session).await
}
