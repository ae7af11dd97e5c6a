use super::*;
use fencepost_core::AttributeValue as Value;
use std::collections::HashMap;

const NAMES: Names = Names::DEFAULT;
const SWEPT: Settings = Settings::without_ttl().swept();

fn now() -> Timestamp {
    "2026-03-07T10:00:00.000Z".parse().expect("a moment")
}

fn text(text: &str) -> Value {
    Value::S(text.to_owned())
}

#[expect(clippy::needless_pass_by_value, reason = "a number is copied")]
fn number(number: impl ToString) -> Value {
    Value::N(number.to_string())
}

fn id(byte: u8) -> String {
    URL_SAFE_NO_PAD.encode([byte; 8])
}

fn map(entries: &[(String, Value)]) -> Value {
    Value::M(entries.iter().cloned().collect())
}

/// A live row at version 7 that remembers the writes that made 6 and 7.
fn live() -> Attributes {
    HashMap::from([
        ("accountId".to_owned(), text("a-1")),
        ("_version".to_owned(), number(7)),
        ("_incarnation".to_owned(), Value::B(vec![1; 8])),
        ("_writes".to_owned(), map(&[(id(2), number(5)), (id(3), number(6))])),
    ])
}

fn live_but(changes: &[(&str, Option<Value>)]) -> Attributes {
    let mut row = live();
    for (name, value) in changes {
        match value {
            Some(value) => row.insert((*name).to_owned(), value.clone()),
            None => row.remove(*name),
        };
    }
    row
}

fn told(row: &Attributes) -> Explanation {
    explain(row, Settings::own(), now())
}

#[track_caller]
fn says(row: &Attributes, kind: Kind, part: &str) {
    let told = told(row);
    assert!(told.kind == kind && told.to_string().contains(part), "{part}: {kind:?}\n{told:?}");
}

#[test]
fn a_live_row_tells_its_state_and_its_last_writes() {
    let told = told(&live());
    let expected = "A live item at version 7.\n\
                    Its ETag is \"7.AQEBAQEBAQE\".\n\
                    It remembers 2 writes.\n\
                    The write AwMDAwMDAwM made version 7.\n\
                    The write AgICAgICAgI made version 6.\n";
    assert_eq!((told.kind, told.to_string().as_str()), (Kind::Live, expected));
    assert_eq!((told.version, told.incarnation.as_deref()), (Some(7), Some("AQEBAQEBAQE")));
    says(&live_but(&[("_fence", Some(number(12)))]), Kind::Live, "refuses writes under a fencing token below 12");
    let burned = map(&[(id(2), number(-6))]);
    says(&live_but(&[("_writes", Some(burned))]), Kind::Live, "AgICAgICAgI was burned at version 6: no copy");
    says(
        &live_but(&[("_version", Some(number(8)))]),
        Kind::Live,
        "Version 8 came without an id: an add in a transaction made it, or another program",
    );
    says(&live_but(&[("_version", Some(number(9)))]), Kind::Live, "Versions 8 to 9 came without ids");
}

#[test]
fn a_row_tells_what_is_held_in_it_and_which_attempt_placed_it() {
    let hold = |quantity: u64, order: &str| Value::L(vec![number(quantity), text(order)]);
    let held = map(&[(id(2), hold(3, "o-1")), (id(3), hold(1, "o-2"))]);
    says(
        &live_but(&[("_holds", Some(held))]),
        Kind::Live,
        "AgICAgICAgI holds 3 for the row whose key is the text \"o-1\"",
    );
    let many = (0..9).map(|byte| (id(byte), hold(1, "o-1"))).collect::<Vec<_>>();
    says(&live_but(&[("_holds", Some(map(&many)))]), Kind::Live, "It has 9 holds in all");
    says(&live_but(&[("_holds", Some(map(&[])))]), Kind::Live, "A live item at version 7");
    says(&live_but(&[("_placedBy", Some(Value::B(vec![2; 8])))]), Kind::Live, "The attempt AgICAgICAgI placed it");
    let malformed = told(&live_but(&[("_holds", Some(map(&[("x".to_owned(), number(1))])))]));
    assert_eq!(malformed.problems, ["_holds is malformed, so this crate did not write it."]);
}

#[test]
fn a_tombstone_tells_until_when() {
    let buried = |version: u64, purge_at: Option<u64>| {
        live_but(&[("_buried", Some(number(version))), ("_purgeAt", purge_at.map(number))])
    };
    let in_three_days = 1_772_877_600 + 3 * 86_400;
    let told = told(&buried(7, Some(in_three_days)));
    assert_eq!((told.kind, told.purge_at), (Kind::Tombstone, Some(in_three_days)));
    assert!(told.to_string().starts_with(
        "A tombstone: a delete made version 7.\n\
         TTL or a sweep may remove it at 2026-03-10T10:00:00.000Z, in 3 days.\n\
         A create goes on from its version.\n"
    ));
    says(&buried(7, Some(1_772_877_600)), Kind::Tombstone, "Its time has passed, so TTL or a sweep may remove it");
    says(&buried(7, None), Kind::Tombstone, "It has no time, so nothing removes it");
    says(&buried(5, None), Kind::Live, "A delete made version 5, and another program wrote to the row after that");
    let of_an_older_build = live_but(&[("_purgeAt", Some(number(in_three_days)))]);
    says(&of_an_older_build, Kind::Tombstone, "a delete made version 7");
}

#[test]
fn a_row_of_another_program_tells_what_the_first_change_makes() {
    let settings = SWEPT.names(NAMES.version("version"));
    let row = |version: Option<Value>| {
        let mut row = HashMap::from([("accountId".to_owned(), text("a-1"))]);
        row.extend(version.map(|version| ("version".to_owned(), version)));
        explain(&row, settings, now())
    };
    let expected = "Another program wrote this row. Its version `version` is 7.\n\
                    The first change adopts it and makes version 8.\n";
    assert_eq!((row(Some(number(7))).to_string().as_str(), row(Some(number(7))).kind), (expected, Kind::Foreign));
    assert_eq!(row(Some(number(0))).kind, Kind::Foreign);
    assert_eq!(row(None).kind, Kind::Foreign);
    assert!(row(None).to_string().contains("It has no version `version`"));
    for absurd in [text("7"), number("1.5"), number(-1), number(1u64 << 60), number("1e40"), Value::Null(true)] {
        let told = row(Some(absurd.clone()));
        assert_eq!((told.kind, told.problems.len()), (Kind::Damaged, 1), "{absurd:?} {told}");
    }
}

#[test]
fn each_damage_has_a_sentence() {
    let write = |name: &str, value: Value| map(&[(name.to_owned(), value)]);
    for (name, value, part) in [
        ("_version", None, "`_version` is missing, though the row has an incarnation"),
        ("_version", Some(text("seven")), "`_version` is the text \"seven\", and must be a whole number from 1"),
        ("_version", Some(number(0)), "`_version` is the number 0"),
        ("_version", Some(number(-3)), "`_version` is the number -3"),
        ("_version", Some(number("7.5")), "`_version` is the number 7.5"),
        ("_version", Some(number(1u64 << 60)), "`_version` is the number 1152921504606846976"),
        ("_incarnation", Some(text("x")), "`_incarnation` is the text \"x\", and must be 8 bytes"),
        ("_incarnation", Some(Value::B(vec![1; 7])), "`_incarnation` is 7 bytes, and must be 8 bytes"),
        ("_writes", None, "`_writes` is missing, though the row has an incarnation"),
        ("_writes", Some(Value::L(vec![])), "`_writes` is a list of 0, and must be a map of write ids"),
        ("_writes", Some(write("short", number(1))), "`_writes` has the id \"short\", which is none of this crate"),
        ("_writes", Some(write(&id(2), text("5"))), "`_writes` has the text \"5\" for the write AgICAgICAgI"),
        ("_purgeAt", Some(text("soon")), "`_purgeAt` is the text \"soon\""),
        ("_fence", Some(text("x")), "`_fence` is the text \"x\""),
    ] {
        says(&live_but(&[(name, value)]), Kind::Damaged, part);
    }
}

#[test]
fn what_is_odd_and_harmless_is_told_without_calling_the_row_damaged() {
    let ids = |count: u8| map(&(0..count).map(|byte| (id(byte), number(1))).collect::<Vec<_>>());
    says(&live_but(&[("_writes", Some(ids(200)))]), Kind::Live, "200 ids, and rows rarely have more than 161");
    let ahead = map(&[(id(2), number(7))]);
    says(&live_but(&[("_writes", Some(ahead))]), Kind::Live, "made version 8, and the row is only at version 7");
    let memory_alone = live_but(&[("_incarnation", None)]);
    says(&memory_alone, Kind::Damaged, "a memory `_writes` and no incarnation: another program dropped that");
}

#[test]
fn leases_and_mappings_are_known_and_their_damage_is_told() {
    let lease = |changes: &[(&str, Option<Value>)]| {
        let mut row: Attributes = [
            ("leaseKey", text("k")),
            ("holder", text("ann")),
            ("token", number(12)),
            ("renewals", number(1)),
            ("expiresAt", number(1_772_877_590_000u64)),
            ("acquireId", Value::B(vec![1; 8])),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        for (name, value) in changes {
            row.remove(*name);
            row.extend(value.clone().map(|value| ((*name).to_owned(), value)));
        }
        row
    };
    says(&lease(&[]), Kind::Lease, "A lease of \"ann\" under token 12.\nBy the clock of its holder, it ends at");
    says(&lease(&[]), Kind::Lease, "10 seconds ago.\nIt was renewed 1 time.");
    says(&lease(&[("holder", None)]), Kind::Lease, "nobody holds. Its last acquire had token 12");
    says(&lease(&[("token", Some(text("x")))]), Kind::Damaged, "`token` is the text \"x\"");
    says(&lease(&[("acquireId", None)]), Kind::Damaged, "`acquireId` is missing, and every lease has it");
    says(&lease(&[("holder", Some(number(1)))]), Kind::Damaged, "`holder` is the number 1, and must be a text");

    let mapping = |created: Value, purge_at: Option<Value>| -> Attributes {
        let mut row =
            HashMap::from([("hostIp".to_owned(), text("10.0.0.1")), ("creationTimestamp".to_owned(), created)]);
        row.extend(purge_at.map(|purge_at| ("_purgeAt".to_owned(), purge_at)));
        row
    };
    let created = number(1_772_877_590_000u64);
    says(
        &mapping(created.clone(), None),
        Kind::Mapping,
        "A mapping: the newest instance wins, so the row has no version",
    );
    says(&mapping(created, Some(number(1_772_877_600))), Kind::Mapping, "The tombstone of a mapping");
    says(&mapping(text("x"), None), Kind::Damaged, "`creationTimestamp` is the text \"x\"");
}

#[test]
fn a_sentence_stays_short_and_on_one_line_whatever_the_row_has() {
    let long = "ä\n".repeat(10_000);
    let row = live_but(&[("_version", Some(text(&long))), ("_writes", Some(map(&[(long, number(1))])))]);
    for sentence in told(&row).to_string().lines() {
        assert!(sentence.len() < 250 && sentence.ends_with('.'), "{sentence}");
    }
}
