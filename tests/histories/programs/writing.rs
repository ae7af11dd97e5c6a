//! Edits on the public surface.

use super::edits::{Clause, Edit, Within};
use super::player::Noted;
use super::records::Subject;
use super::values::Bytes;
use fencepost::AttributeValue;
use fencepost::{Bounds, ItemVersion, Number};
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

/// A set as the SDK writes it.
fn attribute_of(value: &Value) -> Option<AttributeValue> {
    let texts = |kind: &str| -> Option<Vec<String>> { serde_json::from_value(value.get(kind)?.clone()).ok() };
    let blob = |text: String| aws_smithy_types::base64::decode(text).expect("base64");
    texts("SS")
        .map(AttributeValue::Ss)
        .or_else(|| texts("NS").map(AttributeValue::Ns))
        .or_else(|| Some(AttributeValue::Bs(texts("BS")?.into_iter().map(blob).collect())))
}

/// The edit, with the number of its decision unless it is to find out whether it changes anything.
pub fn edit_of<T: Subject>(
    of: &Edit,
    seen: Option<ItemVersion>,
    id: u64,
    noted: &Noted<'_>,
) -> (Edit, fencepost::Edit) {
    let plays = |name| noted.own.plays(name);
    let mut of = of.clone();
    if !of.clauses.contains(&Clause::Changed) && !id.is_multiple_of(4) {
        of.clauses.push(Clause::Set(vec![T::ATTRIBUTES[0].to_owned()], json!({"N": id.to_string()})));
    }
    let mut edit = fencepost::Edit::default();
    for (index, clause) in of.clauses.iter().enumerate() {
        edit = match clause {
            Clause::Add(path, by, within) => {
                let number = |text: &str| {
                    plays("Number::parse");
                    Number::parse(text).expect("a number")
                };
                let bounds = match within {
                    Within::Any => Bounds::Any,
                    Within::Result(low, high) => Bounds::from(*low..=*high),
                    Within::Before(low, high) => Bounds::Before(number(low), number(high)),
                };
                if index == 0 {
                    plays("Edit::add");
                    fencepost::Edit::add(path.clone(), number(by), bounds)
                } else {
                    plays("Edit::and_add");
                    edit.and_add(path.clone(), number(by), bounds)
                }
            }
            Clause::Set(path, value) => match attribute_of(value) {
                Some(value) => {
                    plays("Edit::and_set_attribute");
                    edit.and_set_attribute(path.clone(), value)
                }
                None if index == 0 => {
                    plays("Edit::set");
                    fencepost::Edit::set(path.clone(), &Stored(value))
                }
                None => {
                    plays("Edit::and_set");
                    edit.and_set(path.clone(), &Stored(value))
                }
            },
            Clause::Remove(path) => {
                plays("Edit::and_remove");
                edit.and_remove(path.clone())
            }
            Clause::Stamp(name, value) => {
                plays("Edit::stamp");
                edit.stamp(name, &Stored(value))
            }
            Clause::Bands(name, path, up_to, low, high) => {
                plays("Edit::bands");
                edit.bands(
                    name,
                    path.clone(),
                    [(i64::MIN..=*up_to, Stored(low)), (*up_to + 1..=i64::MAX, Stored(high))],
                )
            }
            Clause::OnlyIf(path, value) => {
                plays("Edit::only_if");
                edit.only_if(path.clone(), &Stored(value))
            }
            Clause::AtMost(path, value) => {
                plays("Edit::only_if_at_most");
                edit.only_if_at_most(path.clone(), &Stored(value))
            }
            Clause::With(path) => {
                plays("Edit::only_with");
                edit.only_with(path.clone())
            }
            Clause::Without(path) => {
                plays("Edit::only_without");
                edit.only_without(path.clone())
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
