//! The writes and checks that this crate sends. This is the only file with the text of condition expressions.

use crate::protocol::item::{Attributes, Diff};
use crate::protocol::judge::{WriteId, slot_of};
use crate::protocol::row::{FENCE, INCARNATION, PURGE_AT, VERSION, WRITES, bytes, number};
use crate::version::ItemVersion;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;

/// One conditional write. It can be sent any number of times.
#[derive(Clone, Debug)]
pub(crate) struct ConditionalWrite {
    pub action: Action,
    pub condition: Cow<'static, str>,
    pub names: HashMap<String, String>,
    pub values: HashMap<String, AttributeValue>,
    /// The attributes that an applied write returns. A transaction returns none.
    pub returning: Option<ReturnValue>,
}

/// The effect of a conditional write whose condition holds.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// Replaces the whole item.
    Put { item: Attributes },
    /// Changes the attributes that the expression names.
    Update { key: Attributes, expression: String },
    /// Changes nothing. Only a transaction can have such a step.
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

/// The longest update expression, in bytes (`DynamoDB` quota "expression length").
const MAX_EXPRESSION: usize = 4096;
/// The longest attribute name that an expression can use, in bytes.
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

/// Replaces the row with `item`, its complete next state, if the row is still at `at`.
pub(crate) fn put_at(at: ItemVersion, item: Attributes) -> ConditionalWrite {
    let (names, values) = placeholders_of(at);
    ConditionalWrite { action: Action::Put { item }, condition: IS_AT.into(), names, values, returning: None }
}

/// Applies `diff` to the row, raises its version and stores `id` in the slot, if the row is still at `at`. The row is
/// live afterwards.
///
/// Returns `None` if the expression would exceed a limit of `DynamoDB`. Send the whole item instead.
pub(crate) fn update_at(key: Attributes, at: ItemVersion, id: WriteId, diff: &Diff) -> Option<ConditionalWrite> {
    update(key, at, id, diff, None)
}

/// Applies `diff` to the row and makes it a tombstone until `purge_at` (epoch seconds), if the row is still live at
/// `at`.
///
/// Returns `None` if the expression would exceed a limit of `DynamoDB`.
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

/// Puts the write under a fencing token, if there is one. A row that has seen a higher token then refuses the write,
/// and an applied write stores its token in the row.
///
/// Returns `None` if the expression would exceed a limit of `DynamoDB`.
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
    // A row that does not exist has seen no token. DynamoDB refuses names and values that no expression uses.
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

/// Adds `by` to a number of a live item, if the number is between `low` and `high` (both included). Raises the version.
/// Leaves no id in the row, so nothing recognises the addition later.
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

/// The attributes that order the instances of one key.
#[derive(Clone, Copy)]
pub(crate) struct Ordering {
    /// The partition key.
    pub key: &'static str,
    /// The attribute that orders instances: a number.
    pub order: &'static str,
    /// The attribute that names an instance: a string. It decides ties.
    pub name: &'static str,
}

/// Replaces the row with this instance, if there is no row or the row holds an older instance.
pub(crate) fn put_if_newer(by: Ordering, item: Attributes) -> ConditionalWrite {
    in_order(by, item, IS_OLDER, None)
}

/// Replaces the row with the tombstone of this instance, if there is no row or the row holds this instance or an older
/// one. A tombstone without a name stands after every instance with its number. Returns the row that it replaced.
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
/// String: the holder. Missing if nobody holds the lease.
pub(crate) const HOLDER: &str = "holder";
/// Number: the token, which rises with every acquire.
pub(crate) const TOKEN: &str = "token";
/// Number: the renewals since the last acquire.
pub(crate) const RENEWALS: &str = "renewals";
/// Number, epoch milliseconds: the end of the lease by the clock of its holder.
pub(crate) const EXPIRES_AT: &str = "expiresAt";
/// Binary: the id of the last acquire.
pub(crate) const ACQUIRE_ID: &str = "acquireId";
/// Number, epoch seconds: the time after which TTL may remove the row.
pub(crate) const LEASE_PURGE_AT: &str = "purgeAt";

/// The key attributes of a lease.
pub(crate) fn lease_key(key: &str) -> Attributes {
    HashMap::from([(LEASE_KEY.to_owned(), AttributeValue::S(key.to_owned()))])
}

/// The values that an acquire writes, and the rule by which it takes a lease for free.
pub(crate) struct Acquire<'a> {
    pub holder: &'a str,
    pub id: &'a [u8],
    /// Whether this id may acquire only once. A late copy then leaves the lease alone after it was acquired and
    /// released.
    pub once: bool,
    /// The number from which the token rises if no row remembers a token.
    pub floor: u64,
    pub expires_at: u64,
    pub purge_at: u64,
    /// A lease that ended before this time is free.
    pub cutoff: u64,
}

/// Acquires a lease that nobody holds, or that has ended. Returns the new row.
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

/// Renews a lease that is held under this token and has exactly `at` renewals. Returns the new row.
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

/// Removes the holder of a lease whose last acquire has this token. With `at`, the lease must also have exactly that
/// many renewals.
pub(crate) fn release(key: &str, token: u64, at: Option<u64>, purge_at: u64) -> ConditionalWrite {
    let expression = "SET #purge = :purge REMOVE #holder";
    let values = [(":token", number(token)), (":purge", number(purge_at))];
    let condition = if at.is_some() { IS_UNDER_TOKEN_AT } else { IS_UNDER_TOKEN };
    let at = at.map(|at| (":at", number(at)));
    on_lease(update_of(key, expression), condition, values.into_iter().chain(at))
}

/// Checks that a lease is held under this token. The lease may have ended: until another caller acquires it, nobody
/// else holds it.
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
    // DynamoDB refuses a name that no expression uses.
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
