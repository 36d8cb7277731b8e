//! Named windows, written out where they are used.
//!
//! `OVER w`, `OVER (w ORDER BY …)` and `WINDOW v AS (w …)` become the whole window. The planner knows the first of them
//! alone, and that only between `SELECT` and `FROM`; anywhere else it passes over the name.

use std::{collections::HashMap, mem, ops::ControlFlow, rc::Rc};

use datafusion::sql::{
    parser::Statement,
    sqlparser::ast::{
        Expr, Function, Ident, NamedWindowDefinition, NamedWindowExpr, Query, Select, SetExpr, VisitorMut, WindowSpec,
        WindowType,
    },
};

use super::{
    statement::{MAX_SQL_BYTES, refuse},
    walk,
};
use crate::{Error, Result};

/// Writes the windows of a statement out.
///
/// # Errors
///
/// [`Error::Sql`] if a window is used and not defined before, or changed in a way that SQL does not know.
pub(super) fn write_out(statement: &mut Statement) -> Result<()> {
    walk::change_inner(statement, &mut Windows { scopes: Vec::new(), bytes: 0 })
}

/// The windows of one `SELECT`, and how many bytes each has as text.
type Defined = HashMap<String, (WindowSpec, usize)>;

struct Windows {
    /// Of each query and each `SELECT` around.
    scopes: Vec<Rc<Defined>>,
    /// What was written out so far.
    bytes: usize,
}

impl VisitorMut for Windows {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        // The order of a query's rows may use the windows of its `SELECT`.
        match &mut *query.body {
            SetExpr::Select(select) => self.enter(mem::take(&mut select.named_window)),
            _ => self.enter(Vec::new()),
        }
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        if !select.named_window.is_empty() {
            return self.enter(mem::take(&mut select.named_window));
        }
        let around = self.scopes.last().cloned().unwrap_or_default();
        self.scopes.push(around);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<Error> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let Expr::Function(Function { over: Some(over), .. }) = expr
            && names_another(over)
        {
            let around = self.scopes.last().cloned().unwrap_or_default();
            match self.whole(&around, over) {
                Ok(window) => *over = WindowType::WindowSpec(window),
                Err(error) => return ControlFlow::Break(error),
            }
        }
        ControlFlow::Continue(())
    }
}

impl Windows {
    /// Begins a part of a statement with its windows.
    fn enter(&mut self, definitions: Vec<NamedWindowDefinition>) -> ControlFlow<Error> {
        let mut defined = Defined::new();
        for NamedWindowDefinition(name, window) in definitions {
            let window = match window {
                NamedWindowExpr::NamedWindow(name) => WindowType::NamedWindow(name),
                NamedWindowExpr::WindowSpec(window) => WindowType::WindowSpec(window),
            };
            let whole = match self.whole(&defined, &window) {
                Ok(whole) => whole,
                Err(error) => return ControlFlow::Break(error),
            };
            let bytes = whole.to_string().len();
            if defined.insert(name.value.clone(), (whole, bytes)).is_some() {
                return ControlFlow::Break(Error::Sql { reason: format!("the window {name} is defined twice") });
            }
        }
        self.scopes.push(Rc::new(defined));
        ControlFlow::Continue(())
    }

    /// Returns a window without names of others.
    fn whole(&mut self, defined: &Defined, window: &WindowType) -> Result<WindowSpec> {
        match window {
            WindowType::NamedWindow(name) => self.named(defined, name),
            WindowType::WindowSpec(window) => match &window.window_name {
                None => Ok(window.clone()),
                Some(name) => extended(self.named(defined, name)?, name, window),
            },
        }
    }

    fn named(&mut self, defined: &Defined, name: &Ident) -> Result<WindowSpec> {
        let Some((window, bytes)) = defined.get(&name.value) else {
            return refuse(format!("the window {name} is not defined: WINDOW {name} AS (…) defines it"));
        };
        self.bytes += bytes;
        if self.bytes > MAX_SQL_BYTES {
            return refuse(format!("the windows of the statement, written out, are longer than {MAX_SQL_BYTES} bytes"));
        }
        Ok(window.clone())
    }
}

fn names_another(window: &WindowType) -> bool {
    match window {
        WindowType::NamedWindow(_) => true,
        WindowType::WindowSpec(window) => window.window_name.is_some(),
    }
}

/// Returns the window `name` with what `window` adds.
fn extended(named: WindowSpec, name: &Ident, window: &WindowSpec) -> Result<WindowSpec> {
    let WindowSpec { window_name: _, partition_by, order_by, window_frame } = window.clone();
    if !partition_by.is_empty() {
        return refuse(format!(
            "({name} PARTITION BY …) is not known: a window keeps the partitions of the one it names"
        ));
    }
    if !order_by.is_empty() && !named.order_by.is_empty() {
        return refuse(format!("({name} ORDER BY …) is not known: the window {name} has an order"));
    }
    if named.window_frame.is_some() {
        return refuse(format!("({name} …) is not known: the window {name} has a frame; OVER {name} uses it as it is"));
    }
    let order_by = if order_by.is_empty() { named.order_by } else { order_by };
    Ok(WindowSpec { window_name: None, partition_by: named.partition_by, order_by, window_frame })
}
