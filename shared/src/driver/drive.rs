//! [`Driver`]: the one loop that sends. It does what the machine says, and tells it what came back.
//!
//! Dropping its future at any await drops the sends in flight, and nothing that another change rests on: the state that
//! changes share is written only between two awaits.

use super::rows::{KnownRow, Sending, WriteStep};
use super::send::{
    Address, Boxed, Ended, ReadRows, Reason, Requests, SendOutcome, Sender, Shown, depends_on_the_data, is_reason,
    name, send_span,
};
use super::watch::Watch;
use crate::call::Call;
use crate::error::{Failure, FailureKind, Place, Source};
use crate::observe::Ending;
use crate::rejection::NotConfigured;
use fencepost_core::condition;
use fencepost_core::format::item::Attributes;
use fencepost_core::format::row::{self, Row};
use fencepost_core::{
    Action, Answer, Cause, Change, Fault, Leave, Now, Outcome, Role, SendId, Terms, Told, What, WriteId,
};
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use tokio::time::sleep_until;
use tracing::instrument::Instrument;
use tracing::{Span, debug};

/// The most rows of one batch (`DynamoDB` quota).
pub(crate) const MAX_ROWS: usize = 100;

/// The sends of one change.
pub(crate) struct Driver<'a> {
    pub(crate) sender: &'a Sender,
    pub(crate) call: &'a Call,
    /// The errors of the sends so far.
    sources: Vec<(SendId, Source)>,
    /// The rows that the last answer showed.
    pub(super) shown: Vec<(usize, Option<Attributes>)>,
    pub(super) reasons: Vec<Reason>,
    page: Option<ReadRows>,
    requests: Requests,
    pub(super) watch: Watch<'a>,
}

/// What the machine may ask for.
#[derive(Clone, Copy)]
pub(super) enum Work<'s> {
    /// Reads of these rows, and an attempt with these steps.
    Rows(&'s [KnownRow], Option<&'s Sending>),
    /// Reads of these rows, of which nothing is judged.
    Addresses(&'s [Address]),
    /// One page, by this request.
    Page(&'s (dyn Fn(Leave) -> Boxed<'s> + Sync)),
}

impl<'s> Work<'s> {
    fn address(self, row: usize) -> Option<&'s Address> {
        match self {
            Work::Rows(rows, _) => rows.get(row).map(|row| &row.address),
            Work::Addresses(rows) => rows.get(row),
            Work::Page(_) => None,
        }
    }
}

/// A send in flight.
struct Flight<'s> {
    leave: Leave,
    what: What,
    is_handed_over: bool,
    ended: Boxed<'s>,
    span: Span,
}

impl<'a> Driver<'a> {
    pub(crate) fn new(sender: &'a Sender, call: &'a Call, requests: Requests, place: impl FnOnce() -> Place) -> Self {
        let (sources, shown, reasons) = Default::default();
        Driver { sender, call, sources, shown, reasons, page: None, requests, watch: Watch::begin(sender, call, place) }
    }

    pub(crate) fn now(&self) -> Now {
        self.sender.now(self.call.deadline())
    }

    /// Drives the change until it tells something. All sends in flight are dropped then.
    pub(super) async fn drive<'w>(&mut self, change: &mut Change, work: Work<'w>) -> Told
    where
        'a: 'w,
    {
        self.shown.clear();
        self.reasons.clear();
        let sender = self.sender;
        let mut flights: Vec<Flight<'_>> = Vec::with_capacity(1); // a hedge is rare
        loop {
            let action = change.poll(self.now(), &mut sender.state(), &mut || sender.rng.next_u64());
            match action {
                Some(Action::Tell(told)) => {
                    self.count(change);
                    return told;
                }
                Some(Action::Send(leave, what)) => match self.make(work, leave, &what) {
                    Some(request) => {
                        let attempt = if leave.leave_by.is_some() { change.rounds() } else { 0 };
                        let span = send_span(&self.watch.span, attempt, leave.why);
                        self.watch.requests += 1;
                        let ended: Boxed<'_> = Box::pin(request.instrument(span.clone()));
                        flights.push(Flight { leave, what, is_handed_over: false, ended, span });
                    }
                    None => change.cannot_be_made(leave.id, self.now(), &mut || sender.rng.next_u64()),
                },
                None => {
                    self.count(change);
                    if let Some((flight, (outcome, is_answered))) = self.next(change, &mut flights).await {
                        let answer = self.hear(change, &flight, outcome, is_answered, work);
                        let (now, random) = (self.now(), &mut || sender.rng.next_u64());
                        change.answered(flight.leave.id, answer, now, &mut sender.state(), random);
                        // The sends of a request whose outcome is proved are dropped: what they say is of no use.
                        flights.retain(|flight| change.awaits(flight.leave.id));
                    }
                }
            }
        }
    }

    /// Waits until a send ends, which is then not in flight any more, or the machine wants to be asked (`None`).
    async fn next<'s>(&self, change: &mut Change, flights: &mut Vec<Flight<'s>>) -> Option<(Flight<'s>, Ended)> {
        let mut asked_again = false;
        let mut timer = pin!(None);
        let mut set_to = None;
        poll_fn(|context| {
            for place in 0..flights.len() {
                if let Poll::Ready(ended) = flights[place].ended.as_mut().poll(context) {
                    return Poll::Ready(Some((flights.remove(place), ended)));
                }
                // The first poll has built, signed and handed over the request. So the timer of its hedge starts here.
                if !std::mem::replace(&mut flights[place].is_handed_over, true) {
                    change.handed_over(flights[place].leave.id, self.now());
                }
            }
            let wake_at = change.wake_at();
            if set_to != wake_at {
                set_to = wake_at;
                timer.set(wake_at.map(|at| sleep_until(self.sender.moment(at))));
            }
            let is_due = timer.as_mut().as_pin_mut().is_some_and(|timer| timer.poll(context).is_ready());
            // If the process was busy or stopped, the answer and the timer come together. The task of the connection
            // may still have to run. So it gets a turn before a hedge is due.
            if is_due && !flights.is_empty() && !asked_again {
                asked_again = true;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            if is_due { Poll::Ready(None) } else { Poll::Pending }
        })
        .await
    }

    /// The request that the machine asks for. `None` if there is none.
    fn make<'w>(&self, work: Work<'w>, leave: Leave, what: &What) -> Option<Boxed<'w>>
    where
        'a: 'w,
    {
        let (sender, Requests { read, write: send, .. }) = (self.sender, self.requests);
        Some(match (work, what) {
            (Work::Page(read), _) => read(leave),
            (work, What::Read(asked)) => {
                read?(sender, asked.iter().map(|&row| work.address(row).cloned()).collect::<Option<_>>()?, leave)
            }
            (Work::Rows(rows, Some(sending)), What::Attempt { serve, token }) => match (token, &*sending.steps) {
                (None, [step]) => {
                    let KnownRow { address, layout, .. } = &rows[step.row];
                    let mut write = step.write.clone();
                    if let Some(ticket) = serve {
                        write.serve(&layout.names, *ticket);
                    }
                    send?(sender, &address.table, write, leave)
                }
                (Some(token), steps) => sending.transact?(sender, rows, steps, *token, leave),
                (None, _) => return None,
            },
            (Work::Rows(rows, _), What::Ticket { row, incarnation }) => {
                let KnownRow { address, layout, .. } = &rows[*row];
                let write = condition::take_ticket(address.key.clone(), &layout.names, *incarnation);
                send?(sender, &address.table, write, leave)
            }
            (Work::Rows(rows, _), What::Burn { row, sent, others, .. }) => {
                let KnownRow { address, layout, known, .. } = &rows[*row];
                let write = if let Some(item) = tombstone(&rows[*row], what) {
                    condition::put_if_absent(layout, item)
                } else {
                    let refused_by = self.refused_by(work, *row);
                    let known = refused_by.as_ref().or(known.row());
                    condition::burn(address.key.clone(), layout, sent, others, known)?
                };
                send?(sender, &address.table, write, leave)
            }
            _ => return None,
        })
    }

    /// What an answer says to the machine. The rows and the error in it stay here.
    fn hear(
        &mut self,
        change: &Change,
        flight: &Flight<'_>,
        outcome: SendOutcome,
        is_answered: bool,
        work: Work<'_>,
    ) -> Answer {
        let (outcome, source, shown, reasons) = outcome.split();
        let is_read = flight.leave.leave_by.is_none();
        flight.span.record("outcome", name(outcome, is_read));
        let mut answer = Answer::of(outcome, is_answered);
        if let Some(source) = source {
            match outcome {
                Outcome::NotApplied { .. } => self.watch.tally.count_not_now(&source),
                Outcome::Unknown => debug!(reason = %source, "answer lost"),
                Outcome::Broken => debug!(reason = %source, "connection broken"),
                _ => {}
            }
            if let (Outcome::Rejected, What::Attempt { .. }, Work::Rows(_, Some(sending))) =
                (outcome, &flight.what, work)
                && sending.steps.iter().all(|step| step.role != Role::Repeats)
            {
                let is_exact = |at: usize| sending.steps.get(at).is_none_or(WriteStep::is_exact);
                answer.depends_on_data = depends_on_the_data(&source, is_exact);
                let why = |at| if is_reason(&source, at) { fencepost_core::Reason::Rejected } else { NO_REASON };
                answer.reasons = (0..sending.steps.len()).map(why).collect();
            }
            self.sources.push((flight.leave.id, source));
        }
        match (work, &flight.what, shown) {
            (Work::Page(_), _, Shown::Page(page)) => {
                answer.rows = vec![(0, None)];
                self.page = Some(page);
            }
            (work, What::Read(asked), Shown::Row(row)) => {
                self.has_read(change, work, vec![(asked[0], row)], &mut answer);
            }
            (work, What::Read(asked), Shown::Rows(rows)) => {
                let rows = rows.into_iter().map(|(place, row)| (asked[place], row)).collect();
                self.has_read(change, work, rows, &mut answer);
            }
            (Work::Rows(rows, _), What::Ticket { row, .. }, Shown::Row(shown)) => {
                let given = rows[*row].layout.names.given;
                answer.ticket = shown.as_ref().and_then(|row| row.get(given).and_then(row::read_number));
                if let Some(item) = shown {
                    answer.rows = vec![(*row, rows[*row].judged(Some(&item)))];
                    self.shown = vec![(*row, Some(item))];
                }
            }
            (Work::Rows(rows, Some(sending)), What::Attempt { .. }, shown) => {
                let judged = |(step, reason): (&WriteStep, &Reason)| rows[step.row].reason(&step.role, reason);
                if outcome == Outcome::Refused {
                    answer.reasons = sending.steps.iter().zip(&reasons).map(judged).collect();
                    self.reasons = reasons;
                } else if let (Shown::Row(shown), [step]) = (shown, &*sending.steps) {
                    let shown = if rows[step.row].remembers_items { step.write.new_row(shown) } else { shown };
                    answer.rows = vec![(step.row, rows[step.row].judged(shown.as_ref()))];
                    self.shown = vec![(step.row, shown)];
                }
            }
            (Work::Rows(rows, _), What::Burn { row, sent, .. }, shown) => {
                let item = match (shown, reasons.into_iter().next()) {
                    (_, Some(reason)) => {
                        answer.reasons = vec![rows[*row].reason(&Role::Writes(*sent), &reason)];
                        reason.into_item()
                    }
                    (Shown::Row(item), None) => {
                        // The answer to a put shows no row.
                        let item = item.or_else(|| tombstone(&rows[*row], &flight.what));
                        answer.rows = vec![(*row, rows[*row].judged(item.as_ref()))];
                        item
                    }
                    _ => return answer,
                };
                self.shown = vec![(*row, item)];
            }
            _ => {}
        }
        answer
    }

    fn has_read(
        &mut self,
        change: &Change,
        work: Work<'_>,
        read: Vec<(usize, Option<Attributes>)>,
        answer: &mut Answer,
    ) {
        let judged = |row: usize, item: &Option<Attributes>| match work {
            // Reading what a row remembers takes longer than all else that is done with it.
            Work::Rows(rows, _) if change.asks_for_fates() => rows[row].judged(item.as_ref()),
            _ => None,
        };
        answer.rows = read.iter().map(|(row, item)| (*row, judged(*row, item))).collect();
        // What is read to find out the fate of an attempt is only judged.
        if !matches!(work, Work::Rows(_, Some(_))) {
            self.shown.extend(read);
        }
    }

    /// The row that refused the step which is to be burned.
    fn refused_by(&self, work: Work<'_>, row: usize) -> Option<Row> {
        let Work::Rows(rows, Some(sending)) = work else { return None };
        let place = sending.steps.iter().position(|step| step.row == row)?;
        let Reason::Refused(Some(item)) = self.reasons.get(place)? else { return None };
        Row::read(rows[row].layout, item.clone()).ok()
    }

    pub(super) fn count(&mut self, change: &mut Change) {
        self.watch.tally.count(change.take_cost());
    }

    /// The failure that is told for this fault.
    pub(super) fn failure(&mut self, fault: Fault) -> Failure {
        match fault {
            Fault::Contention { attempts } => Failure::of(FailureKind::Contention { attempts }),
            Fault::Unavailable(cause) => Failure::of(FailureKind::Unavailable { source: self.source(cause) }),
            Fault::Rejected(by) => match self.source(Cause::Send(by)) {
                source if source.is::<NotConfigured>() => Failure::of(FailureKind::NotConfigured { source }),
                source => Failure::of(FailureKind::Rejected { source }),
            },
            Fault::VersionWentDown => Failure::of(FailureKind::CorruptItem { reason: VERSION_WENT_DOWN.to_owned() }),
            Fault::Unknown(cause) => Failure::of(FailureKind::OutcomeUnknown { source: self.source(cause) }),
        }
    }

    pub(super) fn source(&mut self, cause: Cause) -> Source {
        match cause {
            Cause::Send(id) => match self.sources.iter().position(|(of, _)| *of == id) {
                Some(place) => self.sources.swap_remove(place).1,
                None => "the answer was lost".into(),
            },
            Cause::Said(said) => said.into(),
            Cause::Contention { attempts } => Failure::of(FailureKind::Contention { attempts }).into(),
            Cause::VersionWentDown => VERSION_WENT_DOWN.into(),
        }
    }
}

const VERSION_WENT_DOWN: &str = "its version went down";
const NO_REASON: fencepost_core::Reason = fencepost_core::Reason::None;

/// The tombstone that a burn leaves on a free key.
fn tombstone(KnownRow { address, layout, retention, .. }: &KnownRow, what: &What) -> Option<Attributes> {
    let What::Burn { tombstone: Some((id, at)), .. } = what else { return None };
    Some(row::tombstone(layout, &address.key, *id, *at + *retention))
}

async fn read_all<'a: 'w, 'w>(driver: &mut Driver<'a>, rows: Vec<usize>, work: Work<'w>) -> Result<(), Failure> {
    let terms = Terms { policy: driver.sender.policy, relies_on_token: false };
    let mut change = Change::new(terms, WriteId::from_random(0), driver.now());
    change.read(rows, driver.now());
    let read = match driver.drive(&mut change, work).await {
        Told::Failed(fault) => Err(driver.failure(fault)),
        _ => Ok(()),
    };
    driver.watch.end(read.as_ref().map_or_else(Ending::Failed, |()| Ending::Answered));
    read
}

/// Reads one row, strongly consistent, until it is answered or time is up.
pub(crate) async fn read_one(sender: &Sender, call: &Call, row: Address) -> Result<Option<Attributes>, Failure> {
    let rows = [row];
    let place = || Place::of("get", rows.iter().map(Address::parts));
    let mut driver = Driver::new(sender, call, Requests { write: None, ..Requests::ROW }, place);
    let read = read_all(&mut driver, vec![0], Work::Addresses(&rows)).await;
    read.map_err(|failure| failure.at(place))?;
    Ok(driver.shown.pop().and_then(|(_, item)| item))
}

/// Reads at most [`MAX_ROWS`] different rows until all are answered or time is up, and returns them in the order of
/// `rows`. Asks again, after a pause, for those missing from an answer.
pub(crate) async fn read_rows(
    sender: &Sender,
    call: &Call,
    rows: &[Address],
) -> Result<Vec<Option<Attributes>>, Failure> {
    let place = || Place::of("get_many", rows.iter().map(Address::parts));
    let mut driver = Driver::new(sender, call, Requests { write: None, ..Requests::ROWS }, place);
    let read = read_all(&mut driver, (0..rows.len()).collect(), Work::Addresses(rows)).await;
    read.map_err(|failure| failure.at(place))?;
    let mut found = vec![None; rows.len()];
    for (row, item) in driver.shown.drain(..) {
        found[row] = item;
    }
    Ok(found)
}

/// Reads one page until it is answered or time is up.
pub(crate) async fn read_page<'s>(
    sender: &'s Sender,
    call: &'s Call,
    place: impl Fn() -> Place,
    page: &'s (dyn Fn(Leave) -> Boxed<'s> + Sync),
) -> Result<ReadRows, Failure> {
    let mut driver = Driver::new(sender, call, Requests::NONE, &place);
    read_all(&mut driver, vec![0], Work::Page(page)).await.map_err(|failure| failure.at(place))?;
    Ok(driver.page.take().unwrap_or_default())
}
