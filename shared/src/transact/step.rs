//! [`Step`]: one step of a transaction, as it is sent and as it is judged.

use super::reads::{Known, invalid};
use crate::error::Failure;
use crate::layout::Layout;
use crate::protocol::condition::{Action, Clauses, ConditionalWrite};
use crate::protocol::item::size_of_attributes;
use crate::protocol::judge::SentWrite;
use crate::protocol::refusal::{RefusedStep, Role};
use crate::protocol::send::{Address, Reason, step};
use crate::protocol::settle::is_in_window;
use aws_sdk_dynamodb::types::TransactWriteItem;

pub(super) fn request_step(address: &Address, write: ConditionalWrite) -> Result<TransactWriteItem, Failure> {
    step(&address.table, write).map_err(|source| invalid(source.to_string()))
}

/// The size of the item after the step: the attributes in the step together with the untouched ones of the row.
pub(super) fn size(write: &ConditionalWrite, known: &Known) -> usize {
    let kept = |is_kept: &dyn Fn(&String) -> bool| {
        let Known::Row(row) = known else { return 0 };
        size_of_attributes(row.attributes.iter().filter(|(name, _)| is_kept(name)))
    };
    match &write.action {
        Action::Put { item } => size_of_attributes(item),
        Action::Delete { .. } | Action::Check { .. } => kept(&|_| true),
        Action::Update { .. } => {
            let is_named = |name: &String| write.names.values().any(|named| named == name);
            kept(&|name| !is_named(name)) + size_of_attributes(&write.values)
        }
    }
}

#[derive(Debug)]
pub(super) struct Step {
    pub(super) row: usize,
    pub(super) role: Role,
    /// The facts about its table in the record of the row.
    pub(super) layout: &'static Layout,
    pub(super) request: TransactWriteItem,
    pub(super) bytes: usize,
    pub(super) edit: Option<EditStep>,
}

/// An edit without a demand on the version, beside its request.
#[derive(Debug)]
pub(super) struct EditStep {
    pub(super) clauses: Clauses,
    /// Whether the decision rests on no more than the conditions of the edit.
    pub(super) is_blind: bool,
    /// The same edit as an anchor: in a window, and with the write id.
    pub(super) anchor: Option<(TransactWriteItem, SentWrite)>,
}

impl Step {
    pub(super) fn writes(&self) -> Option<usize> {
        self.sent().map(|(row, _)| row)
    }

    /// The row that remembers the step, and the write to it.
    pub(super) fn sent(&self) -> Option<(usize, SentWrite)> {
        if let Role::Writes(sent) = self.role { Some((self.row, sent)) } else { None }
    }

    /// Whether it demands one state of its row.
    pub(super) fn is_exact(&self) -> bool {
        match &self.role {
            Role::Writes(sent) => sent.is_exact(),
            Role::Adds => false,
            Role::Checks(_) | Role::Requires(_) => true,
        }
    }

    pub(super) fn changes(&self) -> bool {
        matches!(self.role, Role::Writes(_) | Role::Adds)
    }

    pub(super) fn has_anchor(&self) -> bool {
        self.edit.as_ref().is_some_and(|edit| edit.anchor.is_some())
    }

    pub(super) fn become_anchor(&mut self) {
        if let Some((request, sent)) = self.edit.as_mut().and_then(|edit| edit.anchor.take()) {
            (self.request, self.role) = (request, Role::Writes(sent));
        }
    }

    pub(super) fn refused<'a>(&self, reason: &'a Reason) -> RefusedStep<'a> {
        RefusedStep::new(self.row, self.role, self.layout, reason)
    }

    /// The conditions of its edit, if nothing else can have made the row refuse the step: the row is in the state that
    /// the step demands, which was decided on `before`.
    pub(super) fn refused_conditions(&self, before: &Known, now: &Known) -> Option<Clauses> {
        let (Some(edit), Known::Row(now)) = (&self.edit, now) else { return None };
        let differs = |name: &&str| match before {
            Known::Row(before) => before.attributes.get(*name) != now.attributes.get(*name),
            _ => true,
        };
        let is_as_demanded = match &self.role {
            Role::Writes(sent) if self.layout.demands_values() => {
                is_in_window(sent, now.at) && !self.layout.attributes.iter().any(differs)
            }
            Role::Writes(sent) => is_in_window(sent, now.at),
            _ => true,
        };
        is_as_demanded.then(|| edit.clauses.conditions())
    }
}
