//! [`Attempt`]: the rows that a decision sees, with its steps. [`Attempt::decided`]: the one loop of decisions.

use super::drive::{Driver, Work};
use super::row_cache::{RowCache, heap_of_attributes};
use super::rows::{Contest, Known, KnownRow, Sending, Take, WriteStep};
use super::send::{Address, Requests, Sender};
use crate::call::Call;
use crate::error::{Failure, FailureKind, Place, Source};
use crate::observe::Ending;
use fencepost_core::condition::ConditionalWrite;
use fencepost_core::edit::Resolve;
use fencepost_core::format::item::Attributes;
use fencepost_core::format::layout::Layout;
use fencepost_core::{Attempts, Change, ItemVersion, MOST_OPEN, Now, Plan, Terms, Told, WriteId};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, SystemTime};

/// The most heap, in bytes, of a row to keep while its write is on its way. Tiny values take 60 times their size.
const MOST_KEPT: usize = 4 * 1024 * 1024;

/// One observe-decide-write round over several items: the observed items with the steps so far.
///
/// Each attempt begins without steps. Each item in [`Reads`](crate::Reads) takes at most one step.
#[derive(Debug)]
pub struct Attempt {
    pub(crate) rows: Vec<KnownRow>,
    pub(crate) now: SystemTime,
    pub(crate) steps: Vec<WriteStep>,
    /// The machine, with the id of this attempt and the earlier ones that it excludes.
    pub(super) change: Change,
    pub(crate) row_cache: Arc<RowCache>,
    /// How many attempts were refused for the conditions of an edit.
    pub(crate) refusals: usize,
    /// With more, the change would end as unknown: too many attempts would be open, or no more are allowed.
    pub(crate) most_refusals: usize,
    /// What became of the attempt before this one. `None` before the first.
    pub(crate) last: Option<Last>,
    /// The [`Reads`](crate::Reads) whose handles it takes. `None` if it is no transaction.
    pub(crate) reads: Option<u64>,
    requests: Requests,
    /// The method that was called.
    operation: &'static str,
    /// Whether the last attempt was not sent, or was throttled, and its rows were read instead.
    pub(crate) has_looked: bool,
    /// The attempt of this decision in the holds that it takes, and in the row that it places.
    pub(crate) hold: WriteId,
    /// What keeps the holds, if rows may have some.
    pub(crate) holds: Option<Box<dyn HoldKeeper>>,
}

pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Takes parts of rows, gives them back, and settles holds. Only a change that may meet holds has one.
pub(crate) trait HoldKeeper: fmt::Debug + Send + Sync {
    /// Takes all of these at once.
    fn take<'a>(&'a self, rows: &'a [KnownRow], takes: &'a [Take]) -> BoxFuture<'a, Vec<Taken>>;

    /// Gives back what was taken, as far as time allows. No create of the attempt was applied, and none ever will be. Returns
    /// the rows as they are then.
    fn give_back<'a>(&'a self, rows: &'a [KnownRow], takes: &'a [Take]) -> BoxFuture<'a, Vec<(usize, Known)>>;

    /// Notes that the row for which these were taken is there.
    fn placed(&self, rows: &[KnownRow], takes: &[Take]);

    /// Finds out what becomes of the holds in these rows. If the change needs rows without holds, removes those whose rows are
    /// there.
    fn settle<'a>(
        &'a mut self,
        rows: &'a [KnownRow],
        looked_at: &'a [usize],
        needs_none: bool,
    ) -> BoxFuture<'a, Result<Settled, Failure>>;
}

/// What became of a take.
#[derive(Debug)]
pub(crate) enum Taken {
    Landed,
    /// This row refused it.
    Refused(Known),
    Failed(Failure),
}

/// What became of the holds in some rows.
#[derive(Debug)]
pub(crate) struct Settled {
    /// The rows as they are now. The decision looks at them again.
    pub learned: Vec<(usize, Known)>,
    /// Whether nothing has come back, so that the refusal is true.
    pub stands: bool,
}

/// An attempt that was not applied.
#[derive(Debug)]
pub(crate) struct Last {
    /// Whether another send of it may have been applied, or may still be.
    pub pending: Option<Source>,
}

/// What refused an attempt, with its pending send. `None` before the first attempt.
pub(crate) type RefusedBy<T> = Option<Result<(Option<T>, Option<Source>), Failure>>;

/// The row that refused a write which no key without a row refuses.
pub(crate) fn refusing_row<T>(refused: (Option<T>, Option<Source>)) -> Result<(T, Option<Source>), Failure> {
    match refused {
        (Some(row), pending) => Ok((row, pending)),
        (None, Some(source)) => Err(Failure::of(FailureKind::OutcomeUnknown { source })),
        (None, None) => {
            Err(Failure::of(FailureKind::CorruptItem { reason: "a write was refused where no row is".to_owned() }))
        }
    }
}

/// What follows a decision. `A` answers the change without a write, `W` if the write is applied.
pub(crate) enum Next<A, W> {
    /// Nothing is written.
    Answer(A),
    /// Nothing is written, whatever parts of the row are held.
    Final(A),
    /// Read these rows, and decide again.
    Read(Vec<usize>),
    /// Wait for a part of this time, and decide again.
    Wait(Duration),
    /// Send these steps. If they are not applied, decide again.
    Send(Sending, W),
}

/// A change that did not fail.
pub(crate) enum Done<A, W> {
    /// It was answered without a write.
    Answered(A),
    /// An attempt was applied.
    Applied(Applied<W>),
}

/// An attempt that was applied.
pub(crate) struct Applied<W> {
    /// Its answer.
    pub answer: W,
    /// The state that it left, if it has one step with an id.
    pub at: Option<ItemVersion>,
    /// The row that shows it, if the last answer holds one.
    pub shown: Option<Attributes>,
}

/// What the driver says after a read, a wait or an attempt.
pub(super) enum Then {
    Decide,
    /// The attempt with this id was applied, the last one or an earlier one.
    Applied {
        id: WriteId,
        at: Option<ItemVersion>,
        shown: Option<Attributes>,
    },
    Failed(Failure),
}

impl Then {
    fn of(driver: &mut Driver<'_>, told: &Told, shown: Option<Attributes>) -> Self {
        match told {
            Told::Applied { id, at } => Then::Applied { id: *id, at: *at, shown },
            Told::Earlier { id, at } => Then::Applied { id: *id, at: Some(*at), shown },
            Told::Failed(fault) => Then::Failed(driver.failure(*fault)),
            _ => Then::Decide,
        }
    }
}

impl Attempt {
    /// A change of these rows. All its sends have one window.
    fn new(operation: &'static str, rows: Vec<KnownRow>, requests: Requests, sender: &Sender, call: &Call) -> Self {
        let relies_on_token = rows.iter().any(|row| row.layout.demands_values());
        let terms = Terms { policy: sender.policy, relies_on_token };
        let now = sender.now(call.deadline());
        Attempt {
            rows,
            now: SystemTime::UNIX_EPOCH,
            steps: Vec::new(),
            change: Change::new(terms, sender.new_id(), now),
            row_cache: Arc::clone(&sender.row_cache),
            refusals: 0,
            most_refusals: usize::try_from(sender.policy.max_attempts).map_or(MOST_OPEN, |most| most.min(MOST_OPEN)),
            last: None,
            reads: None,
            requests,
            operation,
            has_looked: false,
            hold: WriteId::from_random(0),
            holds: None,
        }
    }

    /// A change of rows that are read and written together.
    pub(crate) fn of_many(operation: &'static str, rows: Vec<KnownRow>, sender: &Sender, call: &Call) -> Self {
        Attempt::new(operation, rows, Requests::ROWS, sender, call)
    }

    /// A change of one row of which nothing is known yet, sent as a write of its own.
    pub(crate) fn of_one(
        operation: &'static str,
        address: Address,
        layout: &'static Layout,
        requests: Requests,
        sender: &Sender,
        call: &Call,
    ) -> Self {
        Attempt::new(operation, vec![KnownRow::new(String::new(), address, layout)], requests, sender, call)
    }

    /// The operation, with the rows that it is about.
    pub(crate) fn place(&self) -> Place {
        Place::of(self.operation, self.rows.iter().map(|row| row.address.parts()))
    }

    /// Whether it is read and sent as a transaction.
    pub(super) fn is_transaction(&self) -> bool {
        self.requests.reads_batches
    }

    /// The id of this attempt, and those that it excludes.
    pub(crate) fn attempts(&self) -> &Attempts {
        self.change.attempts()
    }

    /// How long the last read or refused send took.
    pub(crate) fn round_trip(&self) -> Duration {
        self.change.round_trip()
    }

    /// Notes that the last attempt lost its race.
    pub(crate) fn lost_race(&mut self) {
        self.change.lost_race();
    }

    /// Notes that the last attempt was refused because its row was old.
    pub(crate) fn was_late(&mut self) {
        self.change.was_late();
    }

    /// What refused the last attempt, which [repeats](fencepost_core::Role::Repeats), with its pending send. `None` before
    /// the first. While a send is pending, something unreadable means `OutcomeUnknown`.
    pub(crate) fn refused_by<T, E: Into<Failure>>(
        &mut self,
        read: impl Fn(&Attributes) -> Result<T, E>,
    ) -> RefusedBy<T> {
        let Last { pending, .. } = self.last.take()?;
        let Known::Stored(item) = &self.rows[0].known else { return None };
        Some(match (item.as_ref().map(read).transpose(), pending) {
            (Ok(read), pending) => Ok((read, pending)),
            (Err(_), Some(source)) => Err(Failure::of(FailureKind::OutcomeUnknown { source })),
            (Err(failure), None) => Err(failure.into()),
        })
    }

    /// Sends one write that [repeats](fencepost_core::Role::Repeats). Returns what it shows, or what refused it, with the
    /// pending send.
    pub(crate) async fn repeated<T, E: Into<Failure>>(
        &mut self,
        sender: &Sender,
        call: &Call,
        write: &ConditionalWrite,
        read: impl Fn(&Attributes) -> Result<T, E>,
    ) -> Result<Done<(Option<T>, Option<Source>), ()>, Failure> {
        let decided = self.decided(sender, call, |attempt| {
            Ok(match attempt.refused_by(&read) {
                None => Next::Send(Sending::repeating(write.clone()), ()),
                Some(refused) => Next::Answer(refused?),
            })
        });
        decided.await
    }

    /// Reads what the first decision needs, decides, sends the steps, and decides again until the change has an outcome.
    ///
    /// Every failure of a change passes here, because it may be untrue while an attempt is open. That of a request which follows
    /// the change passes [`Attempt::followed_by`].
    pub(crate) async fn decided<A, W>(
        &mut self,
        sender: &Sender,
        call: &Call,
        decide: impl FnMut(&mut Attempt) -> Result<Next<A, W>, Failure>,
    ) -> Result<Done<A, W>, Failure> {
        let mut driver = Driver::new(sender, call, self.requests, || self.place());
        let done = self.decide(&mut driver, decide).await;
        driver.watch.end(match &done {
            Ok(Done::Applied(_)) => Ending::Applied,
            Ok(Done::Answered(_)) => Ending::Answered,
            Err(failure) => Ending::Failed(failure),
        });
        done
    }

    async fn decide<A, W>(
        &mut self,
        driver: &mut Driver<'_>,
        mut decide: impl FnMut(&mut Attempt) -> Result<Next<A, W>, Failure>,
    ) -> Result<Done<A, W>, Failure> {
        // The answers of the attempts that may have been applied.
        let mut answers: Vec<(WriteId, W)> = Vec::new();
        let mut then = Then::Decide;
        loop {
            match then {
                Then::Decide => {
                    let asked = self.to_be_read();
                    if !asked.is_empty() {
                        then = self.read(driver, asked).await;
                        continue;
                    }
                }
                Then::Failed(failure) => return Err(self.give_up(driver, failure).await.at(|| self.place())),
                Then::Applied { id, at, shown } => {
                    let answer = answers.into_iter().find_map(|(of, answer)| (of == id).then_some(answer));
                    let unknown = || Failure::of(FailureKind::OutcomeUnknown { source: NO_ANSWER.into() });
                    let answer = answer.ok_or_else(|| unknown().at(|| self.place()))?;
                    return Ok(Done::Applied(Applied { answer, at, shown }));
                }
            }
            self.begin(driver.now());
            self.hold = if self.holds.is_some() { driver.sender.new_id() } else { self.hold };
            let next = decide(self);
            driver.count(&mut self.change);
            if let Some(needs_none) = refuses(&next)
                && let Some(follows) = self.settle(needs_none).await
            {
                then = follows;
                continue;
            }
            then = match next {
                Err(failure) => Then::Failed(failure),
                Ok(Next::Answer(answer) | Next::Final(answer)) => return Ok(Done::Answered(answer)),
                Ok(Next::Read(rows)) => self.read(driver, rows).await,
                Ok(Next::Wait(bound)) => self.wait(driver, bound).await,
                Ok(Next::Send(sending, answer)) => {
                    answers.push((self.attempts().id, answer));
                    let then = self.send(driver, sending).await;
                    if !matches!(then, Then::Applied { .. }) {
                        answers.retain(|(id, _)| self.attempts().is_open(*id));
                    }
                    then
                }
            };
        }
    }

    fn begin(&mut self, now: Now) {
        self.now = now.wall;
        self.steps.clear();
        self.rows.iter().for_each(|row| row.is_looked_at.store(false, Relaxed));
    }

    /// The unknown rows needed by the decision, with those to read along.
    pub(crate) fn to_be_read(&self) -> Vec<usize> {
        let is_unknown = |row: &KnownRow| matches!(row.known, Known::Nothing);
        if !self.rows.iter().any(|row| is_unknown(row) && row.is_read_first) {
            return Vec::new();
        }
        (0..self.rows.len()).filter(|&row| is_unknown(&self.rows[row])).collect()
    }

    /// The rows used by the decision but known only from memory.
    pub(crate) fn to_be_read_again(&self) -> Vec<usize> {
        let rests_on_memory = |row: &KnownRow| !row.is_fresh && row.is_looked_at.load(Relaxed);
        (0..self.rows.len()).filter(|&row| rests_on_memory(&self.rows[row])).collect()
    }

    /// Forgets the large rows written by these steps. So none is in memory together with the row in a refusal of its
    /// step. Those not shown by a refusal are read again. The refusal of a write of one row shows it.
    fn let_go_of_written_rows(&mut self, sending: &Sending) {
        for step in sending.steps.iter().filter(|step| step.is_write() || step.edit.is_some()) {
            let row = &mut self.rows[step.row];
            // The burn of a tombstone, or of a row with demanded values, needs the old values.
            if let Known::Row(known) = &row.known
                && (sending.transact.is_none()
                    || !known.is_tombstone
                        && row.is_read_first
                        && !row.layout.demands_values()
                        && heap_of_attributes(&known.attributes) > MOST_KEPT)
            {
                row.known = Known::Nothing;
            }
        }
    }

    fn learn_all(&mut self, learned: Vec<(usize, Known)>) {
        for (row, known) in learned {
            self.learn(row, known);
        }
    }

    /// Learns a row as it was read or shown.
    pub(super) fn learn(&mut self, row: usize, known: Known) {
        let row = &mut self.rows[row];
        let (table, key) = (&row.address.table, &row.address.key);
        match &known {
            Known::Row(seen) if row.remembers_items => self.row_cache.insert(table, key, seen, true, None),
            Known::Absent | Known::Damaged(_) => self.row_cache.remove(table, key),
            _ => {}
        }
        if !row.known.is_same(&known) {
            row.refused.clear();
        }
        row.known = known;
        row.is_fresh = true;
    }

    async fn read(&mut self, driver: &mut Driver<'_>, rows: Vec<usize>) -> Then {
        if rows.is_empty() && !self.attempts().is_doubtful() {
            return Then::Decide;
        }
        self.change.read(rows, driver.now());
        let told = driver.drive(&mut self.change, Work::Rows(&self.rows, None)).await;
        match self.learn_shown(driver) {
            Err(failure) if matches!(told, Told::Read) => Then::Failed(failure),
            _ => Then::of(driver, &told, None),
        }
    }

    /// Learns the rows in the last answer. Fails if one of them cannot be read.
    fn learn_shown(&mut self, driver: &mut Driver<'_>) -> Result<(), Failure> {
        let mut learned = Ok(());
        for (row, item) in std::mem::take(&mut driver.shown) {
            match Known::of(self.rows[row].layout, item) {
                Ok(known) => self.learn(row, known),
                Err(failure) => learned = learned.and(Err(failure)),
            }
        }
        learned
    }

    async fn wait(&mut self, driver: &mut Driver<'_>, bound: Duration) -> Then {
        self.change.wait(bound, driver.now(), &mut || driver.sender.rng.next_u64());
        let told = driver.drive(&mut self.change, Work::Rows(&self.rows, None)).await;
        Then::of(driver, &told, None)
    }

    fn plan(&self, sending: &Sending) -> Plan {
        let lines_up_at = match &*sending.steps {
            [step] if sending.contest == Contest::Line => step.line(&self.rows),
            _ => None,
        };
        Plan {
            steps: sending.steps.iter().map(|step| step.judged(&self.rows)).collect(),
            lines_up_at,
            gives_way: sending.gives_way,
            is_transaction: sending.transact.is_some(),
            rereads: sending.rereads,
        }
    }

    /// Settles the holds in the rows at which the decision has looked, because it changes nothing. `None` if there are none, or
    /// if nothing came back: then the answer stands.
    async fn settle(&mut self, needs_none: bool) -> Option<Then> {
        let mut holds = self.holds.take()?;
        let is_looked_at = |row: &KnownRow| !self.is_transaction() || row.is_looked_at.load(Relaxed);
        let looked_at: Vec<_> = (0..self.rows.len()).filter(|&row| is_looked_at(&self.rows[row])).collect();
        let settled = holds.settle(&self.rows, &looked_at, needs_none).await;
        self.holds = Some(holds);
        match settled {
            Ok(Settled { stands: true, .. }) => None,
            Ok(Settled { learned, .. }) => {
                self.learn_all(learned);
                Some(Then::Decide)
            }
            Err(failure) => Some(Then::Failed(failure)),
        }
    }

    /// Takes what the steps need. If all of it is taken, the steps may be sent.
    async fn take(&mut self, takes: &[Take]) -> Result<(), Then> {
        let Some(holds) = &self.holds else { return Ok(()) };
        let taken = holds.take(&self.rows, takes).await;
        if taken.iter().all(|taken| matches!(taken, Taken::Landed)) {
            return Ok(());
        }
        // No create of this attempt has left, so none ever will.
        let is_held = |taken: &Taken| !matches!(taken, Taken::Refused(_));
        let back: Vec<_> =
            takes.iter().zip(&taken).filter(|(_, taken)| is_held(taken)).map(|(take, _)| take.clone()).collect();
        let learned = holds.give_back(&self.rows, &back).await;
        self.learn_all(learned);
        let mut failed = None;
        for (take, taken) in takes.iter().zip(taken) {
            match taken {
                Taken::Landed => {}
                Taken::Refused(known) => {
                    let layout = self.rows[take.row].layout;
                    let attributes = known.row().map(|row| &row.attributes);
                    let has_map = attributes.is_some_and(|item| item.contains_key(layout.names.holds));
                    let refused = take.edit.resolve(layout, attributes).map(|clauses| clauses.conditions());
                    self.learn(take.row, known);
                    self.refusals += 1;
                    // A row without a map of holds takes the edit in a transaction, which makes the map.
                    if has_map {
                        self.rows[take.row].refused.extend(refused);
                    }
                    self.last = Some(Last { pending: None });
                }
                Taken::Failed(failure) => failed = failed.or(Some(failure)),
            }
        }
        match failed {
            // Nothing was placed, whatever became of the takes.
            Some(Failure { kind: FailureKind::OutcomeUnknown { source }, .. }) => {
                Err(Then::Failed(Failure::of(FailureKind::Unavailable { source })))
            }
            Some(failure) => Err(Then::Failed(failure)),
            None => Err(Then::Decide),
        }
    }

    async fn send(&mut self, driver: &mut Driver<'_>, mut sending: Sending) -> Then {
        let takes = std::mem::take(&mut sending.takes);
        if takes.is_empty() {
            return self.send_steps(driver, sending).await;
        }
        if let Err(then) = self.take(&takes).await {
            return then;
        }
        let id = self.attempts().id;
        let then = self.send_steps(driver, sending).await;
        let Some(holds) = &self.holds else { return then };
        match &then {
            Then::Applied { id: applied, .. } if *applied == id => holds.placed(&self.rows, &takes),
            Then::Failed(Failure { kind: FailureKind::OutcomeUnknown { .. }, .. }) => {}
            Then::Applied { .. } | Then::Failed(_) | Then::Decide => {
                let learned = holds.give_back(&self.rows, &takes).await;
                self.learn_all(learned);
            }
        }
        then
    }

    async fn send_steps(&mut self, driver: &mut Driver<'_>, sending: Sending) -> Then {
        let plan = self.plan(&sending);
        // The burn of an open attempt comes first, and is decided on again.
        if !self.is_transaction() || !self.attempts().is_doubtful() {
            self.let_go_of_written_rows(&sending);
        }
        self.change.attempt(plan, driver.now(), &mut || driver.sender.rng.next_u64());
        let told = driver.drive(&mut self.change, Work::Rows(&self.rows, Some(&sending))).await;
        match told {
            Told::NotApplied { unseen, burned } => {
                self.last = Some(Last { pending: None });
                match self.learn_refusal(driver, &sending, &unseen, burned) {
                    Ok(unread) => self.read(driver, unread).await,
                    Err(failure) => Then::Failed(failure),
                }
            }
            Told::GaveWay => {
                self.last = Some(Last { pending: None });
                self.read(driver, sending.steps.iter().map(|step| step.row).collect()).await
            }
            Told::Look(unread) => match self.learn_shown(driver) {
                Ok(()) => {
                    self.has_looked = true;
                    self.read(driver, unread).await
                }
                Err(failure) => Then::Failed(failure),
            },
            Told::Refused { pending } => {
                self.last = Some(Last { pending: pending.map(|cause| driver.source(cause)) });
                self.rows[sending.steps[0].row].known = Known::Stored(shown_of(driver, &sending));
                Then::Decide
            }
            told => {
                let shown = shown_of(driver, &sending);
                Then::of(driver, &told, shown)
            }
        }
    }

    /// The failure of a request that follows the change and belongs to it. While an attempt is open, the outcome is unknown.
    pub(crate) fn followed_by(&self, failure: Failure) -> Failure {
        if self.attempts().is_doubtful() { while_open(failure).at(|| self.place()) } else { failure }
    }

    /// The failure that is told. If an attempt may still be applied, it is burned first, as far as time and reach allow.
    async fn give_up(&mut self, driver: &mut Driver<'_>, failure: Failure) -> Failure {
        if !self.attempts().is_doubtful() {
            return failure;
        }
        if !is_told_anyway(&failure) {
            self.change.give_up(driver.now(), &mut || driver.sender.rng.next_u64());
            let told = driver.drive(&mut self.change, Work::Rows(&self.rows, None)).await;
            if matches!(told, Told::GivenUp { is_doubtful: false }) {
                return failure;
            }
        }
        while_open(failure)
    }
}

/// `Some` if a decision changes nothing, so that a part which is held may come back and change the answer: whether it needs
/// rows without holds.
fn refuses<A, W>(next: &Result<Next<A, W>, Failure>) -> Option<bool> {
    match next {
        Ok(Next::Answer(_)) | Err(Failure { kind: FailureKind::EditRefused { .. }, .. }) => Some(false),
        Err(Failure { kind: FailureKind::Held { .. }, .. }) => Some(true),
        _ => None,
    }
}

/// The row of a single step in the last answer.
fn shown_of(driver: &mut Driver<'_>, sending: &Sending) -> Option<Attributes> {
    let [_] = &*sending.steps else { return None };
    let shown = std::mem::take(&mut driver.shown).pop().map(|(_, item)| item);
    shown.or_else(|| driver.reasons.pop().map(super::send::Reason::into_item)).flatten()
}

const NO_ANSWER: &str = "an earlier attempt was applied";

/// Whether a failure is the same with open attempts. Only a lost lease proves that none of them was applied, because none is
/// applied without it. A refused edit is told like the refusal of a decision, also after open attempts.
fn is_told_anyway(failure: &Failure) -> bool {
    matches!(failure.kind, FailureKind::OutcomeUnknown { .. } | FailureKind::Fenced | FailureKind::EditRefused { .. })
}

/// The failure at the end of a change with open attempts: one of them may have been applied since its refusal.
fn while_open(failure: Failure) -> Failure {
    match failure {
        failure if is_told_anyway(&failure) => failure,
        Failure { kind: FailureKind::Unavailable { source } | FailureKind::Rejected { source }, .. } => {
            Failure::of(FailureKind::OutcomeUnknown { source })
        }
        other => Failure::of(FailureKind::OutcomeUnknown { source: other.into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_while_an_attempt_is_open_is_unknown_unless_the_lease_is_lost() {
        let too_large = while_open(Failure::of(FailureKind::TooLarge { bytes: 2, limit: 1 }));
        assert!(matches!(too_large.kind, FailureKind::OutcomeUnknown { .. }), "{too_large:?}");
        assert!(matches!(while_open(Failure::of(FailureKind::Fenced)), Failure { kind: FailureKind::Fenced, .. }));
    }
}
