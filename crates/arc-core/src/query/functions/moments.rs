//! Variances, covariances, correlations and regressions: of all rows, by group, and of frames that
//! move, by one formula.
//!
//! DataFusion has a formula for each, and two of them cancel: that of frames takes rows out again
//! by subtraction, so that a NaN or something large stays for ever and equal values have negative
//! variances; that of `corr` by group subtracts sums of squares (apache/datafusion#24953). Here
//! deviations from the mean are added up as Welford does, two states become one as Chan, Golub and
//! LeVeque do, and no row is ever taken out. All numbers are taken from the first one: seconds since
//! 1970 differ by less than a mean of them can say.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array},
    buffer::NullBuffer,
    compute::cast,
    datatypes::{DataType, Field, FieldRef, Float64Type},
};
use datafusion::{
    common::{Result, ScalarValue, exec_err},
    logical_expr::{
        Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator, Signature,
        function::{AccumulatorArgs, StateFieldsArgs},
        utils::format_state_name,
    },
};

use super::{
    frame::{FrameFold, FrameState},
    grouped::filtered,
    theirs::named_as_theirs,
};

/// What is asked of some pairs of numbers, of which SQL names y first. Of single numbers both are
/// the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Statistic {
    VarianceOfSample,
    VarianceOfPopulation,
    DeviationOfSample,
    DeviationOfPopulation,
    CovarianceOfSample,
    CovarianceOfPopulation,
    Correlation,
    Slope,
    Intercept,
    Count,
    Determination,
    MeanOfX,
    MeanOfY,
    SquaresOfX,
    SquaresOfY,
    Products,
}

impl Statistic {
    fn of_name(function: &str) -> Option<Self> {
        Some(match function {
            "var" => Self::VarianceOfSample,
            "var_pop" => Self::VarianceOfPopulation,
            "stddev" => Self::DeviationOfSample,
            "stddev_pop" => Self::DeviationOfPopulation,
            "covar_samp" => Self::CovarianceOfSample,
            "covar_pop" => Self::CovarianceOfPopulation,
            "corr" => Self::Correlation,
            "regr_slope" => Self::Slope,
            "regr_intercept" => Self::Intercept,
            "regr_count" => Self::Count,
            "regr_r2" => Self::Determination,
            "regr_avgx" => Self::MeanOfX,
            "regr_avgy" => Self::MeanOfY,
            "regr_sxx" => Self::SquaresOfX,
            "regr_syy" => Self::SquaresOfY,
            "regr_sxy" => Self::Products,
            _ => return None,
        })
    }

    /// Returns the value for the pairs of a state, as PostgreSQL defines it.
    fn of(self, Moments { count, y, x, products }: Moments) -> Option<f64> {
        let of_population = |sum: f64| (count > 0.0).then(|| sum / count);
        let of_sample = |sum: f64| (count > 1.0).then(|| sum / (count - 1.0));
        // An infinite number has no deviation, so that its squares are NaN.
        let products = if x.squares.is_nan() || y.squares.is_nan() { f64::NAN } else { products };
        let varies = count > 0.0 && x.squares != 0.0;
        match self {
            Self::Count => Some(count),
            Self::VarianceOfSample => of_sample(x.squares),
            Self::VarianceOfPopulation => of_population(x.squares),
            Self::DeviationOfSample => of_sample(x.squares).map(f64::sqrt),
            Self::DeviationOfPopulation => of_population(x.squares).map(f64::sqrt),
            Self::CovarianceOfSample => of_sample(products),
            Self::CovarianceOfPopulation => of_population(products),
            Self::Correlation => (varies && y.squares != 0.0).then(|| correlation(x.squares, y.squares, products)),
            Self::Slope => varies.then(|| products / x.squares),
            Self::Intercept => varies.then(|| y.whole_mean() - products / x.squares * x.whole_mean()),
            // A line without a slope explains all of values that are the same.
            Self::Determination if varies && y.squares == 0.0 => Some(1.0),
            Self::Determination => varies.then(|| correlation(x.squares, y.squares, products).powi(2)),
            Self::MeanOfX => (count > 0.0).then(|| x.whole_mean()),
            Self::MeanOfY => (count > 0.0).then(|| y.whole_mean()),
            Self::SquaresOfX => (count > 0.0).then_some(x.squares),
            Self::SquaresOfY => (count > 0.0).then_some(y.squares),
            Self::Products => (count > 0.0).then_some(products),
        }
    }

    /// Returns the value of a state as the function's type.
    fn scalar(self, moments: Moments, data_type: &DataType) -> Result<ScalarValue> {
        let value = ScalarValue::Float64(self.of(moments));
        if *data_type == DataType::Float64 { Ok(value) } else { value.cast_to(data_type) }
    }

    /// Returns the values of some states as the function's type.
    fn array(self, moments: Vec<Moments>, data_type: &DataType) -> Result<ArrayRef> {
        let values: Float64Array = moments.into_iter().map(|moments| self.of(moments)).collect();
        Ok(cast(&values, data_type)?)
    }
}

/// Returns the correlation, of numbers that vary. What is rounded does not lead out of its range.
fn correlation(squares_of_x: f64, squares_of_y: f64, products: f64) -> f64 {
    let both = squares_of_x * squares_of_y;
    // The product of equal numbers has their very root, but it may not be one that floats hold.
    let correlation = match both.is_normal() {
        true => products / both.sqrt(),
        false => products / squares_of_x.sqrt() / squares_of_y.sqrt(),
    };
    correlation.clamp(-1.0, 1.0)
}

/// How many pairs there are, where their means lie, and how far the pairs are from them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Moments {
    /// No group has 2^53 rows.
    count: f64,
    y: Coordinate,
    x: Coordinate,
    /// Sum of the products of both deviations.
    products: f64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Coordinate {
    /// The first value, from which the mean is counted.
    origin: f64,
    mean: f64,
    /// Sum of the squares of deviations from the mean.
    squares: f64,
}

/// Returns the mean of what has these two means; `share` of it has the second. Equal ones stay so to
/// the last digit.
fn mean(one: f64, other: f64, share: f64) -> f64 {
    match one.is_infinite() || other.is_infinite() {
        true => one + other,
        false => one + (other - one) * share,
    }
}

impl Coordinate {
    /// Returns the mean of the values themselves.
    fn whole_mean(&self) -> f64 {
        self.origin + self.mean
    }

    /// Takes one more value, of which there are `count` then; returns how far it was from the mean,
    /// and how far it is.
    fn add(&mut self, value: f64, count: f64) -> (f64, f64) {
        if count == 1.0 && value.is_finite() {
            self.origin = value;
        }
        let value = value - self.origin;
        let before = value - self.mean;
        self.mean = mean(self.mean, value, 1.0 / count);
        let now = value - self.mean;
        self.squares += before * now;
        (before, now)
    }

    /// Takes other values, whose `share` of all is this; returns how far their mean is.
    fn join(&mut self, later: Self, (weight, share): (f64, f64)) -> f64 {
        let other = later.mean + (later.origin - self.origin);
        let between = other - self.mean;
        self.mean = mean(self.mean, other, share);
        self.squares += later.squares + between * between * weight;
        between
    }
}

impl FrameState for Moments {
    /// y, x.
    type Value = (f64, f64);

    fn add(&mut self, (y, x): (f64, f64)) {
        self.count += 1.0;
        let (_, from_y) = self.y.add(y, self.count);
        let (from_x, _) = self.x.add(x, self.count);
        self.products += from_x * from_y;
    }

    fn then(mut self, later: Self) -> Self {
        if self.count == 0.0 || later.count == 0.0 {
            return if later.count == 0.0 { self } else { later };
        }
        let count = self.count + later.count;
        let share = later.count / count;
        let weight = self.count * share;
        let between_y = self.y.join(later.y, (weight, share));
        let between_x = self.x.join(later.x, (weight, share));
        self.products += later.products + between_x * between_y * weight;
        Self { count, ..self }
    }
}

impl Moments {
    const STATE: [&'static str; 8] =
        ["count", "origin_y", "mean_y", "squares_y", "origin_x", "mean_x", "squares_x", "products"];

    fn numbers(&self) -> [f64; 8] {
        let Self { count, y, x, products } = *self;
        [count, y.origin, y.mean, y.squares, x.origin, x.mean, x.squares, products]
    }

    fn of_numbers(numbers: [f64; 8]) -> Self {
        let [count, origin_y, mean_y, squares_y, origin_x, mean_x, squares_x, products] = numbers;
        let y = Coordinate { origin: origin_y, mean: mean_y, squares: squares_y };
        Self { count, y, x: Coordinate { origin: origin_x, mean: mean_x, squares: squares_x }, products }
    }

    /// Returns the columns of an accumulator's state.
    fn columns(moments: &[Self]) -> Vec<ArrayRef> {
        let column = |index: usize| {
            let numbers = moments.iter().filter_map(|moments| moments.numbers().get(index).copied());
            Arc::new(Float64Array::from_iter_values(numbers)) as ArrayRef
        };
        (0..Self::STATE.len()).map(column).collect()
    }

    /// Returns the states in the columns of an accumulator's state.
    fn of_state(states: &[ArrayRef]) -> Result<impl Iterator<Item = Self>> {
        let numbers = states.iter().map(|state| state.as_primitive::<Float64Type>().values());
        let Ok(numbers) = <[_; Self::STATE.len()]>::try_from(numbers.collect::<Vec<_>>()) else {
            return exec_err!("a state has {} columns", Self::STATE.len());
        };
        let rows = numbers[0].len();
        Ok((0..rows).map(move |row| Self::of_numbers(numbers.map(|column| column.get(row).copied().unwrap_or(0.0)))))
    }
}

/// The pairs of a batch.
struct Pairs<'a> {
    y: &'a [f64],
    x: &'a [f64],
    /// Where either is null or does not count.
    nulls: Option<NullBuffer>,
}

impl<'a> Pairs<'a> {
    fn new(values: &'a [ArrayRef], filter: Option<&BooleanArray>) -> Result<Self> {
        let (y, x) = match values {
            [value] => (value, value),
            [y, x] => (y, x),
            _ => return exec_err!("one or two numbers are needed"),
        };
        let (y, x) = (y.as_primitive::<Float64Type>(), x.as_primitive::<Float64Type>());
        let nulls = NullBuffer::union(filtered(y, filter).as_ref(), x.nulls());
        Ok(Self { y: y.values(), x: x.values(), nulls: nulls.filter(|nulls| nulls.null_count() > 0) })
    }

    /// Returns each pair that counts, with its row.
    fn iter(&self) -> impl Iterator<Item = (usize, (f64, f64))> {
        let pairs = self.y.iter().copied().zip(self.x.iter().copied()).enumerate();
        pairs.filter(|(row, _)| self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*row)))
    }
}

/// A function that takes the place of one of DataFusion's.
#[derive(Debug, PartialEq, Eq, Hash)]
struct StatisticFunction {
    inner: Arc<AggregateUDF>,
    statistic: Statistic,
}

/// Returns what takes the place of a function of DataFusion's, if it is one of these.
pub(super) fn replaced(inner: &Arc<AggregateUDF>) -> Option<AggregateUDF> {
    let statistic = Statistic::of_name(inner.name())?;
    Some(AggregateUDF::from(StatisticFunction { inner: Arc::clone(inner), statistic }))
}

impl AggregateUDFImpl for StatisticFunction {
    named_as_theirs!();

    fn is_nullable(&self) -> bool {
        self.inner.is_nullable()
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        self.inner.default_value(data_type)
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if arguments.is_distinct {
            return self.inner.accumulator(arguments);
        }
        let data_type = arguments.return_field.data_type().clone();
        Ok(Box::new(OneGroup { moments: Moments::default(), statistic: self.statistic, data_type }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if arguments.is_distinct {
            return self.inner.state_fields(arguments);
        }
        let field = |part| Field::new(format_state_name(arguments.name, part), DataType::Float64, false).into();
        Ok(Moments::STATE.map(field).to_vec())
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs) -> bool {
        !arguments.is_distinct
    }

    fn create_groups_accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let data_type = arguments.return_field.data_type().clone();
        Ok(Box::new(StatisticByGroup { moments: Vec::new(), statistic: self.statistic, data_type }))
    }

    fn create_sliding_accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if arguments.is_distinct {
            return self.inner.create_sliding_accumulator(arguments);
        }
        let data_type = arguments.return_field.data_type().clone();
        Ok(Box::new(MovingFrame { frame: FrameFold::default(), statistic: self.statistic, data_type }))
    }
}

/// The statistic of all rows.
#[derive(Debug)]
struct OneGroup {
    moments: Moments,
    statistic: Statistic,
    data_type: DataType,
}

impl Accumulator for OneGroup {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        Pairs::new(values, None)?.iter().for_each(|(_, pair)| self.moments.add(pair));
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        Moments::of_state(states)?.for_each(|more| self.moments = self.moments.then(more));
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(self.moments.numbers().map(|number| ScalarValue::Float64(Some(number))).to_vec())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.statistic.scalar(self.moments, &self.data_type)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The statistic of a frame that moves.
#[derive(Debug)]
struct MovingFrame {
    frame: FrameFold<Moments>,
    statistic: Statistic,
    data_type: DataType,
}

impl Accumulator for MovingFrame {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        Pairs::new(values, None)?.iter().for_each(|(_, pair)| self.frame.push(pair));
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        Pairs::new(values, None)?.iter().for_each(|_| self.frame.pop());
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        exec_err!("frames of windows are not merged")
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        exec_err!("frames of windows are not merged")
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.statistic.scalar(self.frame.state(), &self.data_type)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.frame.size()
    }
}

/// The statistics of many groups.
#[derive(Debug)]
struct StatisticByGroup {
    moments: Vec<Moments>,
    statistic: Statistic,
    data_type: DataType,
}

impl GroupsAccumulator for StatisticByGroup {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.moments.resize(total, Moments::default());
        for (row, pair) in Pairs::new(values, filter)?.iter() {
            if let Some(moments) = groups.get(row).and_then(|group| self.moments.get_mut(*group)) {
                moments.add(pair);
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.moments.resize(total, Moments::default());
        for (group, more) in groups.iter().zip(Moments::of_state(states)?) {
            if let Some(moments) = self.moments.get_mut(*group) {
                *moments = moments.then(more);
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, which: EmitTo) -> Result<ArrayRef> {
        self.statistic.array(which.take_needed(&mut self.moments), &self.data_type)
    }

    fn state(&mut self, which: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(Moments::columns(&which.take_needed(&mut self.moments)))
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let mut each = vec![Moments::default(); values.first().map_or(0, Array::len)];
        for (row, pair) in Pairs::new(values, filter)?.iter() {
            if let Some(moments) = each.get_mut(row) {
                moments.add(pair);
            }
        }
        Ok(Moments::columns(&each))
    }

    fn size(&self) -> usize {
        self.moments.capacity() * size_of::<Moments>()
    }
}
