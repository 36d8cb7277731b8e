//! Functions of lists, which look at each element.

use std::{ops::Range, sync::Arc};

use datafusion::{
    common::{Result, exec_err},
    logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF},
};

use super::{
    bounded::{elements_by_row, not_negative},
    pieces::{CutRows, wrapped},
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
        Some(work) => wrapped(inner, work),
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

impl CutRows for ElementWork {
    /// Fails if a row has too many elements.
    fn pieces(&self, function: &str, arguments: &mut ScalarFunctionArgs) -> Result<Vec<Range<usize>>> {
        if function == "array_position"
            && let Some(start) = arguments.args.get_mut(2)
        {
            *start = not_negative(start)?;
        }
        let counts = arguments.args.iter().map(elements_by_row).collect::<Result<Vec<_>>>()?;
        let (piece, most) = (self.piece(), self.most());
        let is_constant = arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let rows = if is_constant { arguments.number_rows.min(1) } else { arguments.number_rows };
        let (mut pieces, mut start, mut elements) = (Vec::new(), 0, 0_u64);
        for row in 0..rows {
            let more = counts.iter().fold(0_u64, |sum, counts| sum.saturating_add(counts.count(row)));
            if more > most {
                return exec_err!("{function} of {more} elements would take too long; the limit is {most}");
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
