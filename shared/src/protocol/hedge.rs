//! [`Race`]: at most two sends of one request in flight. The second one is a *hedge* against a late or lost answer.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;
use tokio::time::sleep;

/// The most sends of one request in flight together. A third would triple the load on a slow table.
const MAX_IN_FLIGHT: usize = 2;

/// The sends of one request now in flight. `N` is the caller's note about each.
///
/// No send is dropped before it ends, except with the whole race. Dropping a send closes its connection, and the next
/// request then pays a handshake.
pub(crate) struct Race<S, N> {
    flights: Vec<Flight<S, N>>,
    /// The pause before the next send, until [`Race::next`] begins it.
    pause: Option<Duration>,
}

struct Flight<S, N> {
    answer: Pin<Box<S>>,
    note: N,
    /// The time after the hand-over at which a hedge is due. `None` once it runs, or if this send is not hedged.
    hedge_after: Option<Duration>,
}

impl<S: Future, N> Race<S, N> {
    pub(crate) fn new() -> Self {
        Race { flights: Vec::with_capacity(MAX_IN_FLIGHT), pause: None }
    }

    pub(crate) fn is_in_flight(&self) -> bool {
        !self.flights.is_empty()
    }

    /// Adds a send. Call this only when [`Race::next`] reports one as due. With `hedge_after`, another send is due if
    /// this one is not answered within this time.
    pub(crate) fn send(&mut self, answer: S, note: N, hedge_after: Option<Duration>) {
        let hedge_after = hedge_after.filter(|_| self.flights.len() + 1 < MAX_IN_FLIGHT);
        self.flights.push(Flight { answer: Box::pin(answer), note, hedge_after });
    }

    /// Makes another send due after `pause`. Call this only after a send has ended.
    pub(crate) fn send_after(&mut self, pause: Duration) {
        self.pause = Some(pause);
    }

    /// Waits until a send ends, which is then not in flight any more, or another one is due (`None`). If nothing is in
    /// flight and no pause is set, a send is due at once.
    pub(crate) async fn next(&mut self) -> Option<(S::Output, N)> {
        let mut is_due = self.pause == Some(Duration::ZERO) || (self.pause.is_none() && self.flights.is_empty());
        let mut asked_again = false;
        let mut timer = pin!(self.pause.take().map(sleep));
        poll_fn(|context| {
            for (index, flight) in self.flights.iter_mut().enumerate() {
                if let Poll::Ready(outcome) = flight.answer.as_mut().poll(context) {
                    let ended = self.flights.remove(index);
                    return Poll::Ready(Some((outcome, ended.note)));
                }
                // The first poll has built, signed and handed over the request. So the timer starts here.
                if let Some(after) = flight.hedge_after.take() {
                    timer.set(Some(sleep(after)));
                }
            }
            if let Some(timer) = timer.as_mut().as_pin_mut()
                && !is_due
            {
                is_due = timer.poll(context).is_ready();
            }
            // If the process was busy or stopped, the answer and the timer come together. The task of the connection
            // may still have to run. So it gets a turn before a hedge is due.
            if is_due && self.is_in_flight() && !asked_again {
                asked_again = true;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            if is_due { Poll::Ready(None) } else { Poll::Pending }
        })
        .await
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests read the paused clock")]
mod tests {
    use super::*;
    use std::future::{pending, ready};
    use tokio::sync::oneshot;
    use tokio::time::Instant;

    type Boxed = Pin<Box<dyn Future<Output = &'static str>>>;

    const HEDGE_AFTER: Option<Duration> = Some(Duration::from_millis(150));

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn after(millis: u64) -> Boxed {
        Box::pin(async move {
            sleep(Duration::from_millis(millis)).await;
            "answer"
        })
    }

    /// The events of a race, each with its time in milliseconds. Makes every due send from the list until the list is
    /// empty.
    async fn events(sends: Vec<(Boxed, Option<Duration>)>, count: usize) -> Vec<(u128, String)> {
        let (began, mut sends, mut race) = (Instant::now(), sends.into_iter().enumerate(), Race::new());
        let mut events = Vec::new();
        while events.len() < count {
            let event = match race.next().await {
                None => match sends.next() {
                    Some((number, (send, hedge_after))) => {
                        race.send(send, number, hedge_after);
                        format!("send {number}")
                    }
                    None => "due".to_owned(),
                },
                Some((answer, number)) => format!("{answer} {number}"),
            };
            events.push((began.elapsed().as_millis(), event));
        }
        events
    }

    fn told(events: &[(u128, &str)]) -> Vec<(u128, String)> {
        events.iter().map(|(at, event)| (*at, (*event).to_owned())).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_send_is_hedged_once_and_still_heard() {
        for (name, sends, expected) in [
            (
                "both are heard",
                vec![(after(200), HEDGE_AFTER), (after(100), HEDGE_AFTER)],
                &[(0, "send 0"), (150, "send 1"), (200, "answer 0"), (250, "answer 1")][..],
            ),
            (
                "a hedge is not hedged, so two at most are in flight",
                vec![(after(900), HEDGE_AFTER), (after(900), HEDGE_AFTER), (after(1), None)],
                &[(0, "send 0"), (150, "send 1"), (900, "answer 0"), (1050, "answer 1"), (1050, "send 2")],
            ),
            (
                "without a time to hedge after, nothing is due before the answer",
                vec![(after(900), None), (after(1), None)],
                &[(0, "send 0"), (900, "answer 0"), (900, "send 1")],
            ),
        ] {
            assert_eq!(events(sends, expected.len()).await, told(expected), "{name}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_to_hedge_after_starts_when_the_request_is_handed_over() {
        let slow_to_build: Boxed = Box::pin(async {
            // The first poll takes a second of the processor.
            tokio::time::advance(millis(1000)).await;
            pending().await
        });
        let happened = events(vec![(slow_to_build, HEDGE_AFTER), (Box::pin(ready("answer")), None)], 3).await;
        assert_eq!(happened, told(&[(0, "send 0"), (1150, "send 1"), (1150, "answer 1")]));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_comes_together_with_the_timer_is_heard_before_a_hedge_is_due() {
        let (answered, answer) = oneshot::channel();
        tokio::spawn(async move {
            // The runtime wakes this task and the race together, and polls the race first.
            sleep(millis(150)).await;
            let _ = answered.send("answer");
        });
        tokio::task::yield_now().await;
        let send: Boxed = Box::pin(async { answer.await.expect("an answer") });
        let happened = events(vec![(send, HEDGE_AFTER)], 2).await;
        assert_eq!(happened, told(&[(0, "send 0"), (150, "answer 0")]));
    }

    #[tokio::test(start_paused = true)]
    async fn the_other_send_is_still_heard_during_the_pause_before_the_next() {
        let (began, mut race) = (Instant::now(), Race::new());
        race.send(after(100), 0, None);
        race.send(after(60), 1, None);
        assert!(matches!(race.next().await, Some((_, 1))));
        race.send_after(millis(30));
        assert!(race.next().await.is_none());
        race.send_after(millis(500));
        assert!(matches!(race.next().await, Some((_, 0))));
        race.send_after(Duration::ZERO);
        assert!(race.next().await.is_none());
        assert_eq!(began.elapsed(), millis(100));
    }
}
