//! [`Timestamp`]: a moment to the millisecond, in the notation of clients and tables.

use fencepost_core::InvalidValue;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A moment to the millisecond, from the year 0 to 9999-12-30T22:00:00Z. Its text is RFC 3339 in UTC with 3 decimals.
///
/// ```
/// # fn main() -> Result<(), fencepost::InvalidValue> {
/// use fencepost::Timestamp;
/// let moment: Timestamp = "2026-03-07T10:00:00.000Z".parse()?;
/// assert_eq!(moment.to_string(), "2026-03-07T10:00:00.000Z");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Milliseconds since 1970.
    millis: i64,
}

/// The year 0 in milliseconds since 1970. RFC 3339 writes no year before it.
const FIRST_MILLIS: i64 = -62_167_219_200_000;
/// The last moment, in milliseconds since 1970. RFC 3339 writes it with every offset.
const LAST_MILLIS: i64 = 253_402_207_200_000;

const INVALID: InvalidValue = InvalidValue::Malformed(Cow::Borrowed(
    "not a timestamp like 2026-03-07T10:00:00.000Z, no finer than a millisecond",
));

impl Timestamp {
    /// Parses an RFC 3339 timestamp with any offset.
    ///
    /// Refuses fractions finer than a millisecond, instead of cutting them off. Refuses leap seconds.
    ///
    /// # Errors
    /// [`InvalidValue`] if the text is not RFC 3339, is finer than a millisecond, or is a leap second.
    pub fn from_rfc3339(text: &str) -> Result<Self, InvalidValue> {
        // The parser takes more than the RFC: anything between date and time, leap seconds, any number of decimals.
        if is_rfc3339(text.as_bytes()) { Self::parsed(text).ok_or(INVALID) } else { Err(INVALID) }
    }

    /// The moment, if it is whole milliseconds and RFC 3339 can write it in UTC.
    fn parsed(text: &str) -> Option<Self> {
        let moment =
            OffsetDateTime::parse(text, &Rfc3339).ok().filter(|moment| moment.nanosecond() % 1_000_000 == 0)?;
        Self::of_millis(moment.unix_timestamp() * 1000 + i64::from(moment.millisecond()))
    }

    fn of_millis(millis: i64) -> Option<Self> {
        (FIRST_MILLIS..=LAST_MILLIS).contains(&millis).then_some(Timestamp { millis })
    }

    /// Milliseconds since 1970. `None` for a moment before 1970.
    #[must_use]
    pub fn epoch_millis(self) -> Option<u64> {
        self.millis.try_into().ok()
    }

    /// The moment this many milliseconds after 1970. `None` if it is beyond the range of the calendar.
    #[must_use]
    pub fn from_epoch_millis(millis: u64) -> Option<Self> {
        Self::of_millis(millis.try_into().ok()?)
    }

    /// The time from `earlier` to this moment. Zero if this moment is not later.
    #[must_use]
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_millis(u64::try_from(self.millis - earlier.millis).unwrap_or_default())
    }
}

/// The moment this many milliseconds after 1970. A moment beyond the range of the calendar becomes 1970 itself.
pub(crate) fn moment(epoch_millis: u64) -> Timestamp {
    Timestamp::from_epoch_millis(epoch_millis).unwrap_or_else(|| Timestamp::from(SystemTime::UNIX_EPOCH))
}

/// Whether the text has the form of RFC 3339, section 5.6: date, `T`, time with seconds, at most 9 decimals, offset.
/// False for a leap second.
fn is_rfc3339(text: &[u8]) -> bool {
    let has_form = |text: &[u8], form: &[u8]| {
        let fits = |(byte, form): (&u8, &u8)| if *form == b'0' { byte.is_ascii_digit() } else { byte == form };
        text.len() == form.len() && text.iter().zip(form).all(fits)
    };
    let Some((moment, rest)) = text.split_at_checked(19) else { return false };
    let is_leap_second = moment.ends_with(b":60");
    let offset = match rest.strip_prefix(b".") {
        None => rest,
        Some(rest) => {
            let decimals = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if !(1..=9).contains(&decimals) {
                return false;
            }
            &rest[decimals..]
        }
    };
    let has_offset = matches!(offset, b"Z" | b"z") || has_form(offset, b"+00:00") || has_form(offset, b"-00:00");
    let moment = moment.to_ascii_uppercase();
    has_form(&moment, b"0000-00-00T00:00:00") && has_offset && !is_leap_second
}

impl From<SystemTime> for Timestamp {
    /// Cuts off fractions finer than a millisecond. A time beyond the calendar becomes the nearest in it.
    fn from(time: SystemTime) -> Self {
        let millis = match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_millis()).unwrap_or(LAST_MILLIS).min(LAST_MILLIS),
            Err(before) => {
                let before = i64::try_from(before.duration().as_nanos().div_ceil(1_000_000));
                before.map_or(FIRST_MILLIS, |before| (-before).max(FIRST_MILLIS))
            }
        };
        Timestamp { millis }
    }
}

impl FromStr for Timestamp {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let moment = Self::parsed(text).ok_or(INVALID)?;
        if moment.to_string() == text { Ok(moment) } else { Err(INVALID) }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.millis.div_euclid(1000);
        let at = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let (year, month, day) = at.to_calendar_date();
        let (hour, minute, second) = at.to_hms();
        let (month, millis) = (u8::from(month), self.millis.rem_euclid(1000));
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
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
        const START: SystemTime = SystemTime::UNIX_EPOCH;
        for (time, text) in [
            (START + Duration::from_micros(1_772_877_600_000_999), "2026-03-07T10:00:00.000Z"),
            (START + Duration::from_millis(1_772_877_600_120), "2026-03-07T10:00:00.120Z"),
            (START - Duration::from_nanos(1), "1969-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Timestamp::from(time).to_string(), text);
        }
    }

    #[test]
    fn every_moment_has_a_text_that_gives_it_back() {
        let far = Duration::from_hours(24 * 366 * 20_000);
        let first = Timestamp::from(SystemTime::UNIX_EPOCH - far);
        let last = Timestamp::from(SystemTime::UNIX_EPOCH + far);
        for (moment, text) in [(first, "0000-01-01T00:00:00.000Z"), (last, "9999-12-30T22:00:00.000Z")] {
            assert_eq!(moment.to_string(), text);
            assert_eq!((text.parse(), Timestamp::from_rfc3339(text)), (Ok(moment), Ok(moment)));
        }
        for text in ["0000-01-01T00:00:00+00:01", "9999-12-30T22:00:00.001Z", "-000001-12-31T23:59:59.999Z"] {
            assert_eq!((text.parse::<Timestamp>(), Timestamp::from_rfc3339(text)), (Err(INVALID), Err(INVALID)));
        }
        assert!(INVALID.to_string().contains("2026-03-07"), "an example");
    }
}
