//! tmp
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
/// tmp
pub struct PartitionDay(pub i64);
impl PartitionDay {
    /// tmp
    pub fn from_time_ns(t: i64) -> Self { Self(t.div_euclid(86_400_000_000_000)) }
}
