//! [`Scale`]: an axis with round numbers at its ends and at its ticks.

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use std::ops::Range;

/// The most ticks of an axis that shows its whole numbers.
const FEW: usize = 6;

/// An axis of a plot.
#[derive(Clone, Debug)]
pub struct Scale {
    is_logarithmic: bool,
    ticks: Vec<f64>,
    ends: Range<f64>,
}

impl Scale {
    /// An axis from 0 to a round number that no value exceeds.
    #[must_use]
    pub fn linear(values: &[f64]) -> Self {
        let most = values.iter().copied().fold(0.0, f64::max).max(f64::MIN_POSITIVE);
        let rough = most / 5.0;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|round| round * power).into_iter().find(|step| *step >= rough * 0.999);
        let step = step.unwrap_or(rough);
        let mut ticks = vec![0.0];
        while ticks.last().is_some_and(|last| *last < most * 0.9999) {
            ticks.push(step * f64::from(u32::try_from(ticks.len()).unwrap_or(u32::MAX)));
        }
        Scale { is_logarithmic: false, ends: 0.0..ticks.last().copied().unwrap_or(most), ticks }
    }

    /// An axis on which each step is a multiple of the one before. If there are few different values, they are its
    /// ticks. Values that are not above 0 have no place on it.
    #[must_use]
    pub fn logarithmic(values: &[f64]) -> Self {
        let mut values: Vec<_> = values.iter().copied().filter(|value| *value > 0.0).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let (least, most) = (values.first().copied().unwrap_or(1.0), values.last().copied().unwrap_or(1.0));
        if values.len() <= FEW && values.iter().all(|value| value.fract() == 0.0) && most > least {
            return Scale { is_logarithmic: true, ends: least..most, ticks: values };
        }
        let decades = most.log10() - least.log10();
        let round: &[f64] = if decades > 2.2 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let all: Vec<_> =
            (-9..=12).flat_map(|power| round.iter().map(move |round| round * 10_f64.powi(power))).collect();
        let first = all.iter().rposition(|tick| *tick <= least * 1.0001).unwrap_or_default();
        let last = all.iter().position(|tick| *tick >= most * 0.9999).unwrap_or(all.len() - 1).max(first + 1);
        let ticks = all[first..=last].to_vec();
        Scale { is_logarithmic: true, ends: ticks[0]..ticks[ticks.len() - 1], ticks }
    }

    /// Where a value is on the axis, from 0 to 1.
    #[must_use]
    pub fn share(&self, value: f64) -> f64 {
        let Range { start, end } = self.ends;
        let share = if self.is_logarithmic {
            (value / start).ln() / (end / start).ln()
        } else {
            (value - start) / (end - start)
        };
        share.clamp(0.0, 1.0)
    }
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    #[expect(clippy::cast_possible_truncation, reason = "within the picture")]
    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        limit.0 + (self.share(*value) * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.ends.clone()
    }
}

impl ValueFormatter<f64> for Scale {
    /// A tick without zeros at its end, and with commas between thousands.
    fn format_ext(&self, value: &f64) -> String {
        let text = format!("{value:.3}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        let (whole, rest) = text.split_once('.').map_or((text, None), |(whole, rest)| (whole, Some(rest)));
        let mut grouped = String::new();
        for (index, digit) in whole.chars().enumerate() {
            if index > 0 && (whole.len() - index).is_multiple_of(3) {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        rest.map_or(grouped.clone(), |rest| format!("{grouped}.{rest}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: &Scale) -> String {
        scale.ticks.iter().map(|tick| scale.format_ext(tick)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_ticks_are_round_and_hold_every_value() {
        assert_eq!(labels(&Scale::linear(&[2052.0, 46.0])), "0 500 1,000 1,500 2,000 2,500");
        assert_eq!(labels(&Scale::linear(&[100.0])), "0 20 40 60 80 100");
        assert_eq!(labels(&Scale::linear(&[0.9])), "0 0.2 0.4 0.6 0.8 1");
        assert_eq!(labels(&Scale::logarithmic(&[1.0, 2.0, 10.0, 100.0])), "1 2 10 100");
        assert_eq!(labels(&Scale::logarithmic(&[2.5, 195.0])), "2 5 10 20 50 100 200");
        assert_eq!(labels(&Scale::logarithmic(&[20.5, 4830.0, 9609.0])), "10 100 1,000 10,000");
    }

    #[test]
    fn a_step_of_a_logarithmic_axis_is_a_multiple() {
        let scale = Scale::logarithmic(&[1.0, 10.0, 100.0, 1000.0]);
        let places: Vec<_> = [1.0, 10.0, 100.0, 1000.0].map(|value| scale.map(&value, (0, 300))).into();
        assert_eq!(places, [0, 100, 200, 300]);
        assert_eq!(Scale::linear(&[100.0]).map(&25.0, (400, 0)), 300);
    }

    #[test]
    fn an_axis_without_values_does_not_panic() {
        assert!(labels(&Scale::linear(&[])).starts_with('0'));
        assert!(Scale::logarithmic(&[]).ends.end > 0.0);
        assert!(Scale::logarithmic(&[0.0, -1.0]).ends.start > 0.0);
    }
}
