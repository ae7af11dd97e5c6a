//! The check that nothing was applied twice and nothing acknowledged was lost.

use crate::log::Log;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;

/// The changes of a test and their answers, to be compared with the table: for each item, *acknowledged <= held <=
/// acknowledged + unknown*.
///
/// Note each change once, when its caller is told how it ended. A change that was refused is not noted.
///
/// ```
/// use fencepost_test::{Changes, Log};
///
/// let changes = Changes::default();
/// changes.acknowledged("a", 1);
/// changes.acknowledged("a", 1);
/// changes.unknown("a", 1); // its answer was lost, and the caller says so
/// assert!(changes.check(&Log::default(), |_| 3).is_ok()); // whatever "a" holds in the table
/// let doubled = changes.check(&Log::default(), |_| 4).expect_err("one was applied twice");
/// assert!(doubled.to_string().starts_with("a holds 4, which is 1 more than the 2 acknowledged and 1 unknown"));
/// ```
#[derive(Debug, Default)]
pub struct Changes(Mutex<BTreeMap<String, Noted>>);

#[derive(Clone, Copy, Debug, Default)]
struct Noted {
    acknowledged: u64,
    unknown: u64,
}

/// The table contradicts the answers to callers.
#[derive(Debug)]
pub struct Contradiction(String);

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Contradiction {}

impl Changes {
    /// The caller was told that its change of this item, by this amount, was applied.
    pub fn acknowledged(&self, item: &str, amount: u64) {
        self.note(item, |noted| noted.acknowledged += amount);
    }

    /// The caller was told that the outcome of its change is unknown.
    pub fn unknown(&self, item: &str, amount: u64) {
        self.note(item, |noted| noted.unknown += amount);
    }

    fn note(&self, item: &str, how: impl Fn(&mut Noted)) {
        how(self.0.lock().expect("no panic while noting").entry(item.to_owned()).or_default());
    }

    /// Compares the noted changes of each item with the number that `held` reads.
    ///
    /// # Errors
    /// Names the first item that holds too much or too little, and shows the part of the log that is about it.
    pub fn check(&self, log: &Log, held: impl Fn(&str) -> i64) -> Result<(), Contradiction> {
        for (item, Noted { acknowledged, unknown }) in &*self.0.lock().expect("no panic while noting") {
            let (held, least) = (i128::from(held(item)), i128::from(*acknowledged));
            let most = least + i128::from(*unknown);
            if (least..=most).contains(&held) {
                continue;
            }
            let what = if held > most {
                format!(
                    "{} more than the {acknowledged} acknowledged and {unknown} unknown: a change was applied twice",
                    held - most
                )
            } else {
                format!("{} less than the {acknowledged} acknowledged: a change was lost", least - held)
            };
            let log = log.clone().about(item);
            return Err(Contradiction(format!("{item} holds {held}, which is {what}\n{log}")));
        }
        Ok(())
    }

    /// The same as an assertion.
    #[track_caller]
    pub fn assert_nothing_applied_twice(&self, log: &Log, held: impl Fn(&str) -> i64) {
        if let Err(contradiction) = self.check(log, held) {
            panic!("{contradiction}");
        }
    }
}
