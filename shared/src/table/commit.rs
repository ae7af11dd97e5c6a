//! One logical change to one key. It sends each conditional write until the outcome is proved.

use super::handle::RawTable;
use super::prepare::{Prepared, Write};
use crate::error::{Failure, Source};
use crate::protocol::attempts::Attempts;
use crate::protocol::change::{Settled, Site};
use crate::protocol::condition::{Action, Stamp};
use crate::protocol::deliver::{Delivery, Refusal};
use crate::protocol::item::Attributes;
use crate::protocol::judge::{Base, Verdict};
use crate::protocol::memory::WriteId;
use crate::protocol::refusal::{RefusedStep, Role};
use crate::protocol::row::{self, Row};
use crate::protocol::send::{Address, Reason, Send, depends_on_the_data};
use crate::protocol::settle::{committed, made, while_open};
use crate::version::ItemVersion;

/// The applied attempt by its id, with the state left by it.
pub(super) type Applied = (WriteId, ItemVersion);

/// One logical change to one key. All its sends have one window.
pub(crate) struct RowChange<'a> {
    pub(super) table: &'a RawTable,
    pub(super) address: Address,
    pub(super) attempts: Attempts,
    pub(super) delivery: Delivery<'a>,
    /// Whether the next attempt rests on a remembered row. If that is refused, it has met nobody: its row was old.
    pub(super) is_from_memory: bool,
    /// Whether another change follows an edit that `DynamoDB` rejects, such as one that makes the item too large.
    pub(super) gives_way: bool,
}

impl<'a> RowChange<'a> {
    pub(crate) fn new(table: &'a RawTable, key: Attributes, delivery: Delivery<'a>) -> Self {
        let address = Address { table: table.name.clone(), key };
        let attempts = Attempts::new(table.sender().new_id());
        RowChange { table, address, attempts, delivery, is_from_memory: false, gives_way: false }
    }

    /// Ends the change. Every failure of an operation passes here, because it may be untrue while an attempt is open.
    pub(super) async fn end<A, E: From<Failure>>(&mut self, told: Result<Result<A, E>, Failure>) -> Result<A, E> {
        match told {
            Ok(told) => told,
            Err(failure) => Err(self.failed(failure).await.into()),
        }
    }

    /// The failure that is told. If time and reach are not its reason, burns the open attempts, so that nothing is applied.
    async fn failed(&mut self, failure: Failure) -> Failure {
        let RowChange { table, address, attempts, delivery, .. } = self;
        let is_for_the_caller = matches!(
            failure,
            Failure::InvalidRecord { .. }
                | Failure::TooLarge { .. }
                | Failure::CorruptItem { .. }
                | Failure::Rejected { .. }
        );
        let site = |_| Site { address, layout: table.layout, known: None, retention: table.tombstone_retention };
        while is_for_the_caller
            && attempts.check_remembered().is_ok()
            && let Some(open) = attempts.take_one_beside(&[])
        {
            let burned = delivery.burn(attempts, &open.writes(), &site).await;
            if !matches!(burned, Ok(Some((Verdict::NeverApplied, _)))) {
                return while_open(failure);
            }
        }
        attempts.failed(failure)
    }

    pub(crate) fn prepare(&self, write: Write<'_>) -> Result<Prepared, Failure> {
        let RowChange { table, address, attempts, .. } = self;
        let burn = attempts.ids_to_burn(0, write.row().map(|at| at.incarnation));
        let stamp = Stamp { id: attempts.id, prune: &[], burn: &burn, fence: table.fence };
        write.prepare(table.layout, &address.key, stamp, table.sender().clock.now(), table.tombstone_retention)
    }

    /// Sends the attempt until it is proved to be applied, or proved not to be. If the previous one lost a race, waits
    /// first. Returns the current row, too, if there is one. If it cannot be read, an attempt was applied.
    pub(crate) async fn commit(
        &mut self,
        mut attempt: Prepared,
    ) -> Result<(Option<Applied>, Result<Option<Row>, Failure>), Failure> {
        if self.table.remembers_items {
            attempt.request.show_new_row();
        }
        self.line_up(&mut attempt).await?;
        let (applied, item) = self.send(&attempt).await?;
        // An unreadable row is forgotten.
        let current = self.saw(item);
        if applied.is_some() {
            return Ok((applied, current));
        }
        let current = current?;
        if let Some(row) = &current {
            row.check_fence(attempt.sent.fence)?;
        }
        // A create refused by a taken key has not lost a race. A write to a row that has moved on has lost one.
        if self.is_from_memory {
            self.delivery.call.count_conflict();
        } else if let Base::Row { version, .. } = attempt.sent.on {
            let now = current.as_ref().map_or(version, |row| row.at.version);
            self.delivery.conflict(now.get().saturating_sub(version.get()));
            if let Some(row) = &current {
                let served = row.attributes.get(self.table.layout.names.served);
                self.delivery.line.served = served.and_then(row::read_number).unwrap_or(0);
            }
        }
        Ok((None, Ok(current)))
    }

    /// After the first conflict, takes a ticket for the line at the item. The attempt then waits for its turn, and an
    /// applied one ends the turn.
    async fn line_up(&mut self, attempt: &mut Prepared) -> Result<(), Failure> {
        let RowChange { table: RawTable { layout, .. }, address, delivery, .. } = self;
        let leaves_row = !matches!(attempt.request.action, Action::Delete { .. });
        if let Base::Row { incarnation, .. } = attempt.sent.on
            && layout.has_tickets()
            && delivery.met_others()
            && leaves_row
            && !incarnation.is_foreign()
        {
            delivery.line.ticket = Box::pin(delivery.take_ticket(address, &layout.names, incarnation)).await?;
        }
        if let Some(ticket) = delivery.line.served_then() {
            attempt.request.serve(&layout.names, ticket);
        }
        Ok(())
    }

    fn saw(&self, item: Option<Attributes>) -> Result<Option<Row>, Failure> {
        let row = item.map(|item| Row::read(self.table.layout, item)).transpose();
        self.table.saw(&self.address.key, row.as_ref().ok().and_then(Option::as_ref));
        row
    }

    /// Sends one attempt until its outcome is proved. Returns the applied attempt, if any, and the item that tells.
    ///
    /// The applied one is this attempt or an earlier one of the change. In the second case, a copy of the earlier one
    /// was applied after its refusal; this attempt never will be.
    pub(super) async fn send(&mut self, attempt: &Prepared) -> Result<(Option<Applied>, Option<Attributes>), Failure> {
        let Prepared { request, sent, .. } = attempt;
        let RowChange { table, delivery, .. } = self;
        let token = table.new_token();
        let send = |send: Send| table.send(request.clone(), token.as_deref(), send);
        let Refusal { by: item, pending } = match delivery.until_proved(send).await {
            Err(Failure::Rejected { source }) => return self.rejected(attempt, source).await,
            Err(failure) => return Err(failure),
            Ok(Ok(shown)) => {
                // In a window, only the row tells which version the write made.
                let seen = shown.as_ref().and_then(|item| row::seen(table.layout, item));
                let at = seen.map_or(committed(sent), |row| row.at());
                // The answer to a put shows no row. The row sent in the put may be large.
                let item = if table.remembers_items { request.new_row(shown) } else { shown };
                return Ok((Some((sent.id, at)), item));
            }
            Ok(Err(refusal)) => refusal,
        };
        self.find_out(attempt, item, pending).await
    }

    /// A rejected attempt was not applied. Where the stored data is the reason, a copy of it may still be: the attempt is
    /// then open, like one that the current row refused.
    async fn rejected(
        &mut self,
        attempt: &Prepared,
        source: Source,
    ) -> Result<(Option<Applied>, Option<Attributes>), Failure> {
        let may_be_applied = depends_on_the_data(&source, |_| attempt.sent.is_exact());
        if !may_be_applied && !self.gives_way {
            return Err(Failure::Rejected { source });
        }
        let row = self.table.observe(&self.address.key, self.delivery.call).await;
        let row = row.map_err(|failure| if may_be_applied { while_open(failure) } else { failure })?;
        let found = self.find_out(attempt, row.map(|row| row.attributes), None).await?;
        if found.0.is_some() || self.gives_way { Ok(found) } else { Err(Failure::Rejected { source }) }
    }

    /// Finds out the fate of an attempt that this row refused. `pending` is set if another send of it may have been
    /// applied, or may still be.
    async fn find_out(
        &mut self,
        attempt: &Prepared,
        item: Option<Attributes>,
        pending: Option<Source>,
    ) -> Result<(Option<Applied>, Option<Attributes>), Failure> {
        let Prepared { sent, is_named_by_client, .. } = attempt;
        let RowChange { table, address, attempts, delivery, .. } = self;
        let layout = table.layout;
        let known = if pending.is_some() { item.clone().and_then(|item| Row::read(layout, item).ok()) } else { None };
        let site = |_| Site { address, layout, known: known.as_ref(), retention: table.tombstone_retention };
        let reason = Reason::Refused(item);
        let step = RefusedStep::new(0, Role::Writes(*sent), layout, &reason);
        let step = RefusedStep { is_named_by_client: *is_named_by_client, ..step };
        let (settled, shown_by_burn) = delivery.settle(attempts, &[step], pending, &site).await?;
        let item = shown_by_burn.map_or_else(|| reason.into_item(), |(_, now)| now);
        let applied = match settled {
            Settled::Landed(version) => Some((sent.id, made(sent, version))),
            Settled::Earlier(id, at) => Some((id, at)),
            Settled::NotApplied(_) => None,
        };
        Ok((applied, item))
    }
}
