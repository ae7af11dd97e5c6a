//! The only file with condition-expression text: the writes and checks that this crate sends.

use crate::protocol::item::{Attributes, Diff};
use crate::protocol::judge::{WriteId, slot_of};
use crate::protocol::row::{FENCE, INCARNATION, PURGE_AT, VERSION, WRITES, bytes, number};
use crate::version::ItemVersion;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;

/// One conditional write, ready to be sent any number of times.
#[derive(Clone, Debug)]
pub(crate) struct ConditionalWrite {
    pub action: Action,
    pub condition: Cow<'static, str>,
    pub names: HashMap<String, String>,
    pub values: HashMap<String, AttributeValue>,
    /// What of the row is returned when it is applied; nothing in a transaction.
    pub returning: Option<ReturnValue>,
}

/// What it does when its condition holds.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// Replaces the whole item.
    Put { item: Attributes },
    /// Changes the attributes that the expression names.
    Update { key: Attributes, expression: String },
    /// Changes nothing; only in a transaction.
    Check { key: Attributes },
}

const IS_ABSENT: &str = "attribute_not_exists(#key)";
const IS_AT: &str = "#version = :at AND #incarnation = :incarnation";
const IS_ALIVE_AT: &str = "#version = :at AND #incarnation = :incarnation AND attribute_not_exists(#purge)";
const IS_WITHIN: &str = "#number BETWEEN :low AND :high AND attribute_not_exists(#purge)";

const IS_OLDER: &str = "attribute_not_exists(#key) OR #order < :order OR (#order = :order AND #name < :name)";
const IS_NOT_NEWER: &str = "attribute_not_exists(#key) OR #order < :order OR (#order = :order AND #name <= :name)";
const IS_NOT_LATER: &str = "attribute_not_exists(#key) OR #order <= :order";

const IS_NOT_FENCED: &str = "(attribute_not_exists(#fence) OR #fence <= :fence)";
const SET_FENCE: &str = "SET #fence = :fence, ";
const IS_FREE: &str = "attribute_not_exists(#holder) OR #expires < :cutoff";
const IS_FREE_FOR_NEW: &str =
    "(attribute_not_exists(#holder) AND (attribute_not_exists(#id) OR #id <> :id)) OR #expires < :cutoff";
const IS_HELD: &str = "#token = :token AND attribute_exists(#holder)";
const IS_HELD_AT: &str = "#token = :token AND attribute_exists(#holder) AND #renewals = :at";
const IS_UNDER_TOKEN: &str = "#token = :token";
const IS_UNDER_TOKEN_AT: &str = "#token = :token AND #renewals = :at";

/// The most that an update expression may take, in bytes (`DynamoDB` quota "expression length").
const MAX_EXPRESSION: usize = 4096;
/// The longest attribute name that an expression may name, in bytes.
const MAX_NAME: usize = 255;

/// Creates the row if the key has none.
pub(crate) fn put_if_absent(partition_key: &str, item: Attributes) -> ConditionalWrite {
    ConditionalWrite {
        action: Action::Put { item },
        condition: IS_ABSENT.into(),
        names: HashMap::from([("#key".to_owned(), partition_key.to_owned())]),
        values: HashMap::new(),
        returning: None,
    }
}

/// Replaces the row by `item`, which holds its next state, if it is still at `at`.
pub(crate) fn put_at(at: ItemVersion, item: Attributes) -> ConditionalWrite {
    let (names, values) = placeholders_of(at);
    ConditionalWrite { action: Action::Put { item }, condition: IS_AT.into(), names, values, returning: None }
}

/// Applies `diff` to the row, moves its version on and leaves `id` in the slot, if it is still at `at`.
/// The row is alive afterwards.
///
/// `None` where the expression would be longer than `DynamoDB` takes: send the whole item instead.
pub(crate) fn update_at(key: Attributes, at: ItemVersion, id: WriteId, diff: &Diff) -> Option<ConditionalWrite> {
    update(key, at, id, diff, None)
}

/// Applies `diff` to the row and makes it a tombstone until `purge_at` (epoch seconds), if it is still
/// alive at `at`.
///
/// `None` where the expression would be longer than `DynamoDB` takes.
pub(crate) fn bury_at(
    key: Attributes,
    at: ItemVersion,
    id: WriteId,
    diff: &Diff,
    purge_at: u64,
) -> Option<ConditionalWrite> {
    update(key, at, id, diff, Some(purge_at))
}

fn update(
    key: Attributes,
    at: ItemVersion,
    id: WriteId,
    diff: &Diff,
    purge_at: Option<u64>,
) -> Option<ConditionalWrite> {
    if diff.set.keys().chain(&diff.remove).any(|name| name.len() > MAX_NAME) {
        return None;
    }
    let next = at.version.next();
    let (mut names, mut values) = placeholders_of(at);
    let mut name = |placeholder: String, name: &str| {
        names.insert(placeholder.clone(), name.to_owned());
        placeholder
    };
    name("#writes".to_owned(), WRITES);
    name("#slot".to_owned(), &slot_of(next).to_string());
    values.insert(":next".to_owned(), number(next.get()));
    values.insert(":id".to_owned(), bytes(*id.as_bytes()));
    let mut expression = "SET #version = :next, #writes.#slot = :id".to_owned();
    for (index, (attribute, value)) in diff.set.iter().enumerate() {
        let _ = write!(expression, ", {} = :s{index}", name(format!("#s{index}"), attribute));
        values.insert(format!(":s{index}"), value.clone());
    }
    let purge = name("#purge".to_owned(), PURGE_AT);
    let mut removed: Vec<_> =
        diff.remove.iter().enumerate().map(|(index, attribute)| name(format!("#r{index}"), attribute)).collect();
    let condition = if let Some(seconds) = purge_at {
        let _ = write!(expression, ", {purge} = :purge");
        values.insert(":purge".to_owned(), number(seconds));
        IS_ALIVE_AT
    } else {
        removed.push(purge);
        IS_AT
    };
    if !removed.is_empty() {
        let _ = write!(expression, " REMOVE {}", removed.join(", "));
    }
    let action = Action::Update { key, expression: expression.clone() };
    (expression.len() <= MAX_EXPRESSION).then_some(ConditionalWrite {
        action,
        condition: condition.into(),
        names,
        values,
        returning: None,
    })
}

/// The same write, but under a fencing token, if there is one: it is refused where the row has seen a higher one, and
/// leaves its own there.
///
/// `None` where the expression would be longer than `DynamoDB` takes.
pub(crate) fn fenced(write: ConditionalWrite, token: Option<u64>) -> Option<ConditionalWrite> {
    let Some(token) = token else { return Some(write) };
    let ConditionalWrite { action, condition, mut names, mut values, returning } = write;
    let condition = if condition == IS_ABSENT { condition } else { format!("{condition} AND {IS_NOT_FENCED}").into() };
    let action = match action {
        Action::Put { mut item } => {
            item.insert(FENCE.to_owned(), number(token));
            Action::Put { item }
        }
        Action::Update { key, expression } => {
            let expression = expression.replacen("SET ", SET_FENCE, 1);
            if expression.len() > MAX_EXPRESSION {
                return None;
            }
            Action::Update { key, expression }
        }
        Action::Check { key } => Action::Check { key },
    };
    // A name or a value that no expression uses is refused: a row that is not there has seen no token.
    if condition != IS_ABSENT {
        names.insert("#fence".to_owned(), FENCE.to_owned());
        values.insert(":fence".to_owned(), number(token));
    }
    Some(ConditionalWrite { action, condition, names, values, returning })
}

/// Checks that the key has no row.
pub(crate) fn check_absent(partition_key: &str, key: Attributes) -> ConditionalWrite {
    ConditionalWrite {
        action: Action::Check { key },
        condition: IS_ABSENT.into(),
        names: HashMap::from([("#key".to_owned(), partition_key.to_owned())]),
        values: HashMap::new(),
        returning: None,
    }
}

/// Checks that the row is still at `at`.
pub(crate) fn check_at(key: Attributes, at: ItemVersion) -> ConditionalWrite {
    let (names, values) = placeholders_of(at);
    ConditionalWrite { action: Action::Check { key }, condition: IS_AT.into(), names, values, returning: None }
}

/// Adds `by` to a number of a live item that is between `low` and `high` (both included), and moves its version on.
/// It leaves no id behind: nothing recognises it later.
pub(crate) fn add_between(key: Attributes, attribute: &str, by: i64, low: i128, high: i128) -> ConditionalWrite {
    let names = [("#number", attribute), ("#version", VERSION), ("#purge", PURGE_AT)];
    let values = [(":by", i128::from(by)), (":low", low), (":high", high), (":one", 1)];
    let expression = "SET #number = #number + :by, #version = #version + :one".to_owned();
    ConditionalWrite {
        action: Action::Update { key, expression },
        condition: IS_WITHIN.into(),
        names: names.map(|(placeholder, name)| (placeholder.to_owned(), name.to_owned())).into(),
        values: values
            .map(|(placeholder, value)| (placeholder.to_owned(), AttributeValue::N(value.to_string())))
            .into(),
        returning: None,
    }
}

/// The attributes that order the instances which follow each other under one key.
#[derive(Clone, Copy)]
pub(crate) struct Ordering {
    /// The partition key.
    pub key: &'static str,
    /// A number.
    pub order: &'static str,
    /// A string, which decides where the numbers are equal.
    pub name: &'static str,
}

/// Replaces the row by this instance, if the row is absent or of an older one.
pub(crate) fn put_if_newer(by: Ordering, item: Attributes) -> ConditionalWrite {
    in_order(by, item, IS_OLDER, None)
}

/// Replaces the row by what remembers this instance, if the row is absent, or of this instance or an older one. Without
/// a name it stands after every instance of its number. Returns the row that it has replaced.
pub(crate) fn put_unless_newer(by: Ordering, item: Attributes) -> ConditionalWrite {
    let condition = if item.contains_key(by.name) { IS_NOT_NEWER } else { IS_NOT_LATER };
    in_order(by, item, condition, Some(ReturnValue::AllOld))
}

fn in_order(
    by: Ordering,
    item: Attributes,
    condition: &'static str,
    returning: Option<ReturnValue>,
) -> ConditionalWrite {
    let mut names = HashMap::from([("#key".to_owned(), by.key.to_owned())]);
    let mut values = HashMap::new();
    for (name, value, attribute) in [("#order", ":order", by.order), ("#name", ":name", by.name)] {
        if let Some(mine) = item.get(attribute) {
            names.insert(name.to_owned(), attribute.to_owned());
            values.insert(value.to_owned(), mine.clone());
        }
    }
    ConditionalWrite { action: Action::Put { item }, condition: condition.into(), names, values, returning }
}

/// The partition key of a table of leases, a string.
pub(crate) const LEASE_KEY: &str = "leaseKey";
/// String: who holds it; missing where nobody does.
pub(crate) const HOLDER: &str = "holder";
/// Number: rises with every acquire.
pub(crate) const TOKEN: &str = "token";
/// Number: how often it was renewed since it was acquired.
pub(crate) const RENEWALS: &str = "renewals";
/// Number, epoch milliseconds: when it ends, by its holder's clock.
pub(crate) const EXPIRES_AT: &str = "expiresAt";
/// Binary: which acquire it was.
pub(crate) const ACQUIRE_ID: &str = "acquireId";
/// Number, epoch seconds: when TTL may remove the row.
pub(crate) const LEASE_PURGE_AT: &str = "purgeAt";

/// The key of a lease's row.
pub(crate) fn lease_key(key: &str) -> Attributes {
    HashMap::from([(LEASE_KEY.to_owned(), AttributeValue::S(key.to_owned()))])
}

/// What an acquire leaves in the row, and what it takes for free.
pub(crate) struct Acquire<'a> {
    pub holder: &'a str,
    pub id: &'a [u8],
    /// Whether this id acquires only once: a late copy finds the lease that it had acquired released, and leaves it so.
    pub once: bool,
    /// What the token rises from where no row remembers one.
    pub floor: u64,
    pub expires_at: u64,
    pub purge_at: u64,
    /// A lease that ended before this is free.
    pub cutoff: u64,
}

/// Acquires a lease that nobody holds, or that has ended. Returns the row.
pub(crate) fn acquire(key: &str, acquire: &Acquire<'_>) -> ConditionalWrite {
    let expression = "SET #holder = :holder, #token = if_not_exists(#token, :floor) + :one, #renewals = :zero, \
                      #expires = :expires, #id = :id, #purge = :purge";
    let values = [
        (":holder", AttributeValue::S(acquire.holder.to_owned())),
        (":floor", number(acquire.floor)),
        (":one", number(1)),
        (":zero", number(0)),
        (":expires", number(acquire.expires_at)),
        (":id", AttributeValue::B(Blob::new(acquire.id))),
        (":purge", number(acquire.purge_at)),
        (":cutoff", number(acquire.cutoff)),
    ];
    let condition = if acquire.once { IS_FREE_FOR_NEW } else { IS_FREE };
    on_lease(update_of(key, expression), condition, values)
}

/// Renews a lease that is held under this token and was renewed so many times. Returns the row.
pub(crate) fn renew(key: &str, token: u64, at: u64, expires_at: u64, purge_at: u64) -> ConditionalWrite {
    let expression = "SET #renewals = #renewals + :one, #expires = :expires, #purge = :purge";
    let values = [
        (":token", number(token)),
        (":at", number(at)),
        (":one", number(1)),
        (":expires", number(expires_at)),
        (":purge", number(purge_at)),
    ];
    on_lease(update_of(key, expression), IS_HELD_AT, values)
}

/// Takes the holder out of a lease that is, or was last, held under this token; at this many renewals where that is said.
pub(crate) fn release(key: &str, token: u64, at: Option<u64>, purge_at: u64) -> ConditionalWrite {
    let expression = "SET #purge = :purge REMOVE #holder";
    let values = [(":token", number(token)), (":purge", number(purge_at))];
    let condition = if at.is_some() { IS_UNDER_TOKEN_AT } else { IS_UNDER_TOKEN };
    let at = at.map(|at| (":at", number(at)));
    on_lease(update_of(key, expression), condition, values.into_iter().chain(at))
}

/// Checks that a lease is held under this token, ended or not: until somebody else acquires it, nobody else is.
pub(crate) fn check_held(key: Attributes, token: u64) -> ConditionalWrite {
    on_lease(Action::Check { key }, IS_HELD, [(":token", number(token))])
}

fn update_of(key: &str, expression: &str) -> Action {
    Action::Update { key: lease_key(key), expression: expression.to_owned() }
}

fn on_lease(
    action: Action,
    condition: &'static str,
    values: impl IntoIterator<Item = (&'static str, AttributeValue)>,
) -> ConditionalWrite {
    const NAMES: [(&str, &str); 6] = [
        ("#holder", HOLDER),
        ("#token", TOKEN),
        ("#renewals", RENEWALS),
        ("#expires", EXPIRES_AT),
        ("#id", ACQUIRE_ID),
        ("#purge", LEASE_PURGE_AT),
    ];
    let expression = if let Action::Update { expression, .. } = &action { expression } else { "" };
    // A name that no expression uses is refused.
    let used = NAMES.iter().filter(|(name, _)| expression.contains(name) || condition.contains(name));
    ConditionalWrite {
        names: used.map(|(placeholder, name)| ((*placeholder).to_owned(), (*name).to_owned())).collect(),
        values: values.into_iter().map(|(placeholder, value)| (placeholder.to_owned(), value)).collect(),
        action,
        condition: condition.into(),
        returning: Some(ReturnValue::AllNew),
    }
}

type Placeholders = (HashMap<String, String>, HashMap<String, AttributeValue>);

fn placeholders_of(at: ItemVersion) -> Placeholders {
    let names = [("#version", VERSION), ("#incarnation", INCARNATION)];
    let values = [(":at", number(at.version.get())), (":incarnation", bytes(*at.incarnation.as_bytes()))];
    (
        names.map(|(placeholder, name)| (placeholder.to_owned(), name.to_owned())).into(),
        values.map(|(placeholder, value)| (placeholder.to_owned(), value)).into(),
    )
}
