//! The terms of a renewal with an unknown outcome, and the limits of all terms.

use super::scene::TABLES;
use crate::harness::engine::{Engine, store};
use crate::harness::faults::{Broken, Network, Rates, Wire, network_that_breaks};
use crate::harness::functions::LEASES;
use crate::histories::scene::EPOCH;
use fencepost::lease::{LeaseTerms, Leases};
use fencepost::{Error, Failure};
use proptest::prelude::*;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep};

fn leases(network: &Arc<Network>, start: Instant) -> Leases {
    let now = move || SystemTime::UNIX_EPOCH + EPOCH + start.elapsed();
    store(&Wire::new(network).client(), now, || fastrand::u64(..))
        .with_time_limit(Duration::from_secs(1))
        .leases(LEASES)
}

#[tokio::test(start_paused = true)]
async fn a_lease_whose_shorter_renewal_is_not_answered_is_believed_no_longer_than_that() {
    let start = Instant::now();
    let engine = Engine::embedded(TABLES);
    let reached = |rates: Rates| {
        let network = network_that_breaks(&engine, rates, Broken::Nothing, fastrand::Rng::with_seed(7));
        leases(&network, start)
    };
    let (calm, lossy) = (reached(Rates::default()), reached(Rates { answer_lost: 1000, ..Rates::default() }));
    let terms = |seconds| LeaseTerms::new(Duration::from_secs(seconds)).expect("long enough");
    let mut lease = calm.acquire("k", "one", terms(60)).await.expect("free");

    let renewed = lossy.renew(&mut lease, terms(2)).await;
    assert!(matches!(renewed, Err(Error::Failed(Failure::OutcomeUnknown { .. }))), "{renewed:?}");
    assert!(lease.remaining() <= Duration::from_secs(1), "it was applied, and ends then: {:?}", lease.remaining());
    sleep(Duration::from_secs(3)).await;
    assert!(lease.remaining().is_zero());
    calm.acquire("k", "two", terms(2)).await.expect("it has ended");

    // A renewal that ends later does no harm.
    let mut lease = calm.acquire("l", "one", terms(10)).await.expect("free");
    lossy.renew(&mut lease, terms(60)).await.expect_err("no answer");
    assert!(lease.remaining() > Duration::from_secs(8), "{:?}", lease.remaining());
}

proptest! {
    #[test]
    fn terms_leave_time_for_a_renewal_or_are_refused(length in 0u64..100_000, after in 0u64..100_000) {
        let millis = Duration::from_millis;
        let terms = LeaseTerms::renewed_after(millis(length), millis(after));
        let (in_time, not_at_once) = (length >= after + 450, after * 10 >= length);
        prop_assert_eq!(terms.is_ok(), in_time && not_at_once, "{:?}", terms);
        if let Ok(terms) = terms {
            prop_assert_eq!(terms.length(), millis(length));
        }
        let halved = LeaseTerms::new(millis(length));
        prop_assert_eq!(halved.is_ok(), length >= 900, "{:?}", halved);
    }
}
