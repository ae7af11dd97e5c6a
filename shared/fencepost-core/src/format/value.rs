//! What `DynamoDB` keeps exactly. Every value of a caller goes through here before anything is sent.

use crate::format::AsKind;
use crate::format::AttributeValue::{self, B, Bool, Bs, L, M, N, Ns, Null, S, Ss};
use crate::format::Unwritable;
use crate::format::item::{Attributes, Diff};
use crate::format::number::{Digits, is_plain};
use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::mem;

/// The most levels of a value: a text in 31 lists has 32.
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html#limits-attributes>
const MAX_LEVELS: usize = 32;

/// The end of the year 9999, in epoch seconds. A later end is one in another unit, such as milliseconds.
pub const LAST_END: u64 = 253_402_300_799;

/// The form in which `serde_json` hands a number to other serializers, if any crate of the build switches on its feature
/// `arbitrary_precision`: a map with this one member, the text of the number.
const PRIVATE_NUMBER: &str = "$serde_json::private::Number";

/// A reason, with the path of the value from the inside out.
type Refusal = (Vec<String>, String);

/// Brings the values of an item into the form in which `DynamoDB` keeps them. `ends` names the one at which TTL looks.
///
/// # Errors
/// A sentence with the path of a value that `DynamoDB` refuses or would change.
pub fn settle_all<'a>(
    ends: Option<&str>,
    values: impl IntoIterator<Item = (&'a String, &'a mut AttributeValue)>,
) -> Result<(), String> {
    values.into_iter().try_for_each(|(name, value)| {
        settle(&[name.as_str()], value)?;
        if ends == Some(name) { check_end(name, value) } else { Ok(()) }
    })
}

/// The same for the value at this path of an item.
pub fn settle(path: &[impl AsRef<str>], value: &mut AttributeValue) -> Result<(), String> {
    if path.iter().any(|name| name.as_ref().is_empty()) {
        return Err("a name in the path of a value is empty".to_owned());
    }
    settle_at(value, path.len()).map_err(|(inner, reason)| {
        let outer = path.iter().map(|name| name.as_ref().to_owned());
        let path: Vec<_> = outer.chain(inner.into_iter().rev()).collect();
        format!("{}: {reason}", path.join("."))
    })
}

fn settle_at(value: &mut AttributeValue, level: usize) -> Result<(), Refusal> {
    if let M(members) = value
        && members.len() == 1
        && let Some(S(number)) = members.get_mut(PRIVATE_NUMBER)
    {
        *value = N(mem::take(number));
    }
    let within = |name: &dyn ToString, member| {
        settle_at(member, level + 1).map_err(|(mut path, reason)| {
            path.push(name.to_string());
            (path, reason)
        })
    };
    match value {
        _ if level > MAX_LEVELS => refused("a value has at most 32 levels"),
        S(_) | B(_) | Bool(_) | Null(true) => Ok(()),
        N(text) => settle_number(text),
        L(members) => members.iter_mut().enumerate().try_for_each(|(index, member)| within(&index, member)),
        M(members) if members.contains_key("") => refused("a member of a map has an empty name"),
        M(members) => members.iter_mut().try_for_each(|(name, member)| within(name, member)),
        Ns(members) => {
            members.iter_mut().try_for_each(settle_number)?;
            check_set(members.iter().map(String::as_bytes))
        }
        Ss(members) => check_set(members.iter().map(String::as_bytes)),
        Bs(members) => check_set(members.iter().map(Vec::as_slice)),
        Null(false) => refused("a value of a kind that DynamoDB does not store"),
    }
}

fn refused(reason: impl Into<String>) -> Result<(), Refusal> {
    Err((Vec::new(), reason.into()))
}

/// Gives a number its one text, as a table does, so that the notation of a serializer never matters.
fn settle_number(text: &mut String) -> Result<(), Refusal> {
    if is_plain(text) {
        return Ok(());
    }
    match Digits::parse(text) {
        Ok(number) => *text = number.to_string(),
        Err(error) => return refused(format!("{text:?}: {error}")),
    }
    Ok(())
}

fn check_set<'a>(members: impl ExactSizeIterator<Item = &'a [u8]>) -> Result<(), Refusal> {
    let count = members.len();
    match members.collect::<HashSet<_>>().len() {
        0 => refused("DynamoDB stores no empty set: leave the attribute out"),
        different if different < count => refused("a member of a set is there twice"),
        _ => Ok(()),
    }
}

pub fn undeclared(name: &str) -> String {
    format!("{name} is not among the attributes that its Record declares")
}

/// Refuses an end of a value at which TTL would not look, or that it would take for another time.
pub fn check_end(name: &str, value: &AttributeValue) -> Result<(), String> {
    let is_end = match value {
        N(text) => text.parse().is_ok_and(|seconds: u64| seconds <= LAST_END),
        value => matches!(value, Null(_)),
    };
    let reason = "the end of a value is a whole number of epoch seconds, at most that of the year 9999, or null";
    if is_end { Ok(()) } else { Err(format!("{name}: {reason}")) }
}

/// Keeps the sets of a row in a change of it.
pub fn keep_all_sets(row: &Attributes, change: &mut Diff) -> Result<(), Unwritable> {
    for (name, value) in &mut change.0 {
        let (Some(stored), Some(value)) = (row.get(name), value) else { continue };
        keep_sets(name, stored, value).map_err(|reason| Unwritable::InvalidRecord { reason })?;
    }
    change.0.retain(|name, value| value.is_none() || row.get(name) != value.as_ref());
    Ok(())
}

/// Keeps a stored set a set: a list that would replace it becomes a set of the same kind, also in maps. A set that is
/// equal to the stored one takes its order, and so is no change.
///
/// # Errors
/// A sentence: the list is no such set.
pub fn keep_sets(path: &str, stored: &AttributeValue, new: &mut AttributeValue) -> Result<(), String> {
    if let (M(stored), M(new)) = (stored, &mut *new) {
        return new.iter_mut().try_for_each(|(name, value)| match stored.get(name) {
            Some(stored) => keep_sets(&format!("{path}.{name}"), stored, value),
            None => Ok(()),
        });
    }
    if !matches!(stored, Ss(_) | Ns(_) | Bs(_)) {
        return Ok(());
    }
    if let L(members) = new {
        let set = set_like(stored, members).filter(|set| settle_at(&mut set.clone(), 1).is_ok());
        *new = set.ok_or_else(|| {
            format!(
                "{path}: a set is stored here, and this list is none of its kind (empty, mixed, or a member is there \
                 twice): give the field a module of serde_dynamo, such as `string_set`, and leave an empty set out"
            )
        })?;
    }
    if fingerprint(stored) == fingerprint(new) {
        *new = stored.clone();
    }
    Ok(())
}

fn set_like(stored: &AttributeValue, members: &[AttributeValue]) -> Option<AttributeValue> {
    let members = members.iter();
    Some(match stored {
        Ss(_) => Ss(members.map(|member| member.as_s().cloned()).collect::<Option<_>>()?),
        Ns(_) => Ns(members.map(|member| member.as_n().cloned()).collect::<Option<_>>()?),
        _ => Bs(members.map(|member| member.as_b().cloned()).collect::<Option<_>>()?),
    })
}

/// The first attribute that differs between two encodings of one value. The members of lists may change places, because
/// a set of Rust is a list to serde, and has no order.
pub fn first_difference<'a>(one: &'a Attributes, other: &'a Attributes) -> Option<&'a str> {
    let is_in = |(name, value): &(&String, &AttributeValue), item: &Attributes| {
        item.get(*name).is_some_and(|twin| twin == *value || fingerprint(twin) == fingerprint(value))
    };
    let missing =
        one.iter().find(|entry| !is_in(entry, other)).or_else(|| other.iter().find(|entry| !is_in(entry, one)));
    missing.map(|(name, _)| name.as_str())
}

/// A hash in which the order of members has no part.
fn fingerprint(value: &AttributeValue) -> u64 {
    fn hash(of: impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        of.hash(&mut hasher);
        hasher.finish()
    }
    let sum = |members: &mut dyn Iterator<Item = u64>| members.fold(0, u64::wrapping_add);
    match value {
        S(text) => hash(("S", text)),
        N(text) => hash(("N", text)),
        B(bytes) => hash(("B", bytes)),
        Bool(is) => hash(("BOOL", is)),
        L(list) => hash(("L", list.len(), sum(&mut list.iter().map(fingerprint)))),
        M(map) => hash(("M", map.len(), sum(&mut map.iter().map(|(name, value)| hash((name, fingerprint(value))))))),
        Ss(set) => hash(("SS", sum(&mut set.iter().map(hash)))),
        Ns(set) => hash(("NS", sum(&mut set.iter().map(hash)))),
        Bs(set) => hash(("BS", sum(&mut set.iter().map(hash)))),
        Null(_) => hash("NULL"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Beside a text in a list, whose members may change places.
    #[test]
    fn values_of_each_type_differ_from_all_others() {
        let text = |text: &str| S(text.to_owned());
        let map = |name: &str, value: &str| M([(name.to_owned(), text(value))].into());
        let [a, b] = ["a", "b"].map(Vec::from);
        let mut values = vec![text("a"), text("b"), N("1".to_owned()), N("2".to_owned()), B(a.clone()), B(b.clone())];
        values.extend([Bool(true), Bool(false), L(vec![]), L(vec![text("a")]), L(vec![text("b")])]);
        values.extend([map("a", "a"), map("a", "b"), map("b", "a"), Bs(vec![a]), Bs(vec![b])]);
        values.extend(["1", "2"].map(|member| Ss(vec![member.to_owned()])));
        values.extend(["1", "2"].map(|member| Ns(vec![member.to_owned()])));
        let item = |value: &AttributeValue| Attributes::from([("x".to_owned(), L(vec![text("z"), value.clone()]))]);
        for (at, one) in values.iter().enumerate() {
            for (index, other) in values.iter().enumerate() {
                let turned = Attributes::from([("x".to_owned(), L(vec![other.clone(), text("z")]))]);
                let difference = (at != index).then_some("x");
                assert_eq!(first_difference(&item(one), &turned), difference, "{one:?} {other:?}");
                assert_eq!(first_difference(&item(one), &item(other)), difference, "{one:?} {other:?}");
            }
        }
    }

    fn number(text: &str) -> AttributeValue {
        N(text.to_owned())
    }

    #[test]
    fn what_a_table_cannot_keep_is_refused_by_its_path_and_the_rest_gets_its_one_text() {
        let map = |name: &str, value| M([(name.to_owned(), value)].into());
        let lists = |lists: usize| (0..lists).fold(number("1"), |value, _| L(vec![value]));
        let texts = |members: &[&str]| members.iter().map(|&member| member.to_owned()).collect::<Vec<_>>();
        let private = map(PRIVATE_NUMBER, S("1.50".to_owned()));
        for (mut value, settled) in [
            (number("1.50"), Ok(number("1.5"))),
            (map("b", L(vec![Null(true), number("1e2")])), Ok(map("b", L(vec![Null(true), number("100")])))),
            (Ns(texts(&["1.0", "2"])), Ok(Ns(texts(&["1", "2"])))),
            (private.clone(), Ok(number("1.5"))),
            (L(vec![private]), Ok(L(vec![number("1.5")]))),
            (Ss(texts(&["x", "y"])), Ok(Ss(texts(&["x", "y"])))),
            (lists(31), Ok(lists(31))),
            (lists(32), Err("a value has at most 32 levels")),
            (number("NaN"), Err(r#"a: "NaN": not a number"#)),
            (map("b", number("inf")), Err(r#"a.b: "inf": not a number"#)),
            (L(vec![number("1"), number("")]), Err(r#"a.1: "": not a number"#)),
            (Ss(vec![]), Err("a: DynamoDB stores no empty set")),
            (map("b", Ns(vec![])), Err("a.b: DynamoDB stores no empty set")),
            (Ss(texts(&["x", "x"])), Err("a: a member of a set is there twice")),
            (Ns(texts(&["1", "1.0"])), Err("a: a member of a set is there twice")),
            (Bs(vec![vec![1], vec![1]]), Err("a: a member of a set is there twice")),
            (map("", number("1")), Err("a: a member of a map has an empty name")),
            (Null(false), Err("a: a value of a kind that DynamoDB does not store")),
        ] {
            match (settle(&["a"], &mut value), settled) {
                (Ok(()), Ok(settled)) => assert_eq!(value, settled),
                (Err(said), Err(reason)) => assert!(said.contains(reason), "{value:?}: {said}"),
                (said, _) => panic!("{value:?}: {said:?}"),
            }
        }
        assert!(settle(&["a", ""], &mut number("1")).is_err());
    }

    #[test]
    fn the_end_of_a_value_is_in_epoch_seconds_and_no_other_attribute_is_looked_at() {
        let check = |name: &str, value| settle_all(Some("ends"), [(&name.to_owned(), &mut { value })]);
        for end in [number("0"), number("253402300799"), Null(true)] {
            assert_eq!(check("ends", end), Ok(()));
        }
        for end in [number("253402300800"), number("-1"), number("1.5"), S("1".to_owned())] {
            assert!(check("ends", end.clone()).is_err_and(|said| said.starts_with("ends: the end")), "{end:?}");
            assert_eq!(check("other", end), Ok(()));
        }
    }

    #[test]
    fn a_list_takes_the_kind_of_the_stored_set_and_an_equal_set_its_order() {
        let (stored, texts) = (Ss(vec!["x".to_owned(), "y".to_owned()]), |text: &str| S(text.to_owned()));
        let (bytes, numbers) = (Bs(vec![vec![1]]), Ns(vec!["1".to_owned()]));
        for (stored, mut new, kept) in [
            (&stored, L(vec![texts("y"), texts("x")]), Some(stored.clone())),
            (&stored, L(vec![texts("z")]), Some(Ss(vec!["z".to_owned()]))),
            (&numbers, L(vec![number("2")]), Some(Ns(vec!["2".to_owned()]))),
            (&bytes, L(vec![B(vec![2])]), Some(Bs(vec![vec![2]]))),
            (&stored, Null(true), Some(Null(true))),
            (&texts("x"), L(vec![]), Some(L(vec![]))),
            (&stored, L(vec![]), None),
            (&stored, L(vec![texts("x"), number("1")]), None),
            (&numbers, L(vec![texts("x")]), None),
            (&bytes, L(vec![number("1")]), None),
        ] {
            assert_eq!(keep_sets("a", stored, &mut new).is_ok(), kept.is_some(), "{stored:?} {new:?}");
            if let Some(kept) = kept {
                assert_eq!(new, kept);
            }
        }
        let row = Attributes::from([("a".to_owned(), stored)]);
        let mut change = Diff::between(&row, Attributes::from([("a".to_owned(), L(vec![texts("y"), texts("x")]))]));
        keep_all_sets(&row, &mut change).expect("a set");
        assert!(change.0.is_empty(), "an equal set is no change");
        change.0.insert("a".to_owned(), Some(L(vec![])));
        keep_all_sets(&row, &mut change).expect_err("an empty set");
    }
}
