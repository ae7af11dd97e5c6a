//! Tables of figures as Markdown.

use std::error::Error;
use std::time::Duration;

/// A measurement or the reason for its absence.
pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// A table with these headings and a line break at its end.
pub fn table<const N: usize>(headings: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let line = |cells: [String; N]| format!("| {} |\n", cells.join(" | "));
    let head = line(headings.map(str::to_owned)) + "|" + &"---|".repeat(N) + "\n";
    rows.into_iter().map(line).fold(head, |table, row| table + &row)
}

/// A number with so many decimals. An undefined number, such as a mean of nothing, is `none`.
pub fn figure(value: f64, decimals: usize) -> String {
    if value.is_finite() { format!("{value:.decimals$}") } else { "none".to_owned() }
}

/// A time in milliseconds.
pub fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// A count as a number to divide.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
pub fn number(count: impl TryInto<u64>) -> f64 {
    count.try_into().map_or(f64::NAN, |count| count as f64)
}

/// The mean of these numbers.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / number(values.len())
}

/// The largest of these numbers. `NaN` if there is none.
pub fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NAN, f64::max)
}

/// The number that 99 of 100 of these do not exceed. `NaN` if there is none.
pub fn p99(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let index = (sorted.len() * 99).div_ceil(100).saturating_sub(1);
    sorted.get(index).copied().unwrap_or(f64::NAN)
}

/// The median; of an even number of times, the larger one in the middle.
pub fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_its_headings_a_rule_and_its_rows() {
        let rows = [["one".to_owned(), figure(1.456, 2)], ["two".to_owned(), figure(2.0, 0)]];
        assert_eq!(table(["what", "ms"], rows), "| what | ms |\n|---|---|\n| one | 1.46 |\n| two | 2 |\n");
    }

    #[test]
    fn what_does_not_exist_is_not_zero() {
        assert_eq!([figure(mean(&[]), 1), figure(most(&[]), 0)], ["none", "none"]);
        assert_eq!((mean(&[1.0, 4.0]), most(&[1.0, 4.0, 2.0])), (2.5, 4.0));
        let hundred: Vec<_> = (1..=100).rev().map(f64::from).collect();
        assert_eq!((p99(&hundred), p99(&[4.0, 1.0])), (99.0, 4.0));
        assert_eq!(median(&mut [9, 1, 5].map(Duration::from_secs)), Duration::from_secs(5));
    }
}
