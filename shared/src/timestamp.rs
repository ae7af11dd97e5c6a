//! [`Timestamp`]: a moment to the millisecond, as clients and tables see it.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

/// A moment, kept to the millisecond. Written as RFC 3339 UTC with exactly three decimals.
///
/// ```
/// use fencepost::timestamp::Timestamp;
/// let moment: Timestamp = "2026-03-07T10:00:00.000Z".parse()?;
/// assert_eq!(moment.to_string(), "2026-03-07T10:00:00.000Z");
/// # Ok::<(), fencepost::timestamp::InvalidTimestamp>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Timestamp(jiff::Timestamp);

/// The text is not a timestamp as [`Timestamp`] writes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidTimestamp;

impl fmt::Display for InvalidTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a timestamp like 2026-03-07T10:00:00.000Z")
    }
}

impl std::error::Error for InvalidTimestamp {}

impl Timestamp {
    /// How long after `earlier` this is; zero when it is not after it.
    #[must_use]
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::try_from(self.0.duration_since(earlier.0)).unwrap_or_default()
    }
}

impl From<SystemTime> for Timestamp {
    /// Cuts off what is finer than a millisecond; a time that no calendar has becomes the nearest that one has.
    fn from(time: SystemTime) -> Self {
        let (nearest, moment) = match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => (jiff::Timestamp::MAX, i64::try_from(after.as_millis())),
            Err(before) => {
                (jiff::Timestamp::MIN, i64::try_from(before.duration().as_nanos().div_ceil(1_000_000)).map(|ms| -ms))
            }
        };
        let moment = moment.ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
        Timestamp(moment.unwrap_or(nearest))
    }
}

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    fn from_str(text: &str) -> Result<Self, InvalidTimestamp> {
        let moment = Timestamp(text.parse().map_err(|_| InvalidTimestamp)?);
        if moment.to_string() == text { Ok(moment) } else { Err(InvalidTimestamp) }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.0)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_always_three_decimals() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_micros(1_772_877_600_000_999);
        assert_eq!(Timestamp::from(time).to_string(), "2026-03-07T10:00:00.000Z");
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(1_772_877_600_120);
        assert_eq!(Timestamp::from(time).to_string(), "2026-03-07T10:00:00.120Z");
        assert_eq!(
            Timestamp::from(SystemTime::UNIX_EPOCH - Duration::from_nanos(1)).to_string(),
            "1969-12-31T23:59:59.999Z"
        );
    }

    #[test]
    fn only_the_one_notation_is_read() {
        assert!("2026-03-07T10:00:00.000Z".parse::<Timestamp>().is_ok());
        for other in ["2026-03-07T10:00:00Z", "2026-03-07T11:00:00.000+01:00", "2026-03-07T10:00:00.0001Z", "", "now"] {
            assert_eq!(other.parse::<Timestamp>(), Err(InvalidTimestamp), "{other}");
        }
    }

    #[test]
    fn the_time_between_two_moments_is_never_negative() {
        let [a, b] = ["2026-03-07T10:00:00.000Z", "2026-03-07T10:00:01.500Z"]
            .map(|text| text.parse::<Timestamp>().expect("a moment"));
        assert_eq!(b.since(a), Duration::from_millis(1500));
        assert_eq!(a.since(b), Duration::ZERO);
    }
}
