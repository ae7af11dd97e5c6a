//! Work while a lease is held: renewed meanwhile, released in the end, and over when the lease is.

use super::{release_elsewhere, take_over};
use crate::harness::clients::{Way, client_that};
use crate::leases::world::{World, call, terms};
use fencepost::Error;
use fencepost::lease::Unfinished;
use serde_json::json;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const LENGTH: u64 = 10_000;
/// How long a request takes.
const TRIP: u64 = 10;

/// Requests as they leave, in milliseconds since the work began.
type Sent = Arc<Mutex<Vec<u64>>>;

/// A world in which a request fares by the moment at which it leaves, and when requests left.
fn world_where(way: impl Fn(u64) -> Way + Send + Sync + 'static) -> (World, Sent) {
    let world = World::new();
    let (sent, clock, began) = (Sent::default(), world.clock.clone(), world.clock.now());
    let noted = sent.clone();
    let client = client_that(&world.engine, move |_| {
        let at = clock.now() - began;
        noted.lock().expect("no panic").push(at);
        way(at)
    });
    (world.reached_by(&client), sent)
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

#[tokio::test(start_paused = true)]
async fn the_lease_is_released_also_when_the_work_gives_an_error() {
    let (world, _) = well();
    let failed = world
        .app
        .leases
        .while_held("k", "a", terms(LENGTH), async |token| {
            assert_eq!((token.lease_key(), world.row("k")["holder"].clone()), ("k", json!({"S": "a"})));
            Err::<(), _>(token.number())
        })
        .await;
    let token = failed.expect("its own error").expect_err("an error");
    assert_eq!((world.row("k").get("holder"), &world.row("k")["token"]["N"]), (None, &json!(token.to_string())));
}

/// While the work goes on, this happens to the row after 7 seconds.
async fn interrupted(happens: fn(&World)) {
    let (world, sent) = well();
    let traces = Traces::default();
    let after = async {
        tokio::time::sleep(Duration::from_secs(7)).await;
        happens(&world);
        world.row("k")
    };
    let (worked, row) = tokio::join!(held(&world, &traces, 60_000), after);
    assert!(matches!(worked, Err(Error::Refused(Unfinished::Lost))), "{worked:?}");
    assert_about(&sent, &[0, 5_000, 10_000]);
    assert_eq!(world.row("k"), row, "what is there is left alone");
    traces.assert_ended(&world, 10_010).await;
}

#[tokio::test(start_paused = true)]
async fn the_work_is_cancelled_once_a_renewal_finds_the_lease_lost() {
    for happens in [
        |world: &World| take_over(&world.engine),
        |world: &World| world.purge("k"),
        |world: &World| release_elsewhere(&world.engine),
    ] {
        Box::pin(interrupted(happens)).await;
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
                take_over(&world.engine);
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

#[tokio::test(start_paused = true)]
async fn a_work_that_is_dropped_sends_nothing_any_more() {
    for (way, after) in [(Way::Answered(TRIP), 3_000), (Way::Answered(TRIP), 12_000), (Way::Dropped, 5_100)] {
        let (world, _) = world_where(move |at| if at >= 5_000 { way } else { Way::Answered(TRIP) });
        let traces = Traces::default();
        let dropped = tokio::time::timeout(Duration::from_millis(after), held(&world, &traces, 60_000)).await;
        assert!(dropped.is_err(), "{dropped:?}");
        assert_eq!(world.row("k")["holder"], json!({"S": "a"}));
        traces.assert_ended(&world, after).await;
        assert_eq!(world.row("k")["holder"], json!({"S": "a"}), "it ends by itself");
        world.app.leases.acquire("k", "b", terms(LENGTH)).await.ok();
    }
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
