//! The DataFusion session: its settings, limits and object store.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use datafusion::{
    catalog::CatalogProviderList,
    common::DataFusionError,
    execution::{
        SessionState, SessionStateBuilder, SessionStateDefaults,
        disk_manager::{DiskManager, DiskManagerBuilder, DiskManagerMode},
        object_store::ObjectStoreUrl,
        runtime_env::{RuntimeEnv, RuntimeEnvBuilder},
    },
    functions_table::all_default_table_functions,
    logical_expr::planner::ExprPlanner,
    optimizer::{Analyzer, AnalyzerRule, Optimizer, OptimizerRule},
    physical_optimizer::{PhysicalOptimizerRule, optimizer::PhysicalOptimizer},
    prelude::SessionConfig,
};

use super::{
    DataPlace, QueryTables,
    account::Account,
    asof, catalog,
    coop::Over,
    error, functions,
    grouping_sets::{GroupingSets, UnorderedSets},
    hourly::StoredHours,
    integer_division::IntegerDivision,
    latest,
    local::LocalTables,
    own_functions::OwnFunctions,
    planning::AbortableRule,
    pool::BudgetedPool,
    runs::GroupRuns,
    scale, semantics, times,
    undictionary_group_keys::UndictionaryGroupKeys,
    unique_names,
};
use crate::{
    Error, Options, Result,
    memory::MemoryBudget,
    store::{DurableLocal, PackedReads},
    vfs::RealVfs,
};

/// Name of the one catalog, the first part of `arc.database.table`.
pub(super) const CATALOG: &str = "arc";

/// Where spilled query data goes, below the data directory.
const SPILL_FOLDER: &str = "tmp/query";

/// Returns the name under which plans refer to the data directory.
pub(super) fn data_url() -> Result<ObjectStoreUrl, DataFusionError> {
    ObjectStoreUrl::parse("arc://data")
}

/// Returns the state that every query starts from.
pub(super) fn base_state(place: DataPlace<'_>, options: &Options, memory: Arc<MemoryBudget>) -> Result<SessionState> {
    let runtime = runtime(place, options, memory)?;
    let limit_bytes = functions::limit(options.query_memory_bytes);
    let scalar_functions = functions::all(SessionStateDefaults::default_scalar_functions(), limit_bytes);
    let aggregate_functions = functions::aggregates(SessionStateDefaults::default_aggregate_functions(), limit_bytes);
    let own = OwnFunctions::new(&scalar_functions, &aggregate_functions);
    // Functions of every kind, but neither file formats nor table factories: nothing to reach the
    // host with.
    Ok(SessionStateBuilder::new()
        .with_config(config(options.query_memory_bytes))
        .with_runtime_env(runtime)
        .with_expr_planners(expr_planners(own, limit_bytes))
        .with_relation_planners(vec![Arc::new(asof::Relations)])
        .with_query_planner(Arc::new(asof::AsOfPlanner))
        .with_scalar_functions(scalar_functions)
        .with_aggregate_functions(aggregate_functions)
        .with_window_functions(functions::windows(SessionStateDefaults::default_window_functions()))
        .with_table_function_list(all_default_table_functions())
        .with_analyzer_rules(analyzer_rules().into_iter().map(|rule| Arc::new(AbortableRule(rule)) as _).collect())
        .with_optimizer_rules(optimizer_rules().into_iter().map(|rule| Arc::new(AbortableRule(rule)) as _).collect())
        .with_physical_optimizer_rules(
            physical_optimizer_rules().into_iter().map(|rule| Arc::new(AbortableRule(rule)) as _).collect(),
        )
        .build())
}

/// Returns DataFusion's rules, and ours that has to stand among them: conditions come down to it,
/// and go on below it.
fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let with_names = |rule: Arc<dyn OptimizerRule + Send + Sync>| match rule.name() {
        "optimize_projections" => Arc::new(semantics::ReusedNames(rule)) as _,
        _ => rule,
    };
    let mut rules: Vec<_> = Optimizer::new().rules.into_iter().map(with_names).collect();
    let lists = rules.iter().position(|rule| rule.name() == "simplify_expressions").unwrap_or(0);
    rules.insert(lists, Arc::new(semantics::ExactLists));
    let behind = rules.iter().position(|rule| rule.name() == "push_down_filter").map_or(rules.len(), |at| at + 1);
    rules.insert(behind, Arc::new(asof::SinkFilters));
    let joins = rules.iter().position(|rule| rule.name() == "decorrelate_predicate_subquery").unwrap_or(0);
    rules.insert(joins, Arc::new(semantics::NullSubqueries));
    rules.push(Arc::new(latest::LatestRows));
    rules.push(Arc::new(UndictionaryGroupKeys));
    rules.push(Arc::new(semantics::Semantics));
    rules
}

/// Returns DataFusion's rules that make a plan one that can be run, and ours after them.
fn analyzer_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    let rules = Analyzer::new().rules.into_iter();
    let with_zones = |rule: Arc<dyn AnalyzerRule + Send + Sync>| match rule.name() {
        "type_coercion" => Arc::new(semantics::TimesOfUtc(rule)) as _,
        _ => rule,
    };
    let mut rules: Vec<_> = rules.map(with_zones).collect();
    let types = rules.iter().position(|rule| rule.name() == "type_coercion").unwrap_or(0);
    rules.insert(types, Arc::new(semantics::FarTimes));
    let sets = rules.iter().position(|rule| rule.name() == "resolve_grouping_function").map_or(0, |at| at + 1);
    rules.insert(sets, Arc::new(semantics::SetKeys));
    rules.push(Arc::new(semantics::Semantics));
    rules
}

/// Returns DataFusion's rules between ours.
pub(super) fn physical_optimizer_rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules: Vec<_> = PhysicalOptimizer::new().rules.into_iter().map(mended).collect();
    rules.insert(0, Arc::new(GroupingSets));
    rules.push(Arc::new(semantics::NanGroups));
    rules.push(Arc::new(StoredHours));
    rules.push(Arc::new(GroupRuns));
    rules
}

/// Returns a rule, with what it needs around it to answer as SQL says.
fn mended(rule: Arc<dyn PhysicalOptimizerRule + Send + Sync>) -> Arc<dyn PhysicalOptimizerRule + Send + Sync> {
    match rule.name() {
        "OptimizeAggregateOrder" => Arc::new(UnorderedSets(rule)),
        "aggregate_statistics" => Arc::new(semantics::UnfilteredStatistics(rule)),
        name if name.starts_with("FilterPushdown") => Arc::new(semantics::AggregateBounds(unique_names::fenced(rule))),
        _ => rule,
    }
}

fn expr_planners(own: OwnFunctions, limit_bytes: usize) -> Vec<Arc<dyn ExprPlanner>> {
    let mut planners = own.planners(SessionStateDefaults::default_expr_planners(), limit_bytes);
    planners.insert(1, Arc::new(IntegerDivision));
    planners
}

/// Returns what one query runs in: as all others, and with a pool that counts for its account.
pub(super) fn runtime_of(base: &SessionState, account: &Account) -> Arc<RuntimeEnv> {
    let mut runtime = RuntimeEnv::clone(base.runtime_env());
    bound_spills(&runtime.disk_manager);
    runtime.memory_pool = account.pool(Arc::clone(&runtime.memory_pool));
    Arc::new(runtime)
}

/// Returns the state of one query, with its own view of the tables.
pub(super) fn query_state(
    base: &SessionState,
    tables: Arc<dyn QueryTables>,
    cache: Arc<latest::NewestRowsCache>,
    (database, local): (&str, &LocalTables),
    over: &Over,
) -> SessionState {
    let mut state = base.clone();
    let options = state.config_mut().options_mut();
    options.catalog.default_schema = database.to_owned();
    options.extensions.insert(over.clone());
    let list: Arc<dyn CatalogProviderList> = Arc::new(catalog::Catalogs::new(tables, cache, local.of(database)));
    state.register_catalog_list(list);
    // `now()` is the time at which the statement began.
    state.mark_start_execution();
    state
}

fn config(memory_bytes: usize) -> SessionConfig {
    let mut config = SessionConfig::new();
    let options = config.options_mut();
    options.catalog.create_default_catalog_and_schema = false;
    options.catalog.default_catalog = CATALOG.to_owned();
    // Names are case-sensitive on disk and are taken as written; keywords and functions stay
    // case-insensitive.
    options.sql_parser.enable_ident_normalization = false;
    // Clients of today cannot read view types.
    options.sql_parser.map_string_types_to_utf8view = false;
    options.execution.parquet.schema_force_view_types = false;
    options.execution.time_zone = Some("UTC".to_owned());
    // It goes by the frame of a window, where `lead` and `lag` look beyond it.
    options.optimizer.enable_window_limits = false;
    scale::configure(options, memory_bytes);
    config.with_extension(Arc::new(times::TimesCache::new(scale::times_bytes(memory_bytes))))
}

#[expect(clippy::disallowed_methods, reason = "queries read data files from the real file system")]
fn runtime(
    DataPlace { dir, store, is_anothers }: DataPlace<'_>,
    options: &Options,
    memory: Arc<MemoryBudget>,
) -> Result<Arc<RuntimeEnv>> {
    let spill = match is_anothers {
        false => DiskManagerMode::Directories(vec![spill_folder(dir)?]),
        // A folder of its own, which is removed with it.
        true => DiskManagerMode::OsTmpDirectory,
    };
    let memory_bytes = options.query_memory_bytes;
    let disk = DiskManagerBuilder::default().with_mode(spill);
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(BudgetedPool::new(scale::counted_bytes(memory_bytes), memory)))
        .with_metadata_cache_limit(scale::footer_bytes(memory_bytes))
        .with_disk_manager_builder(disk.with_max_spill_merge_fan_in(scale::merge_fan_in(memory_bytes)))
        .build_arc()
        .map_err(error::from_datafusion)?;
    let store = match store {
        Some(store) => store,
        None => {
            // Whatever becomes of the process's working directory.
            let dir = fs::canonicalize(dir).map_err(|e| Error::io("open", dir, e))?;
            Arc::new(DurableLocal::keeping(Arc::new(RealVfs), &dir, scale::read_bytes(memory_bytes)))
        }
    };
    let url = data_url().map_err(error::from_datafusion)?;
    runtime.register_object_store(url.as_ref(), Arc::new(PackedReads::new(store, is_anothers)));
    Ok(runtime)
}

/// Has queries spill no more than half of what is free: the log and the data files need room as well.
fn bound_spills(disk: &DiskManager) {
    let folder = disk.temp_dir_paths().into_iter().next().unwrap_or_else(env::temp_dir);
    let Some(free) = free_bytes(&folder) else { return };
    // It fails of a manager that takes nothing, and this one does.
    let _ = disk.set_max_temp_directory_size(disk.used_disk_space().saturating_add(free) / 2);
}

#[cfg(unix)]
fn free_bytes(folder: &Path) -> Option<u64> {
    let system = rustix::fs::statvfs(folder).ok()?;
    Some(system.f_bavail.saturating_mul(system.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Option<u64> {
    None
}

/// Returns an empty folder for spilled data: what a killed process left there is removed.
#[expect(clippy::disallowed_methods, reason = "DataFusion spills to the real file system")]
fn spill_folder(data_dir: &Path) -> Result<PathBuf> {
    let folder = data_dir.join(SPILL_FOLDER);
    match fs::remove_dir_all(&folder) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(Error::io("clear", folder, e)),
        _ => {}
    }
    fs::create_dir_all(&folder).map_err(|e| Error::io("create", &folder, e))?;
    Ok(folder)
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::ErrorKind;

    #[test]
    fn queries_spill_half_of_what_is_free_and_say_what_they_lack_then() {
        let folder = tempfile::tempdir().unwrap();
        let disk =
            DiskManagerBuilder::default().with_mode(DiskManagerMode::Directories(vec![folder.path().to_owned()]));
        let disk = Arc::new(disk.build().unwrap());
        bound_spills(&disk);
        let (free, most) = (free_bytes(folder.path()).unwrap(), disk.max_temp_directory_size());
        assert!(most > 0 && most < free / 4 * 3, "{most} of {free}");
        disk.set_max_temp_directory_size(10).unwrap();
        let full = disk.create_tmp_file("test").unwrap().open_writer().unwrap().write(&[0; 11]).unwrap_err();
        let full = error::from_datafusion(DataFusionError::IoError(full));
        assert_eq!(full.kind(), ErrorKind::Busy, "{full}");
        let none = error::from_datafusion(DataFusionError::IoError(io::Error::from_raw_os_error(28)));
        assert_eq!(none.kind(), ErrorKind::StorageFull, "{none}");
    }
}
