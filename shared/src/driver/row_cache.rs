//! [`RowCache`]: the rows that a client saw last. A warm change starts from them and needs no read.

use fencepost_core::AttributeValue;
use fencepost_core::format::item::{Attributes, size_of_attributes};
use fencepost_core::format::row::Row;
use fencepost_core::{ItemVersion, Memory, Trace, WriteId};
use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::time::Instant;

/// The most rows of one generation. Both generations together hold at most twice as many.
const GENERATION: usize = 5 * 100;
/// The most heap of one generation, in bytes, by the estimate of [`heap_of_row`]. Both together take at most 16 MB.
const GENERATION_HEAP: usize = 8 * 1024 * 1024;
/// The most attempts of which a row knows that they have placed their rows.
const MOST_PLACED: usize = 32;
/// The largest item kept, in bytes of `DynamoDB`. Many small values may take 60 times as much heap.
pub(crate) const LARGEST_ITEM: usize = 16 * 1024;

/// The rows last seen by a client: at most 1,000, in at most 16 MB. Those seen least recently go first.
///
/// These rows may be out of date. So a write based on one demands the version or the window. No answer rests on one
/// alone.
#[derive(Debug)]
pub(crate) struct RowCache {
    generations: Mutex<[Generation; 2]>,
    /// The moment from which the times of sights are counted.
    began: Instant,
}

type Generation = HashMap<String, LastSeen>;

#[derive(Debug)]
struct LastSeen {
    /// The row. It has no attributes if they were not kept.
    row: Arc<Row>,
    /// The place held by each add of this client that has found its window passed and is still at it.
    crowd: Weak<()>,
    /// Attempts of this client that have placed their rows, and whose holds may still be in this one.
    placed: Vec<WriteId>,
    /// When the row was seen, and how many versions it rose in a second before, unless this client alone raised it.
    seen_at: Duration,
    pace: f64,
    heap: usize,
}

impl RowCache {
    pub(crate) fn new(began: Instant) -> Self {
        RowCache { generations: Mutex::default(), began }
    }

    /// The row last seen at this key. It has no attributes if they were not kept.
    pub(crate) fn get(&self, table: &str, key: &Attributes) -> Option<Arc<Row>> {
        let address = address(table, key);
        let mut generations = self.generations();
        let [young, old] = &mut *generations;
        if let Some(seen) = young.get(&address) {
            return Some(Arc::clone(&seen.row));
        }
        let seen = old.remove(&address)?;
        let row = Arc::clone(&seen.row);
        insert(&mut generations, address, seen);
        Some(row)
    }

    /// Remembers a row, unless a later version of it was seen already. Keeps its attributes only if `with_item`. `made` is the
    /// state that a change of this client has made, of this row or of one that was there before, with the longest window of
    /// its table.
    pub(crate) fn insert(
        &self,
        table: &str,
        key: &Attributes,
        row: &Row,
        with_item: bool,
        made: Option<(ItemVersion, u64)>,
    ) {
        let address = address(table, key);
        let mut generations = self.generations();
        let mut before = generations.iter_mut().find_map(|generation| generation.get_mut(&address));
        let crowd = before.as_ref().map(|before| before.crowd.clone()).unwrap_or_default();
        let placed = before.as_mut().map(|before| mem::take(&mut before.placed)).unwrap_or_default();
        let (seen_at, mut pace) = (self.began.elapsed(), 0.0);
        let mut memory = row.memory.clone();
        let made = made.filter(|(made, _)| made.incarnation == row.at.incarnation);
        let note =
            |memory: &mut Memory| made.into_iter().for_each(|(made, window)| memory.answered(made.version, window));
        if let Some(before) = before.filter(|before| before.row.at.incarnation == row.at.incarnation) {
            if before.row.at.version > row.at.version {
                before.placed = placed;
                note(&mut Arc::make_mut(&mut before.row).memory);
                return;
            }
            memory.answered_as(&before.row.memory);
            pace = before.pace_until(row.at.version.get(), made.is_some(), seen_at);
        }
        note(&mut memory);
        let is_kept = with_item && size_of_attributes(&row.attributes) <= LARGEST_ITEM;
        let attributes = if is_kept { row.attributes.clone() } else { Attributes::new() };
        let row = Row { attributes, memory, ..*row };
        let heap = heap_of_row(&address, &row);
        insert(&mut generations, address, LastSeen { row: Arc::new(row), crowd, placed, seen_at, pace, heap });
    }

    /// How many versions the row has probably risen since it was seen last.
    pub(crate) fn risen(&self, table: &str, key: &Attributes) -> f64 {
        let now = self.began.elapsed();
        let risen = self.with(table, key, |seen| now.saturating_sub(seen.seen_at).as_secs_f64() * seen.pace);
        risen.unwrap_or_default()
    }

    /// Notes that this attempt has placed its row. The row at this key may still have its hold.
    pub(crate) fn note_placed(&self, table: &str, key: &Attributes, attempt: WriteId) {
        let _ = self.with(table, key, |seen| {
            seen.placed.truncate(MOST_PLACED - 1);
            seen.placed.insert(0, attempt);
        });
    }

    /// The attempts of this client that have placed their rows.
    pub(crate) fn placed(&self, table: &str, key: &Attributes) -> Vec<WriteId> {
        self.with(table, key, |seen| seen.placed.clone()).unwrap_or_default()
    }

    /// Enters the crowd at this key, until the place is dropped. `None` if the row was not seen.
    pub(crate) fn enter_crowd(&self, table: &str, key: &Attributes) -> Option<Arc<()>> {
        self.with(table, key, |seen| {
            let place = seen.crowd.upgrade().unwrap_or_default();
            seen.crowd = Arc::downgrade(&place);
            place
        })
    }

    /// Does this to what was seen at this key. `None` if nothing was.
    fn with<A>(&self, table: &str, key: &Attributes, does: impl FnOnce(&mut LastSeen) -> A) -> Option<A> {
        let address = address(table, key);
        self.generations().iter_mut().find_map(|generation| generation.get_mut(&address)).map(does)
    }

    pub(crate) fn remove(&self, table: &str, key: &Attributes) {
        let address = address(table, key);
        for generation in &mut *self.generations() {
            generation.remove(&address);
        }
    }

    fn generations(&self) -> MutexGuard<'_, [Generation; 2]> {
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LastSeen {
    /// The pace at which the row rises, which has this version at this time. It is 0 if this client alone raises it. Versions are
    /// far below 2^52.
    #[expect(clippy::cast_precision_loss, reason = "only a guess rests on it")]
    fn pace_until(&self, version: u64, is_own: bool, at: Duration) -> f64 {
        let rose = version.saturating_sub(self.row.at.version.get());
        let time = at.saturating_sub(self.seen_at).as_secs_f64();
        match rose {
            0 => self.pace,
            1 if is_own => 0.0,
            _ if time <= 0.0 => self.pace,
            _ => rose as f64 / time,
        }
    }
}

fn insert([young, old]: &mut [Generation; 2], address: String, seen: LastSeen) {
    young.remove(&address);
    old.remove(&address);
    // A generation has few rows. So the sum is cheap.
    if young.len() >= GENERATION || heap_of_rows(young) + seen.heap > GENERATION_HEAP {
        *old = mem::take(young);
    }
    young.insert(address, seen);
}

fn heap_of_rows(generation: &Generation) -> usize {
    generation.values().map(|seen| seen.heap).sum()
}

/// The heap of a row beside its address, its attributes and all but a few of the ids in its memory. An estimate on the
/// high side: its entry in a map of which half may be empty, the row, its crowd, and one node of a B-tree of 11 places.
const HEAP_OF_ROW: usize = 1024;
/// The heap of an id in the memory of a row. A node of a B-tree has 11 places, of which at least 5 are taken.
const HEAP_OF_ID: usize = size_of::<[(WriteId, Trace, Option<u64>); 11]>().div_ceil(5);
const _: () = assert!(2 * size_of::<(String, LastSeen)>() + size_of::<Row>() + 6 * HEAP_OF_ID + 128 <= HEAP_OF_ROW);

fn heap_of_row(address: &str, row: &Row) -> usize {
    HEAP_OF_ROW + block(address.len()) + HEAP_OF_ID * row.memory.count() + heap_of_attributes(&row.attributes)
}

pub(crate) fn heap_of_attributes(map: &HashMap<String, AttributeValue>) -> usize {
    // A table has a power of two of places, of which it uses 7 in 8, with one byte for each and 16 more.
    let places = if map.is_empty() { 0 } else { (map.capacity() * 8).div_ceil(7).next_power_of_two().max(4) };
    let table = if places == 0 { 0 } else { block(places * (size_of::<(String, AttributeValue)>() + 1) + 16) };
    table + map.iter().map(|(name, value)| block(name.len()) + heap_of(value)).sum::<usize>()
}

fn heap_of(value: &AttributeValue) -> usize {
    let list = |size: usize, length: usize| block(size * length);
    match value {
        AttributeValue::S(text) | AttributeValue::N(text) => block(text.len()),
        AttributeValue::B(bytes) => block(bytes.len()),
        AttributeValue::L(values) => {
            list(size_of::<AttributeValue>(), values.len()) + values.iter().map(heap_of).sum::<usize>()
        }
        AttributeValue::M(map) => heap_of_attributes(map),
        AttributeValue::Ss(set) | AttributeValue::Ns(set) => {
            list(size_of::<String>(), set.len()) + set.iter().map(|text| block(text.len())).sum::<usize>()
        }
        AttributeValue::Bs(set) => {
            list(size_of::<Vec<u8>>(), set.len()) + set.iter().map(|bytes| block(bytes.len())).sum::<usize>()
        }
        _ => 0,
    }
}

/// The heap of one allocation. Allocators round up and keep a few bytes for themselves.
fn block(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { (bytes + 8).next_multiple_of(16).max(32) }
}

/// The size of a crowd by the place of one of its members, this one included.
pub(crate) fn size_of_crowd(place: &Arc<()>) -> u64 {
    Arc::strong_count(place) as u64
}

/// A table and a key as one text. The names of the key are sorted, because a map has no order.
fn address(table: &str, key: &Attributes) -> String {
    let sorted: BTreeMap<_, _> = key.iter().collect();
    format!("{table} {sorted:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_core::format::layout::Layout;
    use fencepost_core::format::row;

    #[expect(clippy::disallowed_methods, reason = "the sights of a cache begin at some moment")]
    fn empty() -> RowCache {
        RowCache::new(Instant::now())
    }

    fn key(number: usize) -> Attributes {
        Attributes::from([("id".to_owned(), AttributeValue::N(number.to_string()))])
    }

    fn row_at(version: u64, by: u64) -> Row {
        const LAYOUT: Layout = Layout::of_key("id");
        let mut attributes = row::first_attributes(&LAYOUT, WriteId::from_random(by));
        attributes.insert("_version".to_owned(), AttributeValue::N(version.to_string()));
        Row::read(&LAYOUT, attributes).expect("a row")
    }

    fn version(rows: &RowCache, number: usize) -> Option<u64> {
        rows.get("T", &key(number)).map(|seen| seen.at.version.get())
    }

    #[test]
    fn a_later_version_or_another_row_replaces_what_was_seen_and_an_earlier_version_does_not() {
        let rows = empty();
        for (seen, by, expected) in [(5, 1, 5), (7, 1, 7), (6, 1, 7), (2, 2, 2)] {
            rows.insert("T", &key(1), &row_at(seen, by), false, None);
            assert_eq!(version(&rows, 1), Some(expected));
        }
        assert!(rows.get("U", &key(1)).is_none());
        rows.remove("T", &key(1));
        assert_eq!(version(&rows, 1), None);
    }

    #[test]
    fn the_number_of_rows_is_bounded_and_those_in_use_stay() {
        let rows = empty();
        for number in 0..10 * GENERATION {
            rows.insert("T", &key(number), &row_at(1, 1), false, None);
            assert_eq!(version(&rows, 0), Some(1), "after {number}");
        }
        let kept = (0..10 * GENERATION).filter(|number| version(&rows, *number).is_some()).count();
        assert!((500..=1000).contains(&kept), "{kept}");
    }

    #[test]
    fn an_item_is_kept_on_demand_and_only_if_it_has_at_most_16_kb() {
        let rows = empty();
        let of_size = |version, bytes: usize| {
            let mut row = row_at(version, 1);
            row.attributes = [("text".to_owned(), AttributeValue::S("x".repeat(bytes - "text".len())))].into();
            row
        };
        for (row, with_item, kept) in
            [(of_size(1, 16_384), false, false), (of_size(2, 16_384), true, true), (of_size(3, 16_385), true, false)]
        {
            rows.insert("T", &key(1), &row, with_item, None);
            let seen = rows.get("T", &key(1)).expect("it was seen");
            assert_eq!(seen.attributes.is_empty(), !kept);
        }
    }

    /// An item of almost 16 KB with a heap about 60 times as large.
    fn bulky(version: u64) -> Row {
        let leaf = || AttributeValue::M([("n".to_owned(), AttributeValue::Null(true))].into());
        let mut row = row_at(version, 1);
        row.attributes = [("list".to_owned(), AttributeValue::L((0..2_330).map(|_| leaf()).collect()))].into();
        assert!((16_000..=LARGEST_ITEM).contains(&size_of_attributes(&row.attributes)));
        row
    }

    #[test]
    fn the_heap_of_all_rows_is_bounded_and_a_row_in_use_stays() {
        let rows = empty();
        rows.insert("T", &key(0), &bulky(1), true, None);
        for number in 1..200 {
            rows.insert("T", &key(number), &bulky(1), true, None);
            rows.insert("T", &key(number), &bulky(2), true, None); // what it replaces does not count any more
            assert_eq!(version(&rows, 0), Some(1), "after {number}");
            let generations = rows.generations.lock().expect("no panic");
            for generation in &*generations {
                let heap: usize = generation.iter().map(|(address, seen)| heap_of_row(address, &seen.row)).sum();
                assert_eq!(heap_of_rows(generation), heap);
                assert!(heap <= GENERATION_HEAP, "{heap}");
            }
        }
        let kept = (0..200).filter(|number| version(&rows, *number).is_some()).count();
        assert!((8..=20).contains(&kept), "{kept}");
        for number in 0..200 {
            rows.remove("T", &key(number));
        }
        let generations = rows.generations.lock().expect("no panic");
        assert!(generations.iter().all(HashMap::is_empty));
    }

    #[test]
    fn an_item_that_is_seen_again_at_the_same_version_is_kept_as_it_was_seen_last() {
        let rows = empty();
        for with_item in [false, true, false] {
            rows.insert("T", &key(1), &row_at(1, 1), with_item, None);
            assert_eq!(rows.get("T", &key(1)).map(|seen| !seen.attributes.is_empty()), Some(with_item));
        }
    }

    #[test]
    fn a_row_keeps_which_of_its_writes_were_answered_and_another_row_does_not() {
        let rows = empty();
        let made = |by, version| Some((row_at(version, by).at, 1));
        let removed = || {
            let row = rows.get("T", &key(1)).expect("it was seen");
            let seen = fencepost_core::Version::new(1000).expect("small");
            row.memory.prunable(seen, 128, WriteId::from_random(9), 0).len()
        };
        // Each of these rows remembers the write that made its first version.
        for (row, made, expected) in [
            (row_at(5, 1), None, 0),
            (row_at(6, 1), made(2, 1), 0),
            (row_at(7, 1), made(1, 3), 0),
            (row_at(4, 1), made(1, 1), 1),
            (row_at(8, 1), None, 1),
            (row_at(9, 2), made(1, 1), 0),
            (row_at(9, 2), made(2, 1), 1),
        ] {
            rows.insert("T", &key(1), &row, false, made);
            assert_eq!(removed(), expected, "{:?}", row.at);
        }
    }

    #[test]
    fn a_crowd_counts_those_that_are_still_in_it() {
        let rows = empty();
        rows.insert("T", &key(1), &row_at(1, 1), false, None);
        let enter = || rows.enter_crowd("T", &key(1)).expect("it was seen");
        let one = enter();
        rows.insert("T", &key(1), &row_at(2, 1), false, None);
        let other = enter();
        assert_eq!(size_of_crowd(&one), 2);
        rows.remove("T", &key(1));
        assert_eq!(size_of_crowd(&one), 2, "the row is forgotten, and both are still at it");
        drop(other);
        assert_eq!(size_of_crowd(&one), 1);
    }
}
