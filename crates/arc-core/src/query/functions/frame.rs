//! The rows of a window's frame that moves, folded into one state.

/// What values are folded into.
pub(super) trait FrameState: Copy + Default {
    type Value: Copy;

    /// Takes one more value.
    fn add(&mut self, value: Self::Value);

    /// Returns the state of these values, then those of `later`.
    fn then(self, later: Self) -> Self;
}

/// Values of a frame, with their state. Nothing is ever subtracted: what was added to a NaN or to
/// something much larger cannot be had back that way.
#[derive(Debug, Default)]
pub(super) struct FrameFold<S: FrameState> {
    /// For each of those that go next, the next one last, the state of it and of those that go
    /// after it.
    going: Vec<S>,
    /// Those that came since.
    came: Vec<S::Value>,
    state_of_came: S,
}

impl<S: FrameState> FrameFold<S> {
    pub(super) fn push(&mut self, value: S::Value) {
        self.came.push(value);
        self.state_of_came.add(value);
    }

    /// Lets go of the one that came first.
    pub(super) fn pop(&mut self) {
        if self.going.is_empty() {
            let mut state = S::default();
            self.going.extend(self.came.drain(..).rev().map(|value| {
                state.add(value);
                state
            }));
            self.state_of_came = S::default();
        }
        self.going.pop();
    }

    pub(super) fn count(&self) -> usize {
        self.going.len() + self.came.len()
    }

    pub(super) fn state(&self) -> S {
        self.going.last().copied().unwrap_or_default().then(self.state_of_came)
    }

    pub(super) fn size(&self) -> usize {
        self.going.capacity() * size_of::<S>() + self.came.capacity() * size_of::<S::Value>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, Clone, Copy)]
    struct FloatSum(f64);

    impl FrameState for FloatSum {
        type Value = f64;

        fn add(&mut self, value: f64) {
            self.0 += value;
        }

        fn then(self, later: Self) -> Self {
            Self(self.0 + later.0)
        }
    }

    #[test]
    fn a_frame_that_moves_has_the_state_of_its_values() {
        let values = [1.0, f64::NAN, 3.0, 1e300, 4.0, 5.0, f64::INFINITY, 6.0, 7.0];
        for width in 1..values.len() {
            let mut moving = FrameFold::<FloatSum>::default();
            for (at, value) in values.iter().enumerate() {
                moving.push(*value);
                if at >= width {
                    moving.pop();
                }
                let frame = &values[(at + 1).saturating_sub(width)..=at];
                let (sum, expected) = (moving.state().0, frame.iter().sum::<f64>());
                assert_eq!(moving.count(), frame.len());
                assert!(sum == expected || (sum.is_nan() && expected.is_nan()), "{frame:?}");
            }
        }
    }
}
