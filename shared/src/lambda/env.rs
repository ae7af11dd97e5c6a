//! Reads the settings of a function from its environment.

use crate::error::Source;
use std::env;
use std::time::Duration;

/// Reads a required variable, such as the name of a table.
///
/// # Errors
/// A sentence that names the variable. Set it.
pub fn required(name: &str) -> Result<String, Source> {
    env::var(name).ok().filter(|value| !value.is_empty()).ok_or_else(|| format!("{name} must be set").into())
}

/// Reads a variable with a whole number of seconds. Returns `default` seconds if it is not set.
///
/// # Errors
/// A sentence that names the variable, if its value is not a whole number. Correct it.
pub fn seconds_or(name: &str, default: u64) -> Result<Duration, Source> {
    match env::var(name) {
        Ok(text) => parse_seconds(name, &text),
        Err(_) => Ok(Duration::from_secs(default)),
    }
}

/// The value of the first of these variables that is set, even if it is empty.
pub(super) fn first_set(names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| env::var(name).ok())
}

fn parse_seconds(name: &str, text: &str) -> Result<Duration, Source> {
    let seconds = text.parse().map_err(|_| format!("{name} must be a whole number of seconds"))?;
    Ok(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_is_missing_or_malformed_is_named() {
        let missing = required("FENCEPOST_TEST_NOT_SET").expect_err("it is not set");
        assert_eq!(missing.to_string(), "FENCEPOST_TEST_NOT_SET must be set");
        assert_eq!(seconds_or("FENCEPOST_TEST_NOT_SET", 300).ok(), Some(Duration::from_mins(5)));
        assert_eq!(parse_seconds("X", "5").ok(), Some(Duration::from_secs(5)));
        let malformed = parse_seconds("X", "5s").expect_err("not a number");
        assert_eq!(malformed.to_string(), "X must be a whole number of seconds");
    }
}
