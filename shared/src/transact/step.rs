//! [`Step`]: one step of a transaction, and its [`Role`].

use crate::layout::Layout;
use crate::protocol::after::StepKind;
use crate::protocol::judge::{Base, SentWrite};
use aws_sdk_dynamodb::types::TransactWriteItem;

/// The effect of a step.
#[derive(Debug)]
pub(crate) enum Role {
    /// The step writes to the observed state, and leaves the write id.
    Writes(SentWrite),
    /// The step demands that the row is still in the observed state.
    Checks(Base),
    /// The step adds to numbers at any version, and leaves no id.
    Adds,
    /// The step demands that a lease is held under this token.
    Requires(u64),
}

impl Role {
    /// The state of the row that the step demands.
    pub(super) fn base(&self) -> Option<Base> {
        match self {
            Role::Writes(sent) => Some(sent.on),
            Role::Checks(on) => Some(*on),
            Role::Adds | Role::Requires(_) => None,
        }
    }
}

/// One step of a transaction. It can be sent any number of times.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) row: usize,
    pub(super) role: Role,
    /// What the record of the row says of its table.
    pub(super) layout: &'static Layout,
    pub(super) request: TransactWriteItem,
    pub(super) bytes: usize,
    /// The same add as an anchor: in a window, and with the write id.
    pub(super) anchor: Option<(TransactWriteItem, SentWrite)>,
}

/// The writes of these steps that leave an id, each with its row.
pub(super) fn writes(steps: &[Step]) -> Vec<(usize, SentWrite)> {
    let write = |step: &Step| if let Role::Writes(sent) = step.role { Some((step.row, sent)) } else { None };
    steps.iter().filter_map(write).collect()
}

impl Step {
    pub(super) fn request(&self) -> TransactWriteItem {
        self.request.clone()
    }

    /// Becomes a step that remembers the transaction, if it can.
    pub(super) fn become_anchor(&mut self) {
        if let Some((request, sent)) = self.anchor.take() {
            (self.request, self.role) = (request, Role::Writes(sent));
        }
    }

    pub(super) fn kind(&self) -> StepKind {
        match self.role {
            Role::Writes(_) => StepKind::Writes(self.row),
            Role::Adds => StepKind::Adds { row: self.row, can_anchor: self.anchor.is_some() },
            Role::Checks(_) | Role::Requires(_) => StepKind::Checks,
        }
    }
}
