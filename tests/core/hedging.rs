//! A second send while the first is still awaited. Together, the two answers prove the outcome.

use super::accounts::{Account, TABLE, add_one, call, rival};
use super::pooled::{HANDSHAKE, HEDGE_AFTER, HOP, LATE, LEASES, World, millis};
use crowds::pool::Fate;
use fencepost::lease::LeaseTerms;
use fencepost::{Call, Clock, Deadline, Error, Failure, ItemVersion, Reads, VersionError};
use serde_json::json;
use std::convert::Infallible;
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep};

#[tokio::test(start_paused = true)]
async fn an_uncontended_update_is_one_read_and_one_write_even_if_each_answer_is_a_little_late() {
    let world = World::connected(1).await;
    world.pool.all_after(Fate::Late(millis(130)));
    assert_eq!(world.add_one().await, (0, millis(280)));
    assert_eq!(world.sent(), (2, 0));
    assert_eq!(world.engine.take_counts(), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_cold_client_waits_for_its_handshake_and_a_late_answer_on_one_connection() {
    let world = World::cold().await;
    world.pool.next(&[LATE]);
    let (began, call) = (Instant::now(), call());
    world.table.in_call(&call).create("a-2", &Account { balance: 1 }).await.expect("a free key");
    assert!(began.elapsed() <= millis(1100), "{:?}", began.elapsed());
    assert_eq!((call.tally().lost_answers, world.sent()), (0, (1, 1)));

    let world = World::cold().await;
    world.pool.next(&[LATE]);
    let (lost, took) = world.add_one().await;
    assert!(took <= millis(1100), "{took:?}");
    assert_eq!((lost, world.sent()), (0, (2, 1)));
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_to_a_connected_client_is_awaited_and_costs_no_handshake() {
    // The hedge of the write has to open a connection. The call ends without it.
    for (fates, sent) in [(&[Fate::Answered, LATE][..], (3, 1)), (&[LATE], (3, 1))] {
        let world = World::connected(1).await;
        world.pool.next(fates);
        let (lost, took) = world.add_one().await;
        assert!(took <= millis(220), "{took:?}");
        assert_eq!((lost, world.sent(), world.stored()), (0, sent, (2, 51)));
    }
}

#[tokio::test(start_paused = true)]
async fn dead_connections_are_used_up_at_once_after_a_freeze() {
    for freeze in [30, 300] {
        let world = World::connected(4).await;
        world.pool.kill_idle();
        sleep(Duration::from_secs(freeze)).await;
        let (began, call) = (Instant::now(), call());
        world.table.in_call(&call).create("a-2", &Account { balance: 1 }).await.expect("a free key");
        let took = began.elapsed();
        assert!(took <= HANDSHAKE + millis(400), "{took:?}");
        assert_eq!(took, HOP * 4 + HANDSHAKE + HOP * 2, "no pause between them");
        assert_eq!((call.tally().lost_answers, world.sent()), (4, (5, 1)), "one handshake and no other beside it");
        assert_eq!(world.pool.idle(), 1);

        let world = World::connected(4).await;
        world.pool.kill_idle();
        sleep(Duration::from_secs(freeze)).await;
        let (_, took) = world.add_one().await;
        assert_eq!((took, world.sent()), (HOP * 4 + HANDSHAKE + HOP * 4, (6, 1)));
    }
}

#[tokio::test(start_paused = true)]
async fn dead_connections_use_up_no_patience_for_the_send_that_follows_them() {
    let world = World::connected(4).await;
    world.pool.kill_idle();
    // The first send to arrive is lost. Its hedge leaves after the time for a connection and an answer, and opens
    // another connection.
    let fates = [Fate::Answered, Fate::Answered, Fate::Answered, Fate::Answered, Fate::Dropped];
    world.pool.next(&fates);
    let began = Instant::now();
    world.table.create("a-2", &Account { balance: 1 }).await.expect("a free key");
    let opening = HANDSHAKE + HOP * 2;
    assert_eq!(began.elapsed(), HOP * 4 + opening + HEDGE_AFTER + opening);
    assert_eq!(world.sent(), (7, 3), "one more took the place of the first, whose limit passed meanwhile");
}

#[tokio::test(start_paused = true)]
async fn connections_that_always_break_are_tried_at_once_four_times_and_then_with_pauses() {
    let world = World::connected(100).await;
    world.pool.kill_idle();
    let call = Call::new(Deadline::within(Duration::from_secs(5)));
    world.table.in_call(&call).create("a-2", &Account { balance: 1 }).await.expect_err("no answer");
    // Five at once, and then one for each pause. A pause grows to a second, or to half of the time left.
    let (requests, _) = world.sent();
    assert!((8..=40).contains(&requests), "{requests} requests");
}

#[tokio::test(start_paused = true)]
async fn after_a_silent_loss_the_hedge_applies_the_change_or_finds_it_applied() {
    for (fate, writes) in [(Fate::AnswerLost, 2), (Fate::Dropped, 1)] {
        let world = World::connected(2).await;
        world.pool.next(&[Fate::Answered, fate]);
        let (lost, took) = world.add_one().await;
        assert_eq!(took, HOP * 2 + HEDGE_AFTER + HOP * 2);
        assert_eq!((lost, world.sent(), world.stored()), (0, (3, 0), (2, 51)), "no answer counts as lost");
        assert_eq!(world.engine.take_counts(), (1, writes));
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_transaction_and_a_lost_acquire_are_found_out_by_their_hedges_too() {
    let world = World::connected(2).await;
    let began = Instant::now();
    let mut reads = Reads::new();
    let new = reads.later("account", &world.table, "a-2");
    world.pool.next(&[Fate::AnswerLost]);
    let done = world.store.transact_with_retry(reads, |attempt| {
        attempt.put_if_absent(new, &Account { balance: 1 })?;
        Ok::<_, Error>(())
    });
    done.await.expect("a free key");
    assert_eq!((began.elapsed(), world.sent()), (HEDGE_AFTER + HOP * 2, (2, 0)));

    let world = World::connected(2).await;
    world.pool.next(&[Fate::AnswerLost]);
    let began = Instant::now();
    let lease = world.store.leases(LEASES).acquire("k", "me", LeaseTerms::default()).await;
    assert_eq!(lease.expect("a free lease").renewals(), 0);
    assert_eq!((began.elapsed(), world.sent()), (HEDGE_AFTER + HOP * 2, (2, 0)));
}

#[tokio::test(start_paused = true)]
async fn a_read_is_hedged_and_so_is_a_batch_of_reads() {
    for fate in [Fate::AnswerLost, Fate::Dropped] {
        let world = World::connected(2).await;
        world.pool.next(&[fate]);
        let began = Instant::now();
        world.table.get(&world.key).await.expect("an answer");
        assert_eq!((began.elapsed(), world.sent()), (HEDGE_AFTER + HOP * 2, (2, 0)), "{fate:?}");

        let world = World::connected(2).await;
        let began = Instant::now();
        let mut reads = Reads::new();
        let account = reads.item("account", &world.table, &world.key);
        world.pool.next(&[fate]);
        let read = world.store.transact_with_retry(reads, |attempt| Ok::<_, Error>(attempt.get(account)?.is_some()));
        assert!(read.await.expect("an answer"));
        assert_eq!((began.elapsed(), world.sent()), (HEDGE_AFTER + HOP * 2, (2, 0)), "{fate:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_read_is_still_awaited_while_its_hedge_connects() {
    let world = World::connected(1).await;
    world.pool.next(&[LATE]);
    let began = Instant::now();
    world.table.get(&world.key).await.expect("an answer");
    assert_eq!((began.elapsed(), world.sent()), (HOP * 2 + millis(200), (2, 1)));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_hedged_while_the_client_connects() {
    // Never connected, and connected too long ago.
    for idle in [None, Some(61)] {
        let world = match idle {
            None => World::cold().await,
            Some(seconds) => {
                let world = World::connected(1).await;
                sleep(Duration::from_secs(seconds)).await;
                world
            }
        };
        world.pool.next(&[Fate::Late(millis(900))]);
        let (lost, _) = world.add_one().await;
        let opened = u32::from(idle.is_none());
        assert_eq!((lost, world.sent(), world.stored()), (0, (2, opened), (2, 51)), "{idle:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn at_most_two_sends_of_a_request_are_ever_in_flight() {
    for fate in [Fate::Dropped, Fate::AnswerLost] {
        let world = World::connected(3).await;
        world.pool.next(&[Fate::Answered]);
        world.pool.all_after(fate);
        let began = Instant::now();
        let keep = |account: &Account| Ok::<_, Infallible>(Some(account.clone()));
        let _ = world.table.update_with_retry(&world.key, keep).await;
        let _ = world.table.in_call(&Call::new(Deadline::within(Duration::from_secs(30)))).get(&world.key).await;
        let counts = world.pool.take_counts();
        assert_eq!(counts.most_in_flight, 2, "{fate:?}");
        assert!(counts.requests >= 5 && began.elapsed() <= Duration::from_mins(1), "{fate:?}: {counts:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hard_limit_ends_each_send_and_the_next_one_takes_its_place() {
    // Twice the time for opening a connection, but at least 600 ms.
    for (handshake, limit) in [(HANDSHAKE, millis(1620)), (millis(290), millis(600)), (millis(30), millis(600))] {
        let world = World::connected_with(handshake, 3).await;
        world.pool.next(&[Fate::Dropped, Fate::Dropped]);
        let (began, call) = (Instant::now(), call());
        world.table.in_call(&call).create("a-2", &Account { balance: 1 }).await.expect("a free key");
        let (least, took) = (limit + HOP * 2, began.elapsed());
        assert!((least..=least + millis(21)).contains(&took), "a pause of at most 20 ms: {took:?}");
        assert_eq!((call.tally().lost_answers, world.sent()), (1, (3, 0)), "the hedge was in flight at the end");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hedge_that_has_to_open_a_connection_is_awaited_for_twice_as_long_as_opening_one_took() {
    let world = World::connected(1).await;
    world.pool.next(&[Fate::Dropped]);
    let (lost, took) = world.add_one().await;
    assert_eq!((lost, took, world.sent()), (0, HEDGE_AFTER + HANDSHAKE + HOP * 4, (3, 1)));
}

#[tokio::test(start_paused = true)]
async fn a_send_that_was_given_up_closes_its_connection_and_the_hedge_of_the_next_one_waits_for_another() {
    let world = World::connected(2).await;
    world.pool.next(&[Fate::Dropped, Fate::Dropped]);
    let short = Call::new(Deadline::within(millis(900)));
    world.table.in_call(&short).create("a-2", &Account { balance: 1 }).await.expect_err("no answer");
    world.forget_counts();
    world.table.get(&world.key).await.expect("an answer");
    assert_eq!(world.sent(), (1, 1), "one handshake and no other beside it");
}

#[tokio::test(start_paused = true)]
async fn throttling_or_a_denial_of_one_send_does_not_end_the_race() {
    // After throttling, a third send may find out sooner. After a denial, nothing is sent any more.
    for (error, most) in [("ThrottlingException", 3), ("AccessDeniedException", 2)] {
        let world = World::connected(2).await;
        world.pool.next(&[LATE, Fate::Error(Duration::ZERO, 400, error)]);
        let (began, call) = (Instant::now(), call());
        let created = world.table.in_call(&call).create("a-2", &Account { balance: 1 }).await;
        assert_eq!(created.expect("the first send was applied").version().get(), 1);
        assert!(began.elapsed() <= HOP * 2 + millis(200), "{error}: {:?}", began.elapsed());
        assert!(world.sent().0 <= most, "{error}");
        assert_eq!(call.tally().lost_answers, 0, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_denial_is_reported_only_when_nothing_is_in_flight_that_may_have_been_applied() {
    let denied = |late| Fate::Error(millis(late), 400, "AccessDeniedException");
    for (fates, unknown) in [([denied(200), denied(0)], false), ([Fate::Dropped, denied(0)], true)] {
        let world = World::connected(2).await;
        world.pool.next(&fates);
        let created = world.table.create("a-2", &Account { balance: 1 }).await;
        let Err(Error::Failed(failure)) = created else { panic!("{created:?}") };
        assert_eq!(failure.is_outcome_unknown(), unknown, "{failure:?}");
        assert_eq!(matches!(failure, Failure::Rejected { .. }), !unknown, "{failure:?}");
        assert_eq!(world.sent().0, 2, "nothing is sent after a denial");
    }
}

#[tokio::test(start_paused = true)]
async fn two_sends_that_were_signed_together_may_both_expire() {
    // The answers come within 5 ms of each other, before one to a third send can come.
    let expired = |late| Fate::Error(millis(late), 400, "InvalidSignatureException");
    let world = World::connected(2).await;
    world.pool.next(&[expired(170), expired(25)]);
    let created = world.table.create("a-2", &Account { balance: 1 }).await;
    created.expect("the third is signed anew");

    let world = World::connected(2).await;
    world.pool.next(&[expired(170), expired(25)]);
    world.table.get(&world.key).await.expect("the third is signed anew");
}

/// The first send is held up. A rival commits before the hedge arrives.
#[tokio::test(start_paused = true)]
async fn a_hedge_that_lost_to_a_rival_proves_that_its_twin_in_flight_is_never_applied() {
    let world = World::connected(2).await;
    world.pool.next(&[Fate::Answered, Fate::Dropped]);
    let call = call();
    let rivalry = async {
        sleep(millis(100)).await;
        rival(&world.engine, "a-1");
    };
    let table = world.table.in_call(&call);
    let (updated, ()) = tokio::join!(table.update_with_retry(&world.key, add_one), rivalry);
    assert_eq!(updated.expect("decided again").value.balance, 52);
    assert_eq!((world.stored(), call.tally().conflicts), ((3, 52), 1));
}

/// The row is still at the version of the delete, because it is a tombstone already. A copy in flight is burned, since
/// it could delete the next item at this key.
#[tokio::test(start_paused = true)]
async fn a_refused_hedge_whose_row_has_not_moved_on_is_burned() {
    for (first, sent) in [(Fate::Dropped, 3), (Fate::Answered, 1)] {
        let world = World::connected(2).await;
        let version = world.table.delete_at_version(&world.key, world.at).await.expect("a live account");
        let tombstone = ItemVersion { version, ..world.at };
        world.pool.next(&[first]);
        world.forget_counts();
        let deleted = world.table.delete_at_version(&world.key, tombstone).await;
        assert!(matches!(deleted, Err(VersionError::NotFound)), "{first:?}: {deleted:?}");
        assert_eq!(world.sent().0, sent, "{first:?}");
    }
}

/// A vanished row proves nothing about a send in flight.
#[tokio::test(start_paused = true)]
async fn a_refusal_without_a_row_is_unknown_while_another_send_is_in_flight() {
    let world = World::connected(2).await;
    world.pool.next(&[Fate::AnswerLost]);
    let gone = async {
        sleep(millis(100)).await;
        world.engine.raw("DeleteItem", &json!({"TableName": TABLE, "Key": {"accountId": {"S": "a-1"}}}));
    };
    let (deleted, ()) = tokio::join!(world.table.delete_at_version(&world.key, world.at), gone);
    assert!(matches!(deleted, Err(VersionError::Failed(Failure::OutcomeUnknown { .. }))), "{deleted:?}");
}

#[tokio::test(start_paused = true)]
async fn a_hedge_does_not_outlast_the_deadline() {
    for allowed in [100, 149, 200, 350, 1000, 3000] {
        let world = World::connected(3).await;
        world.pool.all_after(Fate::Dropped);
        let (began, allowed) = (Instant::now(), millis(allowed));
        let call = Call::new(Deadline::within(allowed));
        let created = world.table.in_call(&call).create("a-2", &Account { balance: 1 }).await;
        let Err(Error::Failed(failure)) = created else { panic!("{created:?}") };
        assert!(began.elapsed() <= allowed + millis(1), "{allowed:?}: {:?}", began.elapsed());
        assert_eq!(failure.is_outcome_unknown(), allowed >= HEDGE_AFTER, "{allowed:?}: {failure:?}");
        let call = Call::new(Deadline::within(allowed));
        let began = Instant::now();
        let read = world.table.in_call(&call).get(&world.key).await.expect_err("no answer");
        assert!(matches!(read, Failure::Unavailable { .. }), "{read:?}");
        assert!(began.elapsed() <= allowed + millis(1), "{allowed:?}: {:?}", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_hedge_leaves_in_less_time_than_a_first_send_needs() {
    let world = World::connected(2).await;
    world.pool.next(&[Fate::Dropped]);
    let call = Call::new(Deadline::within(millis(200)));
    let created = world.table.in_call(&call).create("a-2", &Account { balance: 1 }).await;
    assert_eq!(created.expect("the hedge is applied").version().get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_read_in_flight_is_awaited_where_no_time_is_left_for_another() {
    let world = World::connected(2).await;
    world.pool.next(&[LATE, Fate::Error(Duration::ZERO, 400, "ThrottlingException")]);
    let call = Call::new(Deadline::within(millis(300)));
    world.table.in_call(&call).get(&world.key).await.expect("the first read is answered");
    assert_eq!(world.sent().0, 2);
}

/// The machine sleeps for five minutes while the first send is in flight, its monotonic clock too.
#[tokio::test(start_paused = true)]
async fn no_hedge_leaves_after_the_window_of_the_sends_and_the_first_send_is_still_awaited() {
    let world = World::connected(2).await;
    let (began, base) = (Instant::now(), SystemTime::UNIX_EPOCH + Duration::from_hours(500_000));
    let slept = move || if began.elapsed() < millis(100) { Duration::ZERO } else { Duration::from_mins(5) };
    let store = world.store.clone().with_clock(Clock::new(move || base + began.elapsed() + slept()));
    world.pool.next(&[LATE]);
    let created = store.table(TABLE).create("a-2", &Account { balance: 1 }).await;
    assert_eq!(created.expect("the first send was applied").version().get(), 1);
    assert_eq!((began.elapsed(), world.sent()), (HOP * 2 + millis(200), (1, 0)));
}
