//! The row of a lease and the effect of a request on it.

use super::{LeaseModel, Shared, Shown, Wrong};
use crate::protocol::Answer;
use crate::row::{self, Demands, Id, Write};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LeaseRow {
    pub holder: Option<usize>,
    pub token: u64,
    pub renewals: u64,
    /// The end, in milliseconds.
    pub expires_at: u64,
    pub acquire_id: Id,
    /// When TTL may remove the row, in seconds.
    pub purge_at: u32,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Request {
    Acquire {
        process: usize,
        id: Id,
        expires_at: u64,
        cutoff: u64,
        floor: u64,
        purge_at: u32,
    },
    Renew {
        token: u64,
        at: u64,
        expires_at: u64,
        purge_at: u32,
    },
    Release {
        token: u64,
        purge_at: u32,
    },
    /// Writes the item if the lease is held under this token.
    Required {
        token: u64,
        write: Write,
    },
    /// Writes the item if it has seen no higher token.
    Fenced {
        token: u64,
        write: Write,
    },
}

impl LeaseModel {
    /// The next row of the lease, if the condition of the request holds on this one.
    pub fn next_lease(&self, row: Option<&LeaseRow>, request: &Request) -> Option<Option<LeaseRow>> {
        match request {
            Request::Acquire { process, id, expires_at, cutoff, floor, purge_at } => {
                let is_free = row.is_none_or(|row| {
                    let is_new = row.acquire_id != *id || self.lacks("acquire-once");
                    (row.holder.is_none() && is_new) || row.expires_at < *cutoff
                });
                is_free.then(|| {
                    Some(LeaseRow {
                        holder: Some(*process),
                        token: row.map_or(*floor, |row| row.token) + 1,
                        renewals: 0,
                        expires_at: *expires_at,
                        acquire_id: *id,
                        purge_at: *purge_at,
                    })
                })
            }
            Request::Renew { token, at, expires_at, purge_at } => {
                let row = row.filter(|row| row.token == *token)?;
                let is_held = row.holder.is_some() || self.lacks("renewal-held");
                let is_at = row.renewals == *at || self.lacks("renewal-counts");
                let (expires_at, purge_at) = (*expires_at, *purge_at);
                (is_held && is_at)
                    .then(|| Some(LeaseRow { renewals: row.renewals + 1, expires_at, purge_at, ..row.clone() }))
            }
            Request::Release { token, purge_at } => {
                let row = row.filter(|row| row.token == *token)?;
                let keeps = !self.lacks("release-keeps-row");
                Some(keeps.then(|| LeaseRow { holder: None, purge_at: *purge_at, ..row.clone() }))
            }
            Request::Required { .. } | Request::Fenced { .. } => None,
        }
    }

    /// Whether the lease is held under this token, as a required write demands.
    pub fn is_held(&self, row: Option<&LeaseRow>, token: u64) -> bool {
        row.is_some_and(|row| row.token == token && row.holder.is_some())
    }

    pub(super) fn meets_required(&self, shared: &mut Shared, token: u64, write: &Write) -> (Answer<Shown>, Option<()>) {
        let is_required = self.lacks("require") || self.is_held(shared.lease.as_ref(), token);
        match write.apply(Some(&shared.item), None, Demands::ALL) {
            Ok(Some(next)) if is_required => {
                shared.wrongs.extend((token < shared.acquired).then_some(Wrong::ReplacedWrote));
                shared.item = next;
                (Answer::Applied((None, Some(shared.item.clone()))), Some(()))
            }
            applied => {
                let lease = shared.lease.clone().filter(|_| !is_required);
                // The lease is the first step.
                let shows_item = applied.is_err() && (shared.shows_all || is_required);
                (Answer::Refused((lease, shows_item.then(|| shared.item.clone()))), None)
            }
        }
    }

    pub(super) fn meets_fenced(&self, shared: &mut Shared, token: u64, write: &Write) -> (Answer<Shown>, Option<()>) {
        let is_burn = matches!(write, Write::Burn { .. });
        let demands = Demands { fence: !self.lacks("fence"), ..Demands::ALL };
        let fence = (!is_burn).then_some(token);
        match write.apply(Some(&shared.item), fence, demands) {
            Ok(Some(next)) => {
                let is_fall = !is_burn && token < shared.written;
                shared.wrongs.extend(is_fall.then_some(Wrong::ItemSawFall));
                shared.written = shared.written.max(token);
                shared.item = next;
                (Answer::Applied((None, Some(shared.item.clone()))), (!is_burn).then_some(()))
            }
            Ok(None) | Err(row::Refused) => (Answer::Refused((None, Some(shared.item.clone()))), None),
        }
    }
}
