//! [`Budget`]: how often a client asks a throttled table again.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// The tokens of a client that was never throttled, the price of a resend, and the reward for an answer without one.
/// Source: <https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html>
const CAPACITY: u32 = 100 * PRICE;
const PRICE: u32 = 5;
const REWARD: u32 = 1;

/// The retry quota of a client, by the rules of the SDKs. A throttled request is sent again for a price. An answer gives
/// the price of its last resend back, or a small reward if it took none. So a table that throttles now and then is asked
/// for as long as a call may take. A table that throttles everything is soon asked once for each call.
#[derive(Debug)]
pub(crate) struct Budget(AtomicU32);

impl Default for Budget {
    fn default() -> Self {
        Budget(AtomicU32::new(CAPACITY))
    }
}

impl Budget {
    /// Pays for sending a throttled request again. `false` if too little is left.
    pub(crate) fn pay(&self) -> bool {
        self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(PRICE)).is_ok()
    }

    /// Notes an answer of the table to a request that was not throttled.
    pub(crate) fn answered(&self, after_throttling: bool) {
        let back = if after_throttling { PRICE } else { REWARD };
        // The update always gives a value.
        let _ = self.0.fetch_update(Relaxed, Relaxed, |left| Some((left + back).min(CAPACITY)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_pays_for_a_hundred_resends_in_a_row_and_each_answer_pays_for_its_own() {
        let budget = Budget::default();
        let paid = || (0..1000).take_while(|_| budget.pay()).count();
        budget.answered(false);
        assert_eq!(paid(), 100, "no more than at the start");
        (0..4).for_each(|_| budget.answered(false));
        assert_eq!(paid(), 0);
        budget.answered(false);
        assert_eq!(paid(), 1);
        budget.answered(true);
        assert_eq!(paid(), 1);
    }
}
