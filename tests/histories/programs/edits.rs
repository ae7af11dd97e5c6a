//! Edits in programs, and what each leaves of an item by the words of its documentation alone.

use super::catalog::{KINDS, Row};
use super::values::{Item, canonical};
use bigdecimal::BigDecimal;
use judges::register;
use serde_json::{Value, json};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// A path of names.
pub type Path = Vec<String>;

#[derive(Clone, Debug, PartialEq)]
pub enum Clause {
    Add(Path, String, Within),
    Set(Path, Value),
    Remove(Path),
    Stamp(String, Value),
    /// The attribute follows from the range of the number: up to this one, or above.
    Bands(String, Path, i64, Value, Value),
    /// Sets the value if the stored one is lower, or missing.
    Raise(Path, Value),
    /// Sets the value if there is none.
    Fill(Path, Value),
    Append(Path, Vec<Value>),
    OnlyIf(Ask),
    Changed,
}

/// A condition of an edit.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    Is(Path, Value),
    Less(Path, Value),
    AtMost(Path, Value),
    AtLeast(Path, Value),
    More(Path, Value),
    Some(Path),
    None(Path),
    Not(Box<Ask>),
    Both(Box<[Ask; 2]>),
    Either(Box<[Ask; 2]>),
}

impl Ask {
    /// Whether the item is so.
    pub fn is_met(&self, item: &Item) -> bool {
        let order = |path: &Path, one| value_at(item, path).and_then(|value| compared(value, one));
        match self {
            Ask::Is(path, one) => value_at(item, path) == Some(&canonical(one)),
            Ask::Less(path, one) => order(path, one).is_some_and(Ordering::is_lt),
            Ask::AtMost(path, one) => order(path, one).is_some_and(Ordering::is_le),
            Ask::AtLeast(path, one) => order(path, one).is_some_and(Ordering::is_ge),
            Ask::More(path, one) => order(path, one).is_some_and(Ordering::is_gt),
            Ask::Some(path) => !is_none(item, path),
            Ask::None(path) => is_none(item, path),
            Ask::Not(ask) => !ask.is_met(item),
            Ask::Both(asks) => asks.iter().all(|ask| ask.is_met(item)),
            Ask::Either(asks) => asks.iter().any(|ask| ask.is_met(item)),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Within {
    Any,
    Result(i64, i64),
    Before(String, String),
}

/// An edit. `seen`: at the version that the client knows, if it knows one.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    pub clauses: Vec<Clause>,
    pub seen: bool,
}

impl Edit {
    /// Adds one to the number of the item.
    pub fn one_more(row: Row, seen: bool) -> Self {
        let clauses = vec![Clause::Add(vec![KINDS[row.kind].number()], "1".to_owned(), Within::Any)];
        Edit { clauses, seen }
    }
}

/// Why an item refuses an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    NotANumber,
    OutOfRange,
    NotAsDemanded,
    Unchanged,
    /// The answer names none.
    Untold,
}

impl Clause {
    /// The path that it writes to.
    pub fn writes(&self) -> Option<Path> {
        match self {
            Clause::Add(path, ..)
            | Clause::Set(path, _)
            | Clause::Remove(path)
            | Clause::Raise(path, _)
            | Clause::Fill(path, _)
            | Clause::Append(path, _) => Some(path.clone()),
            Clause::Stamp(name, _) | Clause::Bands(name, ..) => Some(vec![name.clone()]),
            _ => None,
        }
    }
}

impl Edit {
    /// Whether it changes any item that takes it: it sets the number of the change in `by`, or adds something.
    pub fn surely_changes(&self, by: &str) -> bool {
        self.clauses.iter().any(|clause| match clause {
            Clause::Set(path, _) => path[0] == by,
            Clause::Add(_, amount, _) => amount.parse::<f64>() != Ok(0.0),
            Clause::Append(_, more) => !more.is_empty(),
            _ => false,
        })
    }

    /// Whether it changes a value twice, which is refused.
    pub fn changes_twice(&self) -> bool {
        let paths: Vec<_> = self.clauses.iter().filter_map(Clause::writes).collect();
        let overlap = |one: &Path, other: &Path| one.starts_with(other) || other.starts_with(one);
        paths.iter().enumerate().any(|(at, one)| paths[at + 1..].iter().any(|other| overlap(one, other)))
    }

    /// The item after this edit, by the words of its documentation alone. Otherwise the reasons for which an item such as
    /// this one refuses it.
    pub fn applied(&self, item: &Item) -> Result<Item, Vec<Why>> {
        let (mut next, mut whys, mut adds) = (item.clone(), Vec::new(), false);
        let (mut asks_for_change, mut changes) = (false, false);
        let demand = |is_met: bool, whys: &mut Vec<Why>| {
            if !is_met {
                whys.push(Why::NotAsDemanded);
            }
        };
        for clause in &self.clauses {
            match clause {
                Clause::Add(path, by, within) => {
                    adds = true;
                    let Some(before) = number(value_at(item, path)) else {
                        whys.push(Why::NotANumber);
                        continue;
                    };
                    let by: BigDecimal = by.parse().expect("a number");
                    let after = &before + &by;
                    let whole = |low: i64, high: i64| (BigDecimal::from(low)..=BigDecimal::from(high)).contains(&after);
                    let is_within = match within {
                        Within::Any => whole(i64::MIN, i64::MAX),
                        Within::Result(low, high) => whole(*low, *high),
                        Within::Before(low, high) => {
                            let [low, high] = [low, high].map(|text| text.parse::<BigDecimal>().expect("a number"));
                            (low..=high).contains(&before)
                        }
                    };
                    if !is_within {
                        whys.push(Why::OutOfRange);
                    }
                    set(&mut next, path, json!({"N": after.normalized().to_plain_string()}));
                }
                Clause::Set(path, value) => {
                    demand(has_parent(item, path), &mut whys);
                    changes |= value_at(item, path) != Some(&canonical(value));
                    set(&mut next, path, canonical(value));
                }
                Clause::Remove(path) => {
                    demand(has_parent(item, path), &mut whys);
                    changes |= value_at(item, path).is_some();
                    remove(&mut next, path);
                }
                Clause::Stamp(name, value) => set(&mut next, std::slice::from_ref(name), canonical(value)),
                Clause::Bands(name, path, up_to, low, high) => {
                    let after = number(value_at(&next, path)).unwrap_or_default();
                    // A decimal may be between both.
                    if after > *up_to && after < up_to + 1 {
                        whys.push(Why::OutOfRange);
                    }
                    let value = if after <= *up_to { low } else { high };
                    set(&mut next, std::slice::from_ref(name), canonical(value));
                }
                Clause::Raise(path, least) => {
                    let order = value_at(item, path).and_then(|value| compared(value, least));
                    demand(has_parent(item, path) && (is_none(item, path) || order.is_some()), &mut whys);
                    if is_none(item, path) || order.is_some_and(Ordering::is_lt) {
                        changes = true;
                        set(&mut next, path, canonical(least));
                    }
                }
                Clause::Fill(path, value) => {
                    demand(has_parent(item, path), &mut whys);
                    if is_none(item, path) {
                        changes = true;
                        set(&mut next, path, canonical(value));
                    }
                }
                Clause::Append(path, more) => {
                    adds = true;
                    let list = value_at(item, path).and_then(|value| value["L"].as_array().cloned());
                    demand(list.is_some(), &mut whys);
                    let members = list.unwrap_or_default().into_iter().chain(more.iter().map(canonical));
                    set(&mut next, path, json!({"L": members.collect::<Vec<_>>()}));
                }
                Clause::OnlyIf(ask) => demand(ask.is_met(item), &mut whys),
                Clause::Changed => asks_for_change = true,
            }
        }
        if asks_for_change && !adds && !changes {
            whys.push(Why::Unchanged);
        }
        if whys.is_empty() { Ok(next) } else { Err(whys) }
    }
}

fn value_at<'a>(item: &'a Item, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(item.get(first)?, |value, name| value["M"].get(name))
}

fn place_at<'a>(item: &'a mut Item, path: &[String]) -> Option<&'a mut serde_json::Map<String, Value>> {
    let mut map = item.get_mut(path.first()?)?.get_mut("M")?;
    for name in &path[1..path.len() - 1] {
        map = map.get_mut(name)?.get_mut("M")?;
    }
    map.as_object_mut()
}

fn number(value: Option<&Value>) -> Option<BigDecimal> {
    value?["N"].as_str()?.parse().ok()
}

fn has_parent(item: &Item, path: &[String]) -> bool {
    path.len() == 1 || value_at(item, &path[..path.len() - 1]).is_some_and(|parent| parent.get("M").is_some())
}

fn set(item: &mut Item, path: &[String], value: Value) {
    if let [name] = path {
        item.insert(name.clone(), value);
    } else if let Some(map) = place_at(item, path) {
        map.insert(path[path.len() - 1].clone(), value);
    }
}

fn remove(item: &mut Item, path: &[String]) {
    if let [name] = path {
        item.remove(name);
    } else if let Some(map) = place_at(item, path) {
        map.remove(&path[path.len() - 1]);
    }
}

/// Whether there is no value. The `NULL` of an attribute is none; that of a member is one.
fn is_none(item: &Item, path: &[String]) -> bool {
    value_at(item, path).is_none_or(|value| path.len() == 1 && value.get("NULL").is_some())
}

/// As `DynamoDB` compares: numbers by value, texts and bytes byte by byte, and nothing else.
fn compared(value: &Value, one: &Value) -> Option<Ordering> {
    let bytes = |value: &Value| aws_smithy_types::base64::decode(value["B"].as_str()?).ok();
    match (number(Some(value)), number(Some(one))) {
        (Some(value), Some(one)) => Some(value.cmp(&one)),
        _ => match (value["S"].as_str(), one["S"].as_str()) {
            (Some(value), Some(one)) => Some(value.cmp(one)),
            _ => Some(bytes(value)?.cmp(&bytes(one)?)),
        },
    }
}

/// The item of the register that the judge knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Val(pub Item);

impl Hash for Val {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for (name, value) in &self.0 {
            (name, value.to_string()).hash(state);
        }
    }
}

impl register::Value for Val {
    type Amount = Edit;

    fn plus(&self, edit: &Edit) -> Option<Self> {
        edit.applied(&self.0).ok().map(Val)
    }
}
