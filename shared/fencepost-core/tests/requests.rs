//! Every kind of request of every kind of table, as text, with names and values in place of their placeholders.
//! Repeated lines of the same kind of row are left out.
//!
//! A change of a condition changes `requests.txt`, which a reviewer reads: `FENCEPOST_RECORD_REQUESTS=1 cargo test -p
//! fencepost-core --test requests` writes it again. Whether an engine applies these requests as meant is shown by the
//! tests of the crate `fencepost`.

use fencepost_core::Bounds;
use fencepost_core::condition::{
    self, BETWEEN, Commit, ConditionalWrite, Demand, EQUAL_TO, LeaseTimes, Operation, SortBound, key_condition,
};
use fencepost_core::condition::{Comparison, Condition, Demanded};
use fencepost_core::edit::{RawEdit, Resolve};
use fencepost_core::format::layout::{Deletes, Layout, OtherWriters, Regions, Settings};
use fencepost_core::format::row::{Row, bytes, first_attributes, number, tombstone};
use fencepost_core::plan::Write;
use fencepost_core::{AttributeValue, Attributes, Base, Diff, Names, SentWrite, WriteId};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const NOW: SystemTime = UNIX_EPOCH;
const RETENTION: Duration = Duration::from_secs(1_000);

/// Rows remember so few writes that each write removes an id.
const fn table(settings: Settings) -> Layout {
    let settings = Settings { remembered: 2, window: 2, ..settings };
    Layout { attributes: &["end", "note", "seal", "stock"], settings, ..Layout::of_key("id") }
}

const TABLES: [(&str, Layout); 5] = [
    ("own", Layout { expires_at: Some("end"), ..table(Settings::own()) }),
    ("kept", table(Settings::of(OtherWriters::Versioned, Deletes::Keep, Regions::One))),
    ("swept, renamed", table(Settings { names: RENAMED, first_version: 4, ..SWEPT_BESIDE_OTHERS })),
    ("removed", table(Settings::of(OtherWriters::Versioned, Deletes::Remove, Regions::One))),
    ("open", table(Settings::of(OtherWriters::Any, Deletes::Remove, Regions::One))),
];
const SWEPT_BESIDE_OTHERS: Settings = Settings::of(OtherWriters::Versioned, Deletes::Sweep, Regions::One);
const RENAMED: Names = Names::DEFAULT
    .version("v")
    .incarnation("i")
    .writes("w")
    .purge_at("p")
    .buried("b")
    .fence("f")
    .given("g")
    .served("s");

fn id(byte: u8) -> WriteId {
    WriteId::from_bytes([byte; 8])
}

fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

fn item(parts: &[(&str, AttributeValue)]) -> Attributes {
    parts.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

fn shown(value: &AttributeValue) -> String {
    let all = |members: Vec<String>| members.join(", ");
    match value {
        AttributeValue::S(text) => format!("{text:?}"),
        AttributeValue::N(number) => number.clone(),
        AttributeValue::B(bytes) => bytes.iter().fold("x".to_owned(), |text, byte| format!("{text}{byte:02x}")),
        AttributeValue::L(members) => format!("[{}]", all(members.iter().map(shown).collect())),
        AttributeValue::M(members) => format!("{{{}}}", all(members_of(members))),
        other => format!("{other:?}"),
    }
}

fn members_of(members: &Attributes) -> Vec<String> {
    let members: BTreeMap<_, _> = members.iter().collect();
    members.into_iter().map(|(name, value)| format!("{name}: {}", shown(value))).collect()
}

/// The text with each placeholder replaced. Panics if one is unused or undeclared, which `DynamoDB` refuses.
fn filled(texts: &[&str], names: &HashMap<String, String>, values: &Attributes) -> Vec<String> {
    let mut placeholders: Vec<(String, String)> = names.iter().map(|(key, name)| (key.clone(), name.clone())).collect();
    placeholders.extend(values.iter().map(|(key, value)| (key.clone(), shown(value))));
    placeholders.sort_by_key(|(placeholder, _)| std::cmp::Reverse((placeholder.len(), placeholder.clone())));
    for (placeholder, _) in &placeholders {
        assert!(texts.iter().any(|text| text.contains(placeholder)), "{placeholder} is not used in {texts:?}");
    }
    let filled = |text: &&str| {
        let all = placeholders.iter().fold((*text).to_owned(), |text, (placeholder, said)| {
            text.replace(placeholder, &said.replace(['#', ':'], "\u{1}"))
        });
        assert!(!all.contains([':', '#']), "{all} has a placeholder without a value");
        all.replace('\u{1}', ":")
    };
    texts.iter().map(filled).collect()
}

fn line(write: &ConditionalWrite) -> String {
    let ConditionalWrite { action, condition, names, values, returning } = write;
    let (what, update) = match action {
        Operation::Put { item } => (format!("put {{{}}}", members_of(item).join(", ")), ""),
        Operation::Update { expression, .. } => ("update".to_owned(), expression.as_str()),
        Operation::Delete { .. } => ("delete".to_owned(), ""),
        Operation::Check { .. } => ("check".to_owned(), ""),
    };
    if let Operation::Update { key, .. } | Operation::Delete { key } | Operation::Check { key } = action {
        assert_eq!(key.len(), 1, "{key:?}");
    }
    let texts = filled(&[update, condition], names, values);
    let returning = returning.map_or_else(String::new, |returned| format!(" -> {returned:?}"));
    format!("{what} {} if {}{returning}", texts[0], texts[1]).replace("  ", " ")
}

/// The lines of a page, each under the name of its case.
#[derive(Default)]
struct Page(String);

impl Page {
    fn add(&mut self, case: &str, write: Option<&ConditionalWrite>) {
        let said = write.map_or_else(|| "none".to_owned(), line);
        let _ = writeln!(self.0, "{case}: {said}");
    }

    fn prepared(&mut self, case: &str, layout: &'static Layout, write: Write<'_>, commit: Commit<'_>) {
        let row = write.row();
        match write.prepare(layout, &key(), commit, NOW, RETENTION) {
            Ok(prepared) => {
                let sent = &prepared.sent;
                let on = match sent.on {
                    Base::NoRow(first) => format!("no row, makes {first}"),
                    Base::Row { version, window, .. } => format!("{version}, window {window}"),
                };
                assert_eq!(row.is_none(), matches!(sent.on, Base::NoRow(_)));
                let facts = [
                    (prepared.is_named_by_client, ", named by a client"),
                    (sent.rules.rows_may_vanish, ", rows may vanish"),
                    (sent.rules.versions_may_repeat, ", versions may repeat"),
                ];
                let facts: String = facts.iter().filter(|(is, _)| *is).map(|(_, fact)| *fact).collect();
                self.add(&format!("{case} (on {on}{facts})"), Some(&prepared.request));
            }
            Err(unwritable) => {
                let _ = writeln!(self.0, "{case}: refused: {unwritable}");
            }
        }
    }
}

fn key() -> Attributes {
    item(&[("id", text("k"))])
}

/// The rows of a table that a write may meet.
fn rows(layout: &'static Layout, is_marked: bool) -> Vec<(&'static str, Attributes)> {
    let value = [("note", text("old")), ("stock", number(7))];
    let with = |mut row: Attributes, more: &[(&str, AttributeValue)]| {
        row.extend(key());
        row.extend(item(more));
        row
    };
    let mut live = with(first_attributes(layout, id(1)), &value);
    live.insert(layout.names.version.to_owned(), number(40));
    let old = [(id(2).name(), number(9)), (id(3).name(), number(39))];
    live.insert(layout.names.writes.to_owned(), AttributeValue::M(old.into()));
    let mut marked = live.clone();
    marked.insert(layout.names.buried.to_owned(), number(30));
    let mut rows = vec![
        ("live", live),
        ("tombstone", with(tombstone(layout, &key(), id(1), UNIX_EPOCH + RETENTION), &[])),
        ("foreign", with(Attributes::new(), &value)),
    ];
    if is_marked {
        rows.push(("marked earlier", marked));
        rows.push(("foreign with a version", with(item(&[(layout.names.version, number(5))]), &value)));
    }
    rows
}

/// An edit with every clause, and for the first table others.
fn edits(is_first: bool) -> Vec<(&'static str, RawEdit)> {
    let at = |path: &[&str], demanded| Condition::At(path.iter().map(|name| (*name).to_owned()).collect(), demanded);
    let compared = |path: &[&str], comparison, value| at(path, Demanded::Compared(comparison, value));
    let bands = [(0..=5, text("few")), (6..=99, text("many"))];
    let either = vec![at(&["note", "c"], Demanded::Missing), compared(&["note", "c"], Comparison::AtMost, text("d"))];
    let all = add("stock", -2, 0..=99)
        .and_set(["note", "a"], text("b"))
        .and_remove("end")
        .stamp("seal", number(1))
        .only_if(compared(&["stock"], Comparison::Equal, number(7)))
        .only_if(Condition::Any(either))
        .only_if(at(&["stock"], Demanded::There))
        .only_if(Condition::Not(Box::new(at(&["note", "e"], Demanded::There))));
    let mut edits = vec![("every clause", all)];
    if is_first {
        let set = RawEdit::default().and_set("note", AttributeValue::L(vec![text("x")])).and_remove("end");
        let higher = [Comparison::Less, Comparison::AtLeast].map(|side| compared(&["stock"], side, number(9)));
        edits.extend([
            ("bands", add("stock", -2, 0..=99).bands("note", "stock", bands)),
            ("set a list", set.only_if_changed()),
            ("raise", RawEdit::default().and_choose("stock", number(9), higher)),
            ("append", RawEdit::default().and_append("note", vec![number(1)])),
        ]);
    }
    edits
}

fn add(path: &str, by: i32, bounds: impl Into<Bounds>) -> RawEdit {
    RawEdit::default().and_add(path, by, bounds, None)
}

fn writes_of(page: &mut Page, layout: &'static Layout, seen: &Row, commit: Commit<'_>, is_first: bool) {
    let value = || item(&[("note", text("new")), ("stock", number(8))]);
    let diff = Diff::between(&item(&[("note", text("old")), ("stock", number(7))]), item(&[("note", text("new"))]));
    if seen.is_tombstone {
        page.prepared("revive", layout, Write::Revive(seen, value()), commit);
    }
    page.prepared("update", layout, Write::Update(seen, diff), commit);
    page.prepared("delete", layout, Write::Delete(seen.at, Some(seen)), commit);
    for (name, edit) in edits(is_first) {
        let clauses = edit.resolve(layout, Some(&seen.attributes)).expect("it is valid");
        page.prepared(name, layout, Write::Edit(seen.at, Some(seen), &clauses), commit);
        if is_first {
            page.prepared(&format!("{name}, exact"), layout, Write::EditAt(seen, &clauses), commit);
        }
    }
    if is_first {
        return;
    }
    let demand = Demand::of(layout, seen);
    page.add("check", condition::check_at(key(), &demand).as_ref());
    for on in [demand.base(), demand.in_window().base()] {
        let sent = SentWrite { id: id(8), on, fence: None, rules: layout.rules() };
        page.add("burn", condition::burn(key(), layout, &sent, commit.burn, Some(seen)).as_ref());
        page.add("burn unseen", condition::burn(key(), layout, &sent, &[], None).as_ref());
    }
    page.add("restamp", condition::restamp_at(layout, key(), seen, id(9).as_incarnation()).as_ref());
    page.add("adopt", condition::adopt_at(layout, key(), seen, &commit).as_ref());
    page.add("sweep", condition::sweep_at(layout, key(), seen, 50).as_ref());
}

fn page() -> String {
    let mut page = Page::default();
    let plain = Commit { id: id(8), prune: &[], burn: &[], fence: None };
    let full = Commit { burn: &[id(6), id(7)], fence: Some(12), ..plain };
    for (place, (name, layout)) in TABLES.into_iter().enumerate() {
        let (is_first, layout): (bool, &'static Layout) = (place == 0, Box::leak(Box::new(layout.checked())));
        let _ = writeln!(page.0, "\n# {name}: keys without a row\n");
        let made = item(&[("note", text("new")), ("end", number(1_000_000))]);
        page.prepared("create", layout, Write::Create(made), full);
        page.add("check", Some(&condition::check_absent(layout, key())));
        let grave = tombstone(layout, &key(), id(8), UNIX_EPOCH + RETENTION);
        page.add("burn of a create", Some(&condition::put_if_absent(layout, grave)));
        for (kind, attributes) in rows(layout, layout.first_version > 1) {
            let _ = writeln!(page.0, "\n# {name}: {kind}\n");
            match Row::read(layout, attributes) {
                Ok(row) => {
                    if is_first && kind == "live" {
                        writes_of(&mut page, layout, &row, plain, true);
                    }
                    writes_of(&mut page, layout, &row, full, false);
                    page.prepared("delete at a version", layout, Write::Delete(row.at, None), plain);
                    let edit = add("stock", 1, ..).resolve(layout, None).expect("it is valid");
                    page.prepared("add at a version", layout, Write::Edit(row.at, None, &edit), plain);
                    page.add("add anywhere", condition::edit_anywhere(key(), layout, &edit).as_ref());
                    page.add("ticket", Some(&condition::take_ticket(key(), &layout.names, row.at.incarnation)));
                }
                Err(unwritable) => {
                    let _ = writeln!(page.0, "not read: {unwritable}");
                }
            }
        }
    }
    beside_tables(&mut page);
    without_repeats(&page.0)
}

/// The page without repeated lines of the same kind of row.
fn without_repeats(page: &str) -> String {
    let mut left = "Repeated lines of the same kind of row are left out.\n".to_owned();
    let (mut kind, mut known) = ("", BTreeSet::new());
    for line in page.lines() {
        if let Some((_, of)) = line.strip_prefix("# ").and_then(|heading| heading.split_once(": ")) {
            kind = of;
        }
        if line.is_empty() || known.insert((kind, line)) {
            let _ = writeln!(left, "{line}");
        }
    }
    left
}

/// Leases, the newest instance, and queries.
fn beside_tables(page: &mut Page) {
    let lease = || condition::lease_key(condition::LEASE_KEY, "l");
    page.0.push_str("\n# leases, newest, queries\n\n");
    let times = LeaseTimes { expires_at: 500, cutoff: 400, floor: 300 };
    for (case, once) in [("acquire", false), ("acquire once", true)] {
        page.add(case, Some(&condition::acquire(lease(), "me", (&[1, 2], once), times, 9)));
    }
    page.add("renew", Some(&condition::renew(lease(), 7, 3, 600, 9)));
    page.add("release", Some(&condition::release(lease(), 7, None, 9)));
    page.add("release at", Some(&condition::release(lease(), 7, Some(3), 9)));
    page.add("require", Some(&condition::check_held(lease(), 7)));
    let by = ["host", "createdAt", "cell"];
    let instance = |name: Option<&str>| {
        let mut instance = item(&[("host", text("h")), ("createdAt", number(5))]);
        instance.extend(name.map(|name| ("cell".to_owned(), text(name))));
        instance
    };
    page.add("register", Some(&condition::put_if_newer(by, instance(Some("c")))));
    page.add("bury", Some(&condition::put_unless_newer(by, instance(Some("c")))));
    page.add("bury any", Some(&condition::put_unless_newer(by, instance(None))));
    let between = SortBound { condition: BETWEEN, value: number(1), end: Some(number(9)) };
    let equal = SortBound { condition: EQUAL_TO, value: bytes(&[7]), end: None };
    let one = vec![("id", text("k"))];
    let two = vec![("tenant", text("t")), ("region", text("r"))];
    for (case, partition, sort) in [
        ("query", one.clone(), vec![]),
        ("between", one.clone(), vec![("at", between.clone())]),
        ("equal", one, vec![("at", equal.clone())]),
        ("several", two, vec![("at", equal), ("on", between)]),
    ] {
        let (condition, names, values) = key_condition(&partition, &sort);
        let _ = writeln!(page.0, "{case}: {}", filled(&[&condition], &names, &values)[0]);
    }
}

#[test]
fn every_request_is_the_recorded_one() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/requests.txt");
    let today = page();
    if std::env::var_os("FENCEPOST_RECORD_REQUESTS").is_some() {
        std::fs::write(&file, &today).expect("the file can be written");
    }
    let recorded = std::fs::read_to_string(&file).expect("the recorded requests");
    let difference = recorded.lines().zip(today.lines()).find(|(before, after)| before != after);
    assert_eq!(difference, None, "read the changed requests, then record them: FENCEPOST_RECORD_REQUESTS=1");
    assert_eq!(recorded.len(), today.len());
}
