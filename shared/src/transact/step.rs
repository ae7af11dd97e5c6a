//! [`Step`]: one step of a transaction.

use crate::layout::Layout;
use crate::protocol::judge::SentWrite;
use crate::protocol::refusal::{RefusedStep, Role};
use crate::protocol::send::Reason;
use aws_sdk_dynamodb::types::TransactWriteItem;

#[derive(Debug)]
pub(super) struct Step {
    pub(super) row: usize,
    pub(super) role: Role,
    /// The facts about its table in the record of the row.
    pub(super) layout: &'static Layout,
    pub(super) request: TransactWriteItem,
    pub(super) bytes: usize,
    /// The same add as an anchor: in a window, and with the write id.
    pub(super) anchor: Option<(TransactWriteItem, SentWrite)>,
}

impl Step {
    pub(super) fn writes(&self) -> Option<usize> {
        matches!(self.role, Role::Writes(_)).then_some(self.row)
    }

    /// Becomes a step with the id of the transaction, if it can.
    pub(super) fn become_anchor(&mut self) {
        if let Some((request, sent)) = self.anchor.take() {
            (self.request, self.role) = (request, Role::Writes(sent));
        }
    }

    pub(super) fn refused<'a>(&self, reason: &'a Reason) -> RefusedStep<'a> {
        RefusedStep::new(self.row, self.role, self.layout, reason)
    }
}
