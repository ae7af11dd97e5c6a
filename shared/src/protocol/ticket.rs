//! [`Delivery::take_ticket`]: gets a writer its place in the line at an item.

use super::condition::take_ticket;
use super::deliver::{Delivery, SEND_WINDOW, until_read};
use super::item::Attributes;
use super::row::read_number;
use super::send::{Address, Send};
use crate::error::Failure;
use crate::names::Names;
use crate::version::Incarnation;

impl Delivery<'_> {
    /// Takes a ticket from this row. `None` if the row is not there any more, or if the request is not permitted: the
    /// change then waits as if there were no line.
    ///
    /// The request is sent like a read. A second copy of it takes one more ticket, which delays the writers behind it by
    /// one turn.
    pub(crate) async fn take_ticket(
        &self,
        row: &Address,
        names: &Names,
        incarnation: Incarnation,
    ) -> Result<Option<u64>, Failure> {
        let write = &take_ticket(row.key.clone(), names, incarnation);
        let take = |timeout| async move {
            let send = Send { timeout, signed_by: self.sender.clock.now() + SEND_WINDOW, mismatches: 0 };
            let number = |shown: Option<Attributes>| shown?.get(names.given).and_then(read_number);
            Box::pin(self.sender.write(&row.table, write.clone(), send)).await.into_read(number)
        };
        match until_read(self.sender, self.call, take).await {
            Err(Failure::Rejected { .. }) => Ok(None),
            ticket => ticket,
        }
    }
}
