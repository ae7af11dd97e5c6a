//! The write units of each add. `DynamoDB` charges one for each started KB of the item after the write.

use super::scene::HOP;
use super::steps::Steps;
use crate::figure::Figure;
use crowds::adds;
use std::time::Duration;

/// The numbers of remembered writes.
pub const REMEMBERED: [u64; 3] = [16, 32, 64];

/// The write units of one add to an item of this size, at this pace.
#[derive(Clone, Debug)]
pub struct Row {
    /// The size of the item's own attributes, in bytes.
    pub bytes: usize,
    /// The adds a second.
    pub per_second: u32,
    /// The write units, one for each number of [`REMEMBERED`].
    pub units: [Figure; 3],
}

/// The result for all sizes and paces.
#[derive(Clone, Debug)]
pub struct Units {
    /// One for each size and pace.
    pub rows: Vec<Row>,
}

/// Measures small and larger items, hot and quiet.
#[must_use]
pub fn measure(steps: &Steps<'_>) -> Units {
    let paces = [(200, Duration::from_secs(5)), (1, Duration::from_mins(2))];
    let sizes = [300, 900];
    steps.expect(paces.len() * sizes.len() * REMEMBERED.len());
    let mut rows = Vec::new();
    for bytes in sizes {
        for (per_second, time) in paces {
            let row = measure_these(bytes, per_second, time, steps);
            rows.push(row);
        }
    }
    Units { rows }
}

/// Measures one size at one pace.
#[must_use]
pub fn measure_these(bytes: usize, per_second: u32, time: Duration, steps: &Steps<'_>) -> Row {
    let [least, middle, most] = REMEMBERED;
    let units = [least, middle, most].map(|remembered| {
        let units = match remembered {
            16 => adds::units::<16>(bytes, f64::from(per_second), time, HOP),
            32 => adds::units::<32>(bytes, f64::from(per_second), time, HOP),
            _ => adds::units::<64>(bytes, f64::from(per_second), time, HOP),
        };
        steps.done(1);
        Figure::new(units, 2)
    });
    Row { bytes, per_second, units }
}
