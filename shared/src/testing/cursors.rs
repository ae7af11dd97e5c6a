//! Cursors of listings.

use crate::driver::send::PageRequest;
use fencepost_core::AttributeValue;
use fencepost_core::condition::{BETWEEN, SortBound};
use fencepost_core::format::item::Attributes;

/// The query that a cursor belongs to.
#[derive(Clone, PartialEq, Debug)]
pub struct Listing {
    /// The table.
    pub table: String,
    /// The index, if it is one.
    pub index: Option<String>,
    /// Whether it goes from the highest sort key to the lowest.
    pub is_descending: bool,
    /// The value of the partition key.
    pub partition: AttributeValue,
    /// The values between which the sort key lies, if it is bounded.
    pub between: Option<(AttributeValue, AttributeValue)>,
    /// The attributes of the key beside the partition key.
    pub names: Vec<String>,
}

impl Listing {
    /// The cursor after the row with these attributes. `None` if one of the key is missing.
    #[must_use]
    pub fn cursor(&self, last: &Attributes) -> Option<String> {
        self.with(|query, names| query.cursor_after(names, last).map(String::from))
    }

    /// The key in a cursor. `None` if it is not one of this listing.
    #[must_use]
    pub fn read(&self, cursor: &str) -> Option<Attributes> {
        self.with(|query, names| query.key_in(names, cursor))
    }

    fn with<R>(&self, use_query: impl FnOnce(&PageRequest, &[&str]) -> R) -> R {
        let bound = self.between.clone().map(|(value, to)| SortBound { condition: BETWEEN, value, end: Some(to) });
        let query = PageRequest {
            table: self.table.clone(),
            index: self.index.clone(),
            partition: vec![("partition", self.partition.clone())],
            sort: bound.map(|bound| ("sort", bound)).into_iter().collect(),
            is_descending: self.is_descending,
            ..PageRequest::default()
        };
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        use_query(&query, &names)
    }
}

/// A cursor with these bytes for a key and a matching digest, as an attacker may make it.
#[must_use]
pub fn forged_cursor(listing: &Listing, key: &[u8]) -> String {
    listing.with(|query, _| query.sealed(key))
}
