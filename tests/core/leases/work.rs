//! Work while a lease is held: renewed meanwhile, released in the end, and over when the lease is.

use super::{Sent, TRIP, reached, take_over};
use crate::harness::clients::Way;
use crate::leases::world::{World, call, terms};
use fencepost::Error;
use fencepost::lease::{LeaseLost, Unfinished};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

const LENGTH: u64 = 10_000;

/// A world in which a request fares by the moment at which it leaves, and when requests left.
fn world_where(way: impl Fn(u64) -> Way + Send + Sync + 'static) -> (World, Sent) {
    reached(&World::new(), way)
}

fn well() -> (World, Sent) {
    world_where(|_| Way::Answered(TRIP))
}

/// The traces of a work: how often it was polled and when last, and whether it is gone.
#[derive(Clone, Default)]
struct Traces {
    polls: Arc<AtomicU64>,
    last: Arc<AtomicU64>,
    gone: Arc<AtomicBool>,
}

struct Goes(Traces);

impl Drop for Goes {
    fn drop(&mut self) {
        self.0.gone.store(true, SeqCst);
    }
}

impl Traces {
    /// Works for so many milliseconds, polled every ten.
    async fn work(self, world: &World, millis: u64) {
        let _goes = Goes(self.clone());
        let (clock, began) = (world.clock.clone(), world.clock.now());
        loop {
            let worked = clock.now() - began;
            self.polls.fetch_add(1, SeqCst);
            self.last.store(worked, SeqCst);
            if worked >= millis {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Asserts the end of the work: its last poll was about then, and nothing follows.
    async fn assert_ended(&self, world: &World, at: u64) {
        let (polls, last) = (self.polls.load(SeqCst), self.last.load(SeqCst));
        assert!(self.gone.load(SeqCst), "the work was dropped");
        assert!((at.saturating_sub(30)..=at).contains(&last), "polled last at {last}, not at {at}");
        world.engine.take_log();
        tokio::time::sleep(Duration::from_mins(10)).await;
        assert_eq!((self.polls.load(SeqCst), world.engine.take_counts()), (polls, (0, 0)), "nothing runs on its own");
    }
}

async fn held(world: &World, traces: &Traces, millis: u64) -> Result<(), Error<Unfinished>> {
    let work = |_| traces.clone().work(world, millis);
    world.app.leases.while_held("k", "a", terms(LENGTH), work).await
}

fn assert_about(sent: &Sent, expected: &[u64]) {
    let sent = sent.lock().expect("no panic");
    let close = sent.iter().zip(expected).all(|(at, expected)| at.abs_diff(*expected) <= 2 * expected / 5_000 + 1);
    assert!(sent.len() == expected.len() && close, "{sent:?} instead of {expected:?}");
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_renewed_at_each_half_and_released_at_the_end() {
    let (world, sent) = well();
    let traces = Traces::default();
    held(&world, &traces, 27_000).await.expect("done");
    // Each counts from when the one before left.
    assert_about(&sent, &[0, 5_000, 10_000, 15_000, 20_000, 25_000, 27_010]);
    assert_eq!((world.row("k").get("holder"), &world.row("k")["renewals"]), (None, &json!({"N": "5"})));
    traces.assert_ended(&world, 27_000).await;
}

/// While the work goes on, another client changes the row after 7 seconds.
#[tokio::test(start_paused = true)]
async fn the_work_is_cancelled_once_a_renewal_finds_the_lease_lost() {
    for is_purged in [false, true] {
        let (world, sent) = well();
        let traces = Traces::default();
        let after = async {
            tokio::time::sleep(Duration::from_secs(7)).await;
            if is_purged {
                world.purge("k");
            } else {
                take_over(&world);
            }
            world.row("k")
        };
        let (worked, row) = tokio::join!(held(&world, &traces, 60_000), after);
        assert!(matches!(worked, Err(Error::Refused(Unfinished::Lost))), "{worked:?}");
        assert_about(&sent, &[0, 5_000, 10_000]);
        assert_eq!(world.row("k"), row, "what is there is left alone");
        traces.assert_ended(&world, 10_010).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_work_is_cancelled_when_its_time_is_over_and_no_renewal_was_answered() {
    for way in [Way::Dropped, Way::AnswerLost, Way::InTransaction, Way::Denied] {
        let (world, sent) =
            world_where(move |at| if (1_000..LENGTH).contains(&at) { way } else { Way::Answered(TRIP) });
        let traces = Traces::default();
        let began = world.clock.now();
        let worked = held(&world, &traces, 60_000).await;
        assert!(matches!(worked, Err(Error::Refused(Unfinished::Unknown { .. }))), "{worked:?}");
        let took = world.clock.now() - began;
        assert!((LENGTH..LENGTH + 100).contains(&took), "its time counts from before the acquire was sent: {took}");
        let released = *sent.lock().expect("no panic").last().expect("one");
        assert!(released >= LENGTH, "it is given back all the same: {released}");
        assert_eq!(world.row("k").get("holder"), None);
        // Its work began one round trip later.
        traces.assert_ended(&world, LENGTH - TRIP).await;
    }
}

/// A machine that stands still may stop its monotonic clock. Its time of day has gone on when it wakes up.
#[tokio::test(start_paused = true)]
async fn a_holder_that_wakes_up_after_its_time_does_not_go_on() {
    for other_holder in [false, true] {
        let (world, sent) = well();
        let traces = Traces::default();
        let after = async {
            tokio::time::sleep(Duration::from_secs(3)).await;
            world.clock.set_forward(60_000);
            if other_holder {
                take_over(&world);
            }
        };
        let began = tokio::time::Instant::now();
        let (worked, ()) = tokio::join!(held(&world, &traces, 600_000), after);
        assert!(began.elapsed() < Duration::from_millis(3_100), "it found out at once: {:?}", began.elapsed());
        match worked {
            Err(Error::Refused(Unfinished::Lost)) => assert!(other_holder, "nobody else has acquired it"),
            Err(Error::Refused(Unfinished::Unknown { .. })) => assert!(!other_holder, "the release has found it lost"),
            other => panic!("{other:?}"),
        }
        let polled_last = traces.last.load(SeqCst);
        assert!(polled_last < 3_010, "not once after it woke up: {polled_last}");
        assert!(traces.gone.load(SeqCst));
        assert_eq!(sent.lock().expect("no panic").len(), 2, "no renewal, only the release");
        assert_eq!(world.row("k").get("holder").is_some(), other_holder);
    }
}

/// Also if a renewal is under way, or its answer never comes.
#[tokio::test(start_paused = true)]
async fn the_lease_is_released_when_the_work_is_dropped() {
    for (way, after) in [(Way::Answered(TRIP), 3_000), (Way::Answered(TRIP), 12_000), (Way::Dropped, 5_100)] {
        let (world, sent) = world_where(move |at| if (5_000..5_200).contains(&at) { way } else { Way::Answered(TRIP) });
        let traces = Traces::default();
        let dropped = tokio::time::timeout(Duration::from_millis(after), held(&world, &traces, 60_000)).await;
        assert!(dropped.is_err(), "{dropped:?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(world.row("k").get("holder"), None, "after {after} ms");
        assert!((after..after + 200).contains(sent.lock().expect("no panic").last().expect("a release")));
        traces.assert_ended(&world, after).await;
    }
}

/// Work that blocks its only thread is not renewed. What it returns after another holder had the lease does not count.
#[tokio::test(start_paused = true)]
async fn work_that_blocks_for_longer_than_its_lease_is_lost_if_another_holder_came() {
    for other_holder in [false, true] {
        let (world, _) = well();
        let work = async |_| {
            world.clock.set_forward(60_000);
            if other_holder {
                take_over(&world);
            }
            7
        };
        let worked = world.app.leases.while_held("k", "a", terms(LENGTH), work).await;
        match worked {
            Ok(7) => assert!(!other_holder, "another holder had the lease"),
            Err(Error::Refused(Unfinished::Lost)) => assert!(other_holder, "nobody had it"),
            other => panic!("{other:?}"),
        }
    }
    // Nobody can say who had the lease when the release is not answered.
    let (world, _) = world_where(|at| if at < 60_000 { Way::Answered(TRIP) } else { Way::Dropped });
    let work = async |_| world.clock.set_forward(60_000);
    let worked = world.app.leases.while_held("k", "a", terms(LENGTH), work).await;
    assert!(matches!(worked, Err(Error::Refused(Unfinished::Unknown { .. }))), "{worked:?}");
}

/// A call ends before the work does: no more requests may be sent, so the lease cannot be kept.
#[tokio::test(start_paused = true)]
async fn a_work_does_not_outlive_its_lease_when_its_call_has_ended() {
    let (world, sent) = well();
    let traces = Traces::default();
    let work = |_| traces.clone().work(&world, 60_000);
    let worked = world.app.leases.in_call(&call(7)).while_held("k", "a", terms(LENGTH), work).await;
    assert!(matches!(worked, Err(Error::Refused(Unfinished::Unknown { .. }))), "{worked:?}");
    assert_about(&sent, &[0, 5_000]);
    traces.assert_ended(&world, 5_000 + LENGTH - TRIP).await;
}

#[tokio::test(start_paused = true)]
async fn a_held_lease_is_renewed_until_it_is_released_and_tells_when_it_is_lost() {
    let (world, sent) = well();
    let held = world.app.leases.hold("k", "a", terms(LENGTH), Duration::ZERO).await.expect("free");
    assert!(tokio::time::timeout(Duration::from_secs(12), held.lost()).await.is_err(), "it is renewed");
    assert!(held.remaining() > Duration::from_millis(LENGTH / 2));
    held.release().await.expect("it was held");
    assert_about(&sent, &[0, 5_000, 10_000, 12_010]);
    assert_eq!(world.row("k").get("holder"), None);

    let held = world.app.leases.hold("k", "a", terms(LENGTH), Duration::ZERO).await.expect("free");
    take_over(&world);
    held.lost().await;
    assert_eq!(held.remaining(), Duration::ZERO);
    assert!(matches!(held.release().await, Err(Error::Refused(LeaseLost::Fenced))));

    // The machine stood still, and only its wall clock went on.
    world.pass(LENGTH).await;
    world.purge("k");
    let held = world.app.leases.hold("k", "a", terms(LENGTH), Duration::ZERO).await.expect("free");
    world.clock.set_forward(60_000);
    let began = tokio::time::Instant::now();
    held.lost().await;
    assert!(began.elapsed() <= Duration::from_secs(1), "{:?}", began.elapsed());
}

/// One campaigner after the other leads, and a stop passes the lease on at once.
#[tokio::test(start_paused = true)]
async fn a_campaign_waits_works_and_stops() {
    let (world, _) = well();
    let leases = &world.app.leases;
    let began = tokio::time::Instant::now();
    let after = |millis| tokio::time::sleep(Duration::from_millis(millis));
    let campaign = |holder: &'static str, stop: u64| {
        leases.campaign("k", holder, terms(LENGTH), after(stop), async move |token| {
            after(60_000).await;
            (holder, token.number())
        })
    };
    let first = async { (campaign("a", 27_000).await, began.elapsed()) };
    let follow = async |holder, stop| {
        after(100).await;
        (campaign(holder, stop).await, began.elapsed())
    };
    let (second, third) = (follow("b", 19_900), follow("c", 600_000));
    let (first, second, third) = tokio::join!(first, second, third);
    assert!(matches!(first.0, Err(Error::Refused(Unfinished::Stopped))), "its work was cancelled: {first:?}");
    assert!(matches!(second.0, Err(Error::Refused(Unfinished::Stopped))), "it never led: {second:?}");
    assert!(matches!(third.0, Ok(("c", _))), "{third:?}");
    assert!(second.1 < Duration::from_millis(20_100), "nobody waits for the end of a pause: {:?}", second.1);
    // It leads at once, or at its next look, of which each half of the length has one.
    assert!((87_000..97_200).contains(&third.1.as_millis()), "{:?}", third.1);
}

/// An acquire that is under way when the stop comes may be applied. So its answer is waited for, and its lease released.
#[tokio::test(start_paused = true)]
async fn a_campaign_that_is_stopped_while_it_acquires_leaves_no_lease_behind() {
    let (world, sent) = world_where(|_| Way::Answered(100));
    let work = async |_| panic!("it was told to stop");
    let stop = tokio::time::sleep(Duration::from_millis(50));
    let stopped: Result<(), _> = world.app.leases.campaign("k", "a", terms(LENGTH), stop, work).await;
    assert!(matches!(stopped, Err(Error::Refused(Unfinished::Stopped))), "{stopped:?}");
    assert_eq!(world.row("k").get("holder"), None);
    assert_about(&sent, &[0, 100]);
}

/// A table that does not answer for a while ends no campaign. What cannot pass ends it.
#[tokio::test(start_paused = true)]
async fn a_campaign_goes_on_where_waiting_may_help() {
    for way in [Way::Dropped, Way::AnswerLost, Way::InTransaction] {
        let (world, _) = world_where(move |at| if at < 30_000 { way } else { Way::Answered(TRIP) });
        let campaign = world.app.leases.campaign("k", "a", terms(LENGTH), std::future::pending(), async |_| 7);
        assert_eq!(campaign.await.expect("in the end"), 7);
        assert_eq!(world.row("k").get("holder"), None);
    }
    let (world, _) = world_where(|_| Way::Denied);
    let campaign = world.app.leases.campaign("k", "a", terms(LENGTH), std::future::pending(), async |_| 7);
    assert!(matches!(campaign.await, Err(Error::Failed(failure)) if !failure.is_retryable()));
    let (world, _) = world_where(|_| Way::Dropped);
    let ended = world.app.leases.in_call(&call(7));
    let campaign = ended.campaign("k", "a", terms(LENGTH), std::future::pending(), async |_| 7);
    assert!(matches!(campaign.await, Err(Error::Failed(_))), "its call is over");
}
