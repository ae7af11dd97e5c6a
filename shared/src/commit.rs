//! One logical change: each of its conditional writes is sent until it is proved what became of it.

use crate::call::Call;
use crate::condition::{self, ConditionalWrite};
use crate::error::{Failure, Source};
use crate::retry::{Conflicts, Deadline};
use crate::row::{self, Row};
use crate::send::Proof;
use crate::table::{Attributes, Diff, Key, Record, Table, check_size, diff};
use crate::version::{ItemVersion, Version, Versioned};
use crate::write_id::{Base, SentWrite, Verdict, WriteId, judge};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tracing::debug;

/// All sends of one change happen within this time of the first. A signature lives about 5 minutes, so
/// a late copy of the first send is refused before what would recognise it has been forgotten.
const SEND_WINDOW: Duration = Duration::from_mins(4);

/// A tombstone that TTL may remove within this time proves nothing about a create whose answer was
/// lost: a late copy could find the key free. Sends leave for 4 minutes, signatures live 5, clocks may be
/// some minutes apart.
const PURGE_MARGIN: Duration = Duration::from_mins(15);

/// What is known of a key.
#[derive(Debug)]
pub(crate) enum Observed<T> {
    /// No row.
    Absent,
    /// A row whose item was deleted.
    Tombstone(Row),
    /// A row with a value.
    Live(Row, Versioned<T>),
}

impl<T: Record> Observed<T> {
    pub(crate) fn of(row: Row) -> Result<Self, Failure> {
        Ok(match Table::<T>::decode(&row)? {
            Some(current) => Observed::Live(row, current),
            None => Observed::Tombstone(row),
        })
    }
}

/// One write, by what it does to what was observed.
pub(crate) enum Write<'a, T> {
    /// A value where no row is.
    Create(&'a T),
    /// A value where a tombstone is.
    Revive(&'a Row, &'a T),
    /// The second value in the place of the first.
    Update(&'a Row, &'a T, &'a T),
    /// A tombstone in the place of whatever is at this version.
    Delete(ItemVersion),
}

/// How a write ended.
pub(crate) enum Committed<T> {
    /// It was applied, and left the row at this version.
    At(ItemVersion),
    /// It was not applied and never will be; this is what stands there instead.
    No(Observed<T>),
}

/// A send whose condition did not hold.
struct Refusal {
    /// The row that refused, if there was one.
    item: Option<Attributes>,
    /// How long it took, from the send to its answer.
    round_trip: Duration,
    /// Whether the version that it was conditioned on comes from a client and was never read here.
    named_by_client: bool,
}

/// One logical change to one key: one write id, one window for all its sends.
pub(crate) struct Change<'a, T> {
    table: &'a Table<T>,
    key: Attributes,
    call: &'a Call,
    id: WriteId,
    window: Window,
    attempts: u32,
    conflicts: Conflicts,
}

impl<'a, T: Record> Change<'a, T> {
    pub(crate) fn new(table: &'a Table<T>, key: &Key, call: &'a Call) -> Result<Self, Failure> {
        Ok(Change {
            table,
            key: Table::<T>::key_attributes(key)?,
            call,
            id: WriteId::from_random(table.ambient.random()),
            window: Window::open(table.ambient.now()),
            attempts: 0,
            conflicts: Conflicts::default(),
        })
    }

    /// Sends `write` until it is proved to be applied or dead; after a conflict not before a pause.
    ///
    /// An answer that was lost stays *pending* until the judge clears it: what a resend is answered
    /// speaks about that resend only. While something is pending, whatever ends the loop without a
    /// verdict ends it as [`Failure::OutcomeUnknown`].
    pub(crate) async fn commit(&mut self, write: Write<'_, T>) -> Result<Committed<T>, Failure> {
        let (request, sent) = self.prepare(&write)?;
        self.pause_after_conflict().await?;
        let mut pending: Option<Source> = None;
        let mut lost = 0;
        let mut sends = 0;
        let mut signed_again = false;
        let mut not_now: Option<Source> = None;
        self.attempts += 1;
        self.call.count_attempt();
        loop {
            let Some(timeout) = self.time_to_send(pending.is_some(), lost) else {
                return Err(self.out_of_time(pending, not_now));
            };
            sends += 1;
            let left = self.call.deadline().remaining();
            match self.table.sender.write(request.clone(), timeout).await {
                Proof::Applied => return Ok(Committed::At(self.committed(&sent))),
                Proof::Refused(item) => {
                    let round_trip = left.saturating_sub(self.call.deadline().remaining());
                    let refusal = Refusal { item, round_trip, named_by_client: matches!(write, Write::Delete(_)) };
                    return self.refused(&sent, refusal, pending);
                }
                Proof::NotApplied(source) => not_now = Some(source),
                Proof::Expired(source) if signed_again => return Err(rejected(pending, source)),
                Proof::Expired(source) => {
                    signed_again = true;
                    not_now = Some(source);
                }
                Proof::Rejected(source) => return Err(rejected(pending, source)),
                Proof::Unknown(source) => {
                    debug!(sends, reason = %source, "answer lost");
                    self.call.count_lost_answer();
                    lost += 1;
                    pending = Some(source);
                }
            }
            // Never past the deadline, and with time left for one more send: it may prove what became of the last.
            let pause = self.table.policy.resend_pause(sends, self.table.ambient.random());
            tokio::time::sleep(pause.min(self.call.deadline().remaining() / 2)).await;
        }
    }

    /// Waits before another attempt, or says that there is none left. It is the write that waits, not the
    /// decision: an answer that needs no write is given at once.
    async fn pause_after_conflict(&mut self) -> Result<(), Failure> {
        if self.conflicts.count == 0 {
            return Ok(());
        }
        let policy = &self.table.policy;
        let left = self.call.deadline().remaining();
        let pause = policy.conflict_pause(&self.conflicts, self.table.ambient.random()).min(left / 2);
        let enough_time = left > pause + policy.first_timeout;
        if self.attempts >= policy.max_attempts || !enough_time {
            return Err(Failure::Contention { attempts: self.attempts });
        }
        tokio::time::sleep(pause).await;
        self.conflicts.paused(pause);
        Ok(())
    }

    /// What a refusal proves, and what follows from it.
    fn refused(
        &mut self,
        sent: &SentWrite,
        refusal: Refusal,
        pending: Option<Source>,
    ) -> Result<Committed<T>, Failure> {
        let Refusal { item, round_trip, named_by_client } = refusal;
        let seen = item.as_ref().and_then(row::seen);
        let verdict = judge(sent, seen.as_ref());
        if verdict == Verdict::Landed {
            return Ok(Committed::At(self.committed(sent)));
        }
        let current = item.map(Row::read).transpose();
        // Unknown is answered only while a send is pending; otherwise what is not mine is a conflict.
        if let Some(source) = pending {
            let proved = verdict == Verdict::Dead && !self.soon_purged(sent, &current);
            if !proved {
                return Err(Failure::OutcomeUnknown { source });
            }
        }
        // A delete may name a version that its client made up; every other write names one that was read.
        if verdict == Verdict::Corrupt && !named_by_client {
            return Err(Failure::CorruptItem { reason: "its version went down".to_owned() });
        }
        // A create that finds the key taken has not lost a race; a write on a row that moved on has.
        if let Base::Row { version, .. } = sent.on {
            let now = seen.as_ref().map_or(version, |row| row.version);
            self.conflicts.met(now.get().saturating_sub(version.get()), round_trip);
            self.call.count_conflict();
        }
        Ok(Committed::No(match current? {
            Some(row) => Observed::of(row)?,
            None => Observed::Absent,
        }))
    }

    /// Whether the row that refused a create may vanish while a copy of that create is on its way.
    fn soon_purged(&self, sent: &SentWrite, current: &Result<Option<Row>, Failure>) -> bool {
        let purge_at = current.as_ref().ok().and_then(Option::as_ref).and_then(|row| row.purge_at);
        sent.on == Base::NoRow
            && purge_at.is_some_and(|seconds| seconds < epoch_seconds(self.table.ambient.now() + PURGE_MARGIN))
    }

    /// The row's state that the write, once applied, has made.
    fn committed(&self, sent: &SentWrite) -> ItemVersion {
        match sent.on {
            Base::NoRow => ItemVersion { version: Version::ABSENT.next(), incarnation: self.id.as_incarnation() },
            Base::Row { version, incarnation } => ItemVersion { version: version.next(), incarnation },
        }
    }

    /// How long the next send may wait for its answer; `None` when it must not be sent any more.
    fn time_to_send(&self, pending: bool, lost: u32) -> Option<Duration> {
        let policy = &self.table.policy;
        let left = self.call.deadline().remaining();
        // With nothing pending, a send that cannot wait for its answer would only make an unknown.
        let needed = if pending { Duration::from_millis(1) } else { policy.first_timeout };
        if left < needed || !self.window.is_open(self.table.ambient.now()) {
            return None;
        }
        Some(policy.timeout(lost, self.table.sender.connected()).min(left))
    }

    fn out_of_time(&self, pending: Option<Source>, not_now: Option<Source>) -> Failure {
        match (pending, not_now) {
            (Some(source), _) => Failure::OutcomeUnknown { source },
            (None, Some(source)) => Failure::Unavailable { source },
            (None, None) if self.conflicts.count > 0 => Failure::Contention { attempts: self.attempts },
            (None, None) => Failure::Unavailable { source: "no time was left to send the write".into() },
        }
    }

    /// The request for `write`, and what the judge must know of it.
    fn prepare(&self, write: &Write<'_, T>) -> Result<(ConditionalWrite, SentWrite), Failure> {
        let (request, on) = match *write {
            Write::Create(value) => (self.create(value)?, Base::NoRow),
            Write::Revive(row, value) => {
                (self.change_row(row, &leftovers::<T>(row), &Table::<T>::encode(value)?)?, base(row.at))
            }
            Write::Update(row, old, new) => {
                (self.change_row(row, &Table::<T>::encode(old)?, &Table::<T>::encode(new)?)?, base(row.at))
            }
            Write::Delete(at) => (self.delete(at)?, base(at)),
        };
        Ok((request, SentWrite { id: self.id, on }))
    }

    fn create(&self, value: &T) -> Result<ConditionalWrite, Failure> {
        let mut item = Table::<T>::encode(value)?;
        item.extend(self.key.clone());
        check_size(&item)?;
        item.extend(row::first_attributes(self.id));
        Ok(condition::put_if_absent(T::PARTITION_KEY, item))
    }

    /// From what the row holds of a value to what it shall hold; other attributes are left alone.
    fn change_row(&self, row: &Row, old: &Attributes, new: &Attributes) -> Result<ConditionalWrite, Failure> {
        let diff = diff(old, new);
        let mut item = row.attributes.clone();
        diff.apply(&mut item);
        check_size(&item)?;
        Ok(condition::update_at(self.key.clone(), row.at, self.id, &diff).unwrap_or_else(|| {
            row::advance(&mut item, row.at, self.id);
            condition::put_at(row.at, item)
        }))
    }

    fn delete(&self, at: ItemVersion) -> Result<ConditionalWrite, Failure> {
        let purge_at = epoch_seconds(self.table.ambient.now() + self.table.tombstone_retention);
        let everything: BTreeSet<_> = T::ATTRIBUTES.iter().map(|&name| name.to_owned()).collect();
        let diff = Diff { set: BTreeMap::new(), remove: everything };
        condition::bury_at(self.key.clone(), at, self.id, &diff, purge_at).ok_or_else(|| Failure::InvalidRecord {
            reason: "its Record declares more attributes than one request can name".to_owned(),
        })
    }
}

fn base(at: ItemVersion) -> Base {
    Base::Row { version: at.version, incarnation: at.incarnation }
}

/// What a tombstone still holds beside the key and our own attributes: nothing of it may come to life again.
fn leftovers<T: Record>(row: &Row) -> Attributes {
    let mut attributes = row.attributes.clone();
    let keys = [Some(T::PARTITION_KEY), T::SORT_KEY];
    attributes.retain(|name, _| !row::OWNED.contains(&name.as_str()) && !keys.contains(&Some(name.as_str())));
    attributes
}

fn rejected(pending: Option<Source>, source: Source) -> Failure {
    match pending {
        Some(source) => Failure::OutcomeUnknown { source },
        None => Failure::Rejected { source },
    }
}

fn epoch_seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The time in which sends of one change may leave, on two clocks: a paused machine may stop one of them.
struct Window {
    monotonic: Deadline,
    opened: SystemTime,
}

impl Window {
    fn open(now: SystemTime) -> Self {
        Window { monotonic: Deadline::within(SEND_WINDOW), opened: now }
    }

    fn is_open(&self, now: SystemTime) -> bool {
        let by_wall_clock = now.duration_since(self.opened).map_or(true, |passed| passed < SEND_WINDOW);
        by_wall_clock && !self.monotonic.remaining().is_zero()
    }
}
