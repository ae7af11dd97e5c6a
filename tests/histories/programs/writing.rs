//! Edits on the public surface.

use super::edits::{Ask, Clause, Edit, Within};
use super::player::Noted;
use super::records::Subject;
use super::values::Bytes;
use fencepost::AttributeValue;
use fencepost::field::{Field, List, Member, Members, Optional, Ordered, Quantity};
use fencepost::{Bounds, Condition, ItemVersion, Number, Record, Source};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// A value in `DynamoDB`'s JSON as serde writes it. Sets are written in another order than they are stored in.
struct Stored<'a>(&'a Value);

impl Serialize for Stored<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (kind, value) = self.0.as_object().and_then(|object| object.iter().next()).expect("a value");
        let bytes = |value: &Value| aws_smithy_types::base64::decode(value.as_str().expect("text")).expect("base64");
        let list = || value.as_array().into_iter().flatten();
        match kind.as_str() {
            "S" => serializer.serialize_str(value.as_str().expect("text")),
            "N" => {
                let text = value.as_str().expect("text");
                match (text.parse::<i64>(), text.parse::<u64>()) {
                    (Ok(number), _) => serializer.serialize_i64(number),
                    (_, Ok(number)) => serializer.serialize_u64(number),
                    _ => serializer.serialize_f64(text.parse().expect("a number")),
                }
            }
            "B" => serializer.serialize_bytes(&bytes(value)),
            "BOOL" => serializer.serialize_bool(value == true),
            "L" => serializer.collect_seq(list().map(Stored)),
            "M" => serializer
                .collect_map(value.as_object().into_iter().flatten().map(|(name, value)| (name, Stored(value)))),
            "SS" => serde_dynamo::string_set::serialize(&list().rev().collect::<Vec<_>>(), serializer),
            "NS" => serde_dynamo::number_set::serialize(
                &list().rev().map(|n| n.as_str().and_then(|n| n.parse::<i64>().ok())).collect::<Vec<_>>(),
                serializer,
            ),
            "BS" => serde_dynamo::binary_set::serialize(
                &list().rev().map(|b| Bytes(bytes(b))).collect::<Vec<_>>(),
                serializer,
            ),
            _ => serializer.serialize_none(),
        }
    }
}

/// A value of any type: what a program writes into any field.
struct Any(Value);

impl Serialize for Any {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Stored(&self.0).serialize(serializer)
    }
}

impl Quantity for Any {
    type Amount = Number;
    const RANGE: Option<(i128, i128)> = None;
}

impl Ordered for Any {}

impl List for Any {
    type Member = Any;

    fn encode_member(member: Any) -> Result<AttributeValue, Source> {
        encode(member)
    }
}

impl Members for Any {
    type Member = Any;

    fn encode_member(member: Any) -> Result<AttributeValue, Source> {
        encode(member)
    }
}

/// Sets are written as the SDK writes them, the rest as serde does.
fn encode(Any(value): Any) -> Result<AttributeValue, Source> {
    let texts = |kind: &str| -> Option<Vec<String>> { serde_json::from_value(value.get(kind)?.clone()).ok() };
    let blob = |text: String| aws_smithy_types::base64::decode(text).expect("base64");
    let set = texts("SS")
        .map(AttributeValue::Ss)
        .or_else(|| texts("NS").map(AttributeValue::Ns))
        .or_else(|| Some(AttributeValue::Bs(texts("BS")?.into_iter().map(blob).collect())));
    set.map_or_else(|| Ok(serde_dynamo::to_attribute_value(Stored(&value))?), Ok)
}

/// The attribute that a path begins with.
fn attribute<T: Record>(path: &[String]) -> Field<T, Any, Optional> {
    let name = T::ATTRIBUTES.iter().find(|name| **name == path[0]).expect("an attribute");
    Field::with(name, encode)
}

/// Does the same with the field at this path, which is an attribute or a member.
macro_rules! at {
    ($path:expr, |$field:ident| $made:expr) => {{
        let path: &[String] = $path;
        let $field = attribute::<T>(path);
        match path {
            [_] => $made,
            [_, first, rest @ ..] => {
                let member = $field.member(first).expect("a name");
                let $field: Field<T, Any, Member> =
                    rest.iter().fold(member, |map, name| map.member(name).expect("a name"));
                $made
            }
            [] => unreachable!("a path has a name"),
        }
    }};
}

/// Calls this method of the field at this path, and notes that it was played.
macro_rules! played {
    ($plays:ident, $path:expr, $method:ident($($argument:expr)?)) => {{
        $plays(concat!("Field::", stringify!($method)));
        at!($path, |field| field.$method($($argument)?))
    }};
}

pub fn condition_of<T: Record>(ask: &Ask, plays: &dyn Fn(&'static str)) -> Condition<T> {
    let any = |value: &Value| Any(value.clone());
    let inner = |ask| condition_of(ask, plays);
    match ask {
        Ask::Is(path, value) => played!(plays, path, is(any(value))),
        Ask::Less(path, value) => played!(plays, path, is_less_than(any(value))),
        Ask::AtMost(path, value) => played!(plays, path, is_at_most(any(value))),
        Ask::AtLeast(path, value) => played!(plays, path, is_at_least(any(value))),
        Ask::More(path, value) => played!(plays, path, is_more_than(any(value))),
        Ask::Some(path) => played!(plays, path, is_some()),
        Ask::None(path) => played!(plays, path, is_none()),
        Ask::Not(ask) => match &**ask {
            Ask::Is(path, value) => played!(plays, path, is_not(any(value))),
            ask => !inner(ask),
        },
        Ask::Both(asks) => {
            plays("Condition::and");
            inner(&asks[0]).and(inner(&asks[1]))
        }
        Ask::Either(asks) => match &**asks {
            [Ask::Is(path, one), Ask::Is(other, two)] if path == other => {
                played!(plays, path, is_any_of([any(one), any(two)]))
            }
            asks if asks.iter().any(|ask| matches!(ask, Ask::Either(_))) => {
                plays("Condition::any");
                Condition::any(asks.iter().map(inner))
            }
            asks => {
                plays("Condition::or");
                inner(&asks[0]).or(inner(&asks[1]))
            }
        },
    }
}

/// The edit, with the number of its decision unless it is to find out whether it changes anything.
pub fn edit_of<T: Subject>(
    of: &Edit,
    seen: Option<ItemVersion>,
    id: u64,
    noted: &Noted<'_>,
) -> (Edit, fencepost::Edit<T>) {
    let plays = |name| noted.own.plays(name);
    let any = |value: &Value| Any(value.clone());
    let mut of = of.clone();
    if !of.clauses.contains(&Clause::Changed) && !id.is_multiple_of(4) {
        of.clauses.push(Clause::Set(vec![T::ATTRIBUTES[0].to_owned()], json!({"N": id.to_string()})));
    }
    for name in ["Edit::and", "Field::with", "Field::member"] {
        plays(name);
    }
    let mut edit = fencepost::Edit::default();
    for clause in &of.clauses {
        edit = match clause {
            Clause::Add(path, by, within) => {
                plays("Field::add");
                let number = |text: &str| Number::parse(text).expect("a number");
                let bounds = || match within {
                    Within::Any => Bounds::Any,
                    Within::Result(low, high) => Bounds::from(*low..=*high),
                    Within::Before(low, high) => Bounds::Before(number(low), number(high)),
                };
                match T::ATTRIBUTES.iter().find(|name| path == &[**name]) {
                    Some(name) if id.is_multiple_of(3) => {
                        plays("Field::number");
                        edit.and(Field::<T, Value>::of(name).number().add(number(by), bounds()))
                    }
                    Some(name) => {
                        plays("Field::of");
                        edit.and(Field::<T, f64>::of(name).add(number(by), bounds()))
                    }
                    None => edit.and(at!(path, |field| field.add(number(by), bounds()))),
                }
            }
            Clause::Set(path, value) => edit.and(played!(plays, path, set(any(value)))),
            Clause::Raise(path, value) => edit.and(played!(plays, path, raise_to(any(value)))),
            Clause::Fill(path, value) => edit.and(played!(plays, path, set_if_none(any(value)))),
            Clause::Append(path, more) => edit.and(played!(plays, path, append(more.iter().map(any)))),
            Clause::Remove(path) => edit.and(played!(plays, path, remove())),
            Clause::Stamp(name, value) => {
                plays("Edit::stamp");
                edit.stamp(&attribute::<T>(std::slice::from_ref(name)), any(value))
            }
            Clause::Bands(name, path, up_to, low, high) => {
                plays("Edit::bands");
                let bands = [(i64::MIN..=*up_to, any(low)), (*up_to + 1..=i64::MAX, any(high))];
                edit.bands(&attribute::<T>(std::slice::from_ref(name)), &attribute::<T>(path), bands)
            }
            Clause::OnlyIf(ask) => {
                plays("Edit::only_if");
                edit.only_if(condition_of(ask, &plays))
            }
            Clause::Changed => {
                plays("Edit::only_if_changed");
                edit.only_if_changed()
            }
        };
    }
    if let Some(at) = seen {
        plays("Edit::seen");
        edit = edit.seen(at);
    }
    (of, edit)
}
