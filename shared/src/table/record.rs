//! [`Record`]: a value as an item, and back.

use crate::error::Source;
use crate::protocol::item::Attributes;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A type whose values are kept in a table, one item each.
///
/// The key is not part of the value. `ATTRIBUTES` is what lets a delete at a known version be one
/// request: nothing has to be read to know what to remove.
///
/// ```
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Account {
///     balance: i64,
///     #[serde(skip_serializing_if = "Option::is_none")]
///     note: Option<String>,
/// }
///
/// impl fencepost::Record for Account {
///     const PARTITION_KEY: &'static str = "accountId";
///     const ATTRIBUTES: &'static [&'static str] = &["balance", "note"];
/// }
/// ```
pub trait Record: Serialize + DeserializeOwned {
    /// The name of the partition key's attribute.
    const PARTITION_KEY: &'static str;
    /// The name of the sort key's attribute, where the table has one.
    const SORT_KEY: Option<&'static str> = None;
    /// Every top-level attribute that a value may have. Others in the same item are never touched.
    const ATTRIBUTES: &'static [&'static str];
    /// The attribute with the time, in epoch seconds, after which TTL may remove the row, if values have one. It is then
    /// the table's TTL attribute, in place of `_purgeAt`, and tombstones carry it too.
    const EXPIRES_AT: Option<&'static str> = None;

    /// The value as attributes.
    ///
    /// # Errors
    /// What made it impossible.
    fn encode(&self) -> Result<Attributes, Source> {
        Ok(serde_dynamo::to_item(self)?)
    }

    /// The value that these attributes hold; those that are not in `ATTRIBUTES` are left out before.
    ///
    /// # Errors
    /// What made it impossible.
    fn decode(attributes: Attributes) -> Result<Self, Source> {
        Ok(serde_dynamo::from_item(attributes)?)
    }
}
