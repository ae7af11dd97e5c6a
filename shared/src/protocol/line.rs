//! [`Line`] (pure): the place of one writer among those that wait for their turn at an item.

use super::item::Attributes;
use super::row::read_number;
use crate::names::Names;

/// A ticket says how many writers are before this one. It is no lock: nothing is decided by it but how long a writer
/// waits. So a ticket that is lost, taken twice or never used delays others, and endangers nothing.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Line {
    /// The number of the ticket, counted from 1 per item. `None` if none was taken.
    pub ticket: Option<u64>,
    /// The last ticket whose writer has committed, as far as this writer has seen.
    pub served: u64,
}

impl Line {
    /// The tickets between the last one served and that of this writer. `None` if it has no ticket.
    pub(crate) fn ahead(self) -> Option<u64> {
        Some(self.ticket?.saturating_sub(self.served).saturating_sub(1))
    }

    /// The last ticket served once this writer has committed. `None` if it has no ticket.
    pub(crate) fn served_then(self) -> Option<u64> {
        Some(self.ticket?.max(self.served))
    }

    pub(crate) fn saw(&mut self, names: &Names, row: &Attributes) {
        self.served = row.get(names.served).and_then(read_number).unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_waits_for_the_tickets_between_the_last_one_served_and_its_own() {
        let line = |ticket, served| Line { ticket, served };
        let places = [(1, 0), (2, 0), (9, 3), (3, 9)].map(|(ticket, served)| line(Some(ticket), served).ahead());
        assert_eq!(places, [0, 1, 5, 0].map(Some));
        assert_eq!([line(Some(9), 3), line(Some(3), 9)].map(Line::served_then), [Some(9); 2], "it never falls");
        assert_eq!((line(None, 3).ahead(), line(None, 3).served_then()), (None, None));
    }
}
