//! Functions of lists, which look at each element: rows are taken a few at a time, and whether the query has ended is looked
//! at between.

use std::{ops::Range, sync::Arc};

use arrow::{
    array::Array,
    compute::concat,
    datatypes::{DataType, FieldRef},
};
use datafusion::{
    common::{Result, exec_err},
    logical_expr::{
        ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
        simplify::{ExprSimplifyResult, SimplifyContext},
    },
};

use super::{
    bounded::{elements_by_row, not_negative},
    check_ended,
    theirs::named_as_theirs,
};

/// Functions that look at each element once.
const OF_EACH: &str = "array_add array_any_value array_avg array_compact array_dims array_distance array_element \
                       array_has array_length array_max array_min array_ndims array_normalize array_pop_back \
                       array_pop_front array_position array_positions array_product array_remove array_remove_all \
                       array_remove_n array_reverse array_scale array_slice array_sort array_subtract array_sum \
                       cardinality cosine_distance empty inner_product map_entries map_extract map_keys map_values";

/// Functions that look up each element among the others.
const OF_SETS: &str = "array_distinct array_except array_intersect array_union";

/// Functions that compare each element of one list with each of another.
const OF_PAIRS: &str = "array_has_all array_has_any";

/// Returns whether a function is one of lists.
pub(super) fn is_of_lists(function: &str) -> bool {
    ElementWork::of(function).is_some()
}

/// Returns `functions`, of which those of lists take rows a few at a time.
pub(super) fn in_pieces(functions: Vec<Arc<ScalarUDF>>) -> Vec<Arc<ScalarUDF>> {
    let wrap = |inner: Arc<ScalarUDF>| match ElementWork::of(inner.name()) {
        Some(work) => Arc::new(ScalarUDF::from(ListFunction { inner, work })),
        None => inner,
    };
    functions.into_iter().map(wrap).collect()
}

/// What a function does with the elements of lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ElementWork {
    Each,
    Sets,
    Pairs,
}

impl ElementWork {
    fn of(function: &str) -> Option<Self> {
        let kinds = [(OF_EACH, Self::Each), (OF_SETS, Self::Sets), (OF_PAIRS, Self::Pairs)];
        let is_in = |names: &str| names.split_whitespace().any(|name| name == function);
        kinds.into_iter().find_map(|(names, work)| is_in(names).then_some(work))
    }

    /// Returns how many elements the rows have that are taken at a time.
    fn piece(self) -> u64 {
        match self {
            Self::Each | Self::Sets => 64 << 10,
            Self::Pairs => 16 << 10,
        }
    }

    /// Returns how many elements of one row are a second of work.
    fn most(self) -> u64 {
        match self {
            Self::Each => u64::MAX,
            Self::Sets => 1 << 20,
            Self::Pairs => 32 << 10,
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ListFunction {
    inner: Arc<ScalarUDF>,
    work: ElementWork,
}

impl ListFunction {
    /// Returns the rows to take at a time, and fails if one has too many elements.
    fn pieces(&self, arguments: &ScalarFunctionArgs) -> Result<Vec<Range<usize>>> {
        let counts = arguments.args.iter().map(elements_by_row).collect::<Result<Vec<_>>>()?;
        let (piece, most) = (self.work.piece(), self.work.most());
        let (mut pieces, mut start, mut elements) = (Vec::new(), 0, 0_u64);
        for row in 0..arguments.number_rows {
            let more = counts.iter().fold(0_u64, |sum, counts| sum.saturating_add(counts.count(row)));
            if more > most {
                return exec_err!("{} of {more} elements would take too long; the limit is {most}", self.name());
            }
            elements = elements.saturating_add(more);
            if elements > piece && row > start {
                pieces.push(start..row);
                (start, elements) = (row, more);
            }
        }
        pieces.push(start..arguments.number_rows);
        Ok(pieces)
    }
}

impl ScalarUDFImpl for ListFunction {
    named_as_theirs!();

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        self.inner.schema_name(arguments)
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arguments)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(arguments)
    }

    fn is_strict(&self) -> bool {
        self.inner.is_strict()
    }

    fn simplify(&self, arguments: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.simplify(arguments, context)
    }

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if self.name() == "array_position"
            && let Some(start) = arguments.args.get_mut(2)
        {
            *start = not_negative(start)?;
        }
        let pieces = self.pieces(&arguments)?;
        let is_constant = arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        if pieces.len() < 2 || is_constant {
            return self.inner.invoke_with_args(arguments);
        }
        let mut made = Vec::with_capacity(pieces.len());
        for piece in pieces {
            check_ended(&arguments)?;
            let part = slice(&arguments, &piece);
            made.push(self.inner.invoke_with_args(part)?.into_array(piece.len())?);
        }
        let made: Vec<&dyn Array> = made.iter().map(AsRef::as_ref).collect();
        Ok(ColumnarValue::Array(concat(&made)?))
    }
}

/// Returns the arguments of some rows.
pub(super) fn slice(arguments: &ScalarFunctionArgs, rows: &Range<usize>) -> ScalarFunctionArgs {
    let mut part = arguments.clone();
    part.number_rows = rows.len();
    for argument in &mut part.args {
        if let ColumnarValue::Array(array) = argument {
            *array = array.slice(rows.start, rows.len());
        }
    }
    part
}
