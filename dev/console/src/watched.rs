//! [`WatchedTable`]: what the console knows of a table before it looks.

/// A table to look at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WatchedTable {
    /// Its name.
    pub name: String,
    /// The attributes of its key, the partition key first.
    pub key: Vec<String>,
    /// The functions that write to it.
    pub writers: Vec<String>,
}
