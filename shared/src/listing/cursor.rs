//! [`Cursor`]: where a listing goes on.

use crate::driver::send::PageRequest;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fencepost_core::AttributeValue;
use fencepost_core::condition::key_condition;
use fencepost_core::format::item::Attributes;
use sha2::{Digest, Sha256};
use std::fmt;

const DIGEST: usize = 12;
/// The longest cursor accepted. Keys take at most 3 KB each.
const MAX_TEXT: usize = 16 * 1024;

/// Where the next page of a query begins: after the last item of this page.
///
/// It is text of letters, digits, `-` and `_`, and opaque: its form may change between releases. It stays valid while
/// items are created, changed and deleted, because it names a place in the order and no item.
///
/// A cursor belongs to one query: its table, index, partition, direction and bound of the sort key, or the segment of a
/// scan. Another query refuses it. It is not signed and need not be. That of a query holds no partition, because the
/// partition is always the one of the query. So a made-up cursor can only begin elsewhere in what the caller may list
/// anyway. The key of the last row is readable in it: its encoding is no protection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cursor(String);

impl Cursor {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Cursor> for String {
    fn from(cursor: Cursor) -> Self {
        cursor.0
    }
}

/// Why a query was refused: the cursor is not one of this query. It is damaged, made up, or from another table, index,
/// partition, order or bound of the sort key. Begin again without a cursor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidCursor;

impl fmt::Display for InvalidCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing was read: the cursor does not belong to this query; begin again without a cursor")
    }
}

impl PageRequest {
    /// The cursor that begins after the row with these key attributes. `names` are the names in the key beside the
    /// partition key of a query. `None` if one is missing.
    pub(crate) fn cursor_after(&self, names: &[&str], last: &Attributes) -> Option<Cursor> {
        let mut key = Vec::new();
        for name in names {
            write(&mut key, last.get(*name)?);
        }
        Some(Cursor(self.sealed(&key)))
    }

    /// The attributes with these names in the cursor. `None` if it is not one of this query.
    pub(crate) fn key_in(&self, names: &[&str], cursor: &str) -> Option<Attributes> {
        let text = Some(cursor).filter(|text| text.len() <= MAX_TEXT)?;
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (digest, mut key) = bytes.split_at_checked(DIGEST)?;
        if digest != self.digest(key) {
            return None;
        }
        let attributes = names.iter().map(|name| Some(((*name).to_owned(), read(&mut key)?)));
        let attributes = attributes.collect::<Option<Attributes>>()?;
        key.is_empty().then_some(attributes)
    }

    /// The text of a cursor with these bytes for a key: they follow the matching digest.
    pub(crate) fn sealed(&self, key: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode([self.digest(key).as_slice(), key].concat())
    }

    fn digest(&self, key: &[u8]) -> [u8; DIGEST] {
        let direction: &[u8] = if self.is_descending { b"descending" } else { b"ascending" };
        let mut values = Vec::new();
        self.partition.iter().for_each(|(_, value)| write(&mut values, value));
        for (_, bound) in &self.sort {
            [&bound.value].into_iter().chain(&bound.end).for_each(|value| write(&mut values, value));
        }
        let condition = match (self.partition.is_empty(), self.segment) {
            (false, _) => key_condition(&self.partition, &self.sort).0,
            (true, None) => "scan".to_owned(),
            (true, Some((part, parts))) => format!("scan {part} of {parts}"),
        };
        let index = self.index.as_deref().unwrap_or_default();
        let mut hash = Sha256::new();
        for part in
            [b"cursor 1", self.table.as_bytes(), index.as_bytes(), direction, condition.as_bytes(), &values, key]
        {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let hash: [u8; 32] = hash.finalize().into();
        let mut digest = [0; DIGEST];
        digest.copy_from_slice(&hash[..DIGEST]);
        digest
    }
}

/// Writes the value of a key attribute: its kind, its length and its bytes. A key takes at most 2 KB.
fn write(bytes: &mut Vec<u8>, value: &AttributeValue) {
    let (kind, value) = match value {
        AttributeValue::S(text) => (b'S', text.as_bytes()),
        AttributeValue::N(number) => (b'N', number.as_bytes()),
        AttributeValue::B(blob) => (b'B', blob.as_ref()),
        // No key has another kind. So no cursor with it can be read.
        _ => (b'-', &[][..]),
    };
    bytes.push(kind);
    bytes.extend(u32::try_from(value.len()).unwrap_or(u32::MAX).to_be_bytes());
    bytes.extend(value);
}

fn read(bytes: &mut &[u8]) -> Option<AttributeValue> {
    let (kind, rest) = bytes.split_first()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (value, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    *bytes = rest;
    let text = || String::from_utf8(value.to_vec()).ok();
    match kind {
        b'S' => text().map(AttributeValue::S),
        b'N' => text().map(AttributeValue::N),
        b'B' => Some(AttributeValue::B(value.to_vec())),
        _ => None,
    }
}
