//! [`Figure`]: a measured number as it is printed. Terminal, CSV, page and plots all show the same one.

use std::fmt;
use std::time::Duration;

/// The reason why something could not be measured, instead of its figures.
pub type Measured<T> = Result<T, String>;

/// A number that is rounded once, when it is measured. What is drawn is exactly what is printed.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    text: String,
    value: Option<f64>,
}

impl Figure {
    /// A number with so many decimals. A number that does not exist, such as a mean of nothing, is `none`.
    #[must_use]
    pub fn new(value: f64, decimals: usize) -> Self {
        if !value.is_finite() {
            return Figure { text: "none".to_owned(), value: None };
        }
        let text = format!("{value:.decimals$}");
        let value = text.parse().ok();
        Figure { text, value }
    }

    /// A whole number.
    #[must_use]
    pub fn count(count: u64) -> Self {
        Figure::new(number(count), 0)
    }

    /// A time in milliseconds.
    #[must_use]
    pub fn millis(time: Duration, decimals: usize) -> Self {
        Figure::new(millis(time), decimals)
    }

    /// The quotient of two times, or of other numbers.
    #[must_use]
    pub fn ratio(of: f64, to: f64, decimals: usize) -> Self {
        Figure::new(of / to, decimals)
    }

    /// A figure that has no meaning here. It is printed as nothing.
    #[must_use]
    pub fn empty() -> Self {
        Figure { text: String::new(), value: None }
    }

    /// The number, rounded as it is printed. `None` if there is none.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        self.value
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// A time in milliseconds.
#[must_use]
pub fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// A count as a number to divide.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
pub fn number(count: u64) -> f64 {
    count as f64
}

/// The length of a list as a number to divide.
#[must_use]
pub fn length<T>(list: &[T]) -> f64 {
    number(list.len() as u64)
}

/// The time that half of them do not exceed.
#[must_use]
pub fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The time by which this share of `count` had happened, in percent. `None` if fewer ever did.
///
/// `times` are sorted, and may be fewer than `count`.
#[must_use]
pub fn percentile(times: &[Duration], count: usize, percent: usize) -> Option<Duration> {
    times.get((count * percent).div_ceil(100).checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_the_value_that_it_shows() {
        let figure = Figure::new(5.4567, 2);
        assert_eq!((figure.to_string(), figure.value()), ("5.46".to_owned(), Some(5.46)));
        assert_eq!(Figure::millis(Duration::from_micros(1_726_499), 0).value(), Some(1726.0));
    }

    #[test]
    fn what_does_not_exist_is_not_zero() {
        let mean_of_nothing = Figure::ratio(0.0, 0.0, 2);
        assert_eq!((mean_of_nothing.to_string(), mean_of_nothing.value()), ("none".to_owned(), None));
        assert_eq!((Figure::empty().to_string(), Figure::empty().value()), (String::new(), None));
    }

    #[test]
    fn a_share_that_was_never_reached_has_no_time() {
        let times: Vec<_> = (1..=6).map(Duration::from_millis).collect();
        let at = |percent| percentile(&times, 10, percent);
        assert_eq!((at(10), at(55), at(60)), (Some(times[0]), Some(times[5]), Some(times[5])));
        assert_eq!((at(61), at(100), at(0)), (None, None, None));
        assert_eq!(percentile(&times, 6, 100), Some(times[5]));
    }
}
