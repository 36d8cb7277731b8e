//! Patterns that come from rows: LIKE, regular expressions, and the functions of these.
//!
//! Each pattern of a batch is compiled, and kept until the batch is done: one of a regular expression may take 10 MB, and
//! one of LIKE milliseconds. So rows are taken a few at a time.
//! What a constant pattern does is left to DataFusion.

use std::{collections::HashSet, ops::Range, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray, RecordBatch},
    compute::cast,
    datatypes::{DataType, Field, FieldRef, Schema},
};
use datafusion::{
    common::{Result, internal_err, tree_node::Transformed},
    logical_expr::{
        BinaryExpr, ColumnarValue, Expr, Like, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
        Signature, Volatility,
    },
    physical_expr::{
        PhysicalExpr,
        expressions::{BinaryExpr as ComparedExpr, Column},
    },
};

use super::pieces::{CutRows, call, wrapped};

/// Functions whose second argument is a pattern.
const FUNCTIONS: [&str; 5] = ["regexp_count", "regexp_instr", "regexp_like", "regexp_match", "regexp_replace"];

const OPERATORS: [(Operator, &str); 8] = [
    (Operator::RegexMatch, "~"),
    (Operator::RegexIMatch, "~*"),
    (Operator::RegexNotMatch, "!~"),
    (Operator::RegexNotIMatch, "!~*"),
    (Operator::LikeMatch, "~~"),
    (Operator::ILikeMatch, "~~*"),
    (Operator::NotLikeMatch, "!~~"),
    (Operator::NotILikeMatch, "!~~*"),
];

/// Rows taken at a time.
const MAX_ROWS: usize = 512;

/// Different patterns of these that may be large: with a number of repetitions, or a class of characters.
const MAX_LARGE: usize = 8;

/// Bytes of different patterns of these.
const MAX_BYTES: usize = 8 << 10;

/// Returns whether a function is one of patterns.
pub(super) fn is_of_patterns(function: &str) -> bool {
    FUNCTIONS.contains(&function)
}

/// Returns `functions`, of which those of patterns take those of rows a few at a time.
pub(super) fn in_pieces(functions: Vec<Arc<ScalarUDF>>) -> Vec<Arc<ScalarUDF>> {
    let wrap = |inner: Arc<ScalarUDF>| match is_of_patterns(inner.name()) {
        true => wrapped(inner, OfPatterns),
        false => inner,
    };
    functions.into_iter().map(wrap).collect()
}

/// Returns the operators as functions.
pub(super) fn operators() -> impl Iterator<Item = Arc<ScalarUDF>> {
    OPERATORS.into_iter().map(|(operator, name)| {
        let signature = Signature::any(2, Volatility::Immutable);
        Arc::new(ScalarUDF::from(PatternOperator { operator, name, signature }))
    })
}

/// Has a comparison with a pattern of the row be one of these functions.
pub(in crate::query) fn of_rows(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if !is_constant(&right) => match function(op) {
            Some(function) => Transformed::yes(function.call(vec![*left, *right])),
            None => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
        },
        Expr::Like(Like { negated, expr, pattern, escape_char: None | Some('\\'), case_insensitive })
            if !is_constant(&pattern) =>
        {
            let operator = match (negated, case_insensitive) {
                (false, false) => Operator::LikeMatch,
                (false, true) => Operator::ILikeMatch,
                (true, false) => Operator::NotLikeMatch,
                (true, true) => Operator::NotILikeMatch,
            };
            match function(operator) {
                Some(function) => Transformed::yes(function.call(vec![*expr, *pattern])),
                None => Transformed::no(Expr::Like(Like::new(negated, expr, pattern, None, case_insensitive))),
            }
        }
        other => Transformed::no(other),
    }
}

fn is_constant(pattern: &Expr) -> bool {
    matches!(pattern, Expr::Literal(..))
}

fn function(operator: Operator) -> Option<Arc<ScalarUDF>> {
    let at = OPERATORS.iter().position(|(known, _)| *known == operator)?;
    operators().nth(at)
}

/// Functions of patterns, all of them alike.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OfPatterns;

impl CutRows for OfPatterns {
    fn pieces(&self, _function: &str, arguments: &mut ScalarFunctionArgs) -> Result<Vec<Range<usize>>> {
        match arguments.args.get(1) {
            Some(ColumnarValue::Array(patterns)) => pieces(patterns),
            _ => Ok(Vec::new()),
        }
    }
}

fn pieces(patterns: &ArrayRef) -> Result<Vec<Range<usize>>> {
    let texts = cast(patterns, &DataType::Utf8)?;
    let (mut pieces, mut start) = (Vec::new(), 0);
    let mut known: HashSet<&str> = HashSet::new();
    let (mut large, mut bytes) = (0, 0);
    for (row, pattern) in texts.as_string::<i32>().iter().enumerate() {
        let pattern = pattern.unwrap_or_default();
        let is_new = !known.contains(pattern);
        let (more_large, more_bytes) = if is_new { (usize::from(is_large(pattern)), pattern.len()) } else { (0, 0) };
        let is_full = large + more_large > MAX_LARGE || bytes + more_bytes > MAX_BYTES || row - start == MAX_ROWS;
        if is_full && row > start {
            pieces.push(start..row);
            start = row;
            known.clear();
            (large, bytes) = (usize::from(is_large(pattern)), pattern.len());
        } else {
            (large, bytes) = (large + more_large, bytes + more_bytes);
        }
        known.insert(pattern);
    }
    if start < patterns.len() {
        pieces.push(start..patterns.len());
    }
    Ok(pieces)
}

/// Returns whether what a regular expression is compiled to may be much larger than it is.
fn is_large(pattern: &str) -> bool {
    pattern.contains(['{', '\\', '['])
}

/// A comparison of a text with a pattern.
#[derive(Debug, PartialEq, Eq, Hash)]
struct PatternOperator {
    operator: Operator,
    name: &'static str,
    signature: Signature,
}

impl ScalarUDFImpl for PatternOperator {
    fn name(&self) -> &str {
        self.name
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        let [text, pattern] = arguments else { return internal_err!("{} has two sides", self.name) };
        Ok(format!("{} {} {}", text.schema_name(), self.operator, pattern.schema_name()))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let is_nullable = arguments.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name, DataType::Boolean, is_nullable)))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let pieces = OfPatterns.pieces(self.name, &mut arguments)?;
        call(arguments, &pieces, |piece| {
            let sides = piece.args.iter().map(|side| side.to_array(piece.number_rows)).collect::<Result<Vec<_>>>()?;
            let fields = sides.iter().map(|side| Field::new("", side.data_type().clone(), true)).collect::<Vec<_>>();
            let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), sides)?;
            let side = |index| Arc::new(Column::new("", index)) as Arc<dyn PhysicalExpr>;
            ComparedExpr::new(side(0), self.operator, side(1)).evaluate(&batch)
        })
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::StringArray;

    use super::*;

    #[test]
    fn rows_are_taken_together_while_their_patterns_are_few_or_small() {
        let lengths = |patterns: Vec<String>| {
            let patterns: ArrayRef = Arc::new(StringArray::from(patterns));
            pieces(&patterns).unwrap().iter().map(ExactSizeIterator::len).collect::<Vec<_>>()
        };
        assert_eq!(lengths(vec![]), [0; 0]);
        assert_eq!(lengths(vec!["a{9}".to_owned(); 1_100]), [512, 512, 76]);
        assert_eq!(lengths((0..20).map(|n| format!("a{{{n}}}")).collect()), [8, 8, 4]);
        assert_eq!(lengths((0..600).map(|n| format!("a{n}")).collect()), [512, 88]);
        assert_eq!(lengths((0..3).map(|n| format!("{n}").repeat(20_000)).collect()), [1, 1, 1]);
    }
}
