//! [`Found`]: the findings and changes of a run so far.

use super::explain::Kind;

/// The findings and changes of a [`Run`](super::Run) so far.
///
/// A run that was interrupted in a page reads that page again. Rows that it had written by then are counted as they are
/// at the second read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Found {
    /// Items of this crate.
    pub live: u64,
    /// Tombstones.
    pub tombstones: u64,
    /// Items that another program wrote and that are not adopted.
    pub foreign: u64,
    /// Leases.
    pub leases: u64,
    /// Rows of which the newest instance wins.
    pub mappings: u64,
    /// Rows that contradict themselves. They are left alone.
    pub damaged: u64,
    /// Rows that the run has written or removed. In a dry run, those that it would write or remove.
    pub written: u64,
    /// Rows that changed between the read and the write. If they still needed the write, they were written as they were
    /// by then.
    pub changed_meanwhile: u64,
    /// Rows that were removed between the read and the write.
    pub removed_meanwhile: u64,
}

impl Found {
    /// All rows that were read.
    #[must_use]
    pub fn rows(&self) -> u64 {
        let Found { live, tombstones, foreign, leases, mappings, damaged, .. } = self;
        live + tombstones + foreign + leases + mappings + damaged
    }

    pub(super) fn count(&mut self, kind: Kind) {
        *match kind {
            Kind::Live => &mut self.live,
            Kind::Tombstone => &mut self.tombstones,
            Kind::Foreign => &mut self.foreign,
            Kind::Lease => &mut self.leases,
            Kind::Mapping => &mut self.mappings,
            Kind::Damaged => &mut self.damaged,
        } += 1;
    }
}
