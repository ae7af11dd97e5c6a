//! Leases: acquire, renew, release, and the check of a held lease.

use super::write::Returned;
use super::write::{ConditionalWrite, Operation};
use crate::format::AttributeValue;
use crate::format::item::Attributes;
use crate::format::row::number;
use std::collections::HashMap;

// Only a row of this crate's has an id. The row of another library is no free lease.
const IS_FREE: &str = "attribute_not_exists(#key) OR \
                       (attribute_exists(#id) AND (attribute_not_exists(#holder) OR #expires < :cutoff))";
const IS_FREE_FOR_NEW: &str = "attribute_not_exists(#key) OR \
     (attribute_exists(#id) AND ((attribute_not_exists(#holder) AND #id <> :id) OR #expires < :cutoff))";
const IS_HELD: &str = "#token = :token AND attribute_exists(#holder)";
const IS_HELD_AT: &str = "#token = :token AND attribute_exists(#holder) AND #renewals = :at";
const IS_UNDER_TOKEN: &str = "#token = :token";
const IS_UNDER_TOKEN_AT: &str = "#token = :token AND #renewals = :at";

/// The partition key of a table of leases, a string.
pub const LEASE_KEY: &str = "leaseKey";
/// String: the holder. Missing if the lease is free.
pub const HOLDER: &str = "holder";
/// Number: the token, which rises with every acquire.
pub const TOKEN: &str = "token";
/// Number: the renewals since the last acquire.
pub const RENEWALS: &str = "renewals";
/// Number, epoch milliseconds: the end of the lease by the clock of its holder.
pub const EXPIRES_AT: &str = "expiresAt";
/// Binary: the id of the last acquire.
pub const ACQUIRE_ID: &str = "acquireId";
/// Number, epoch seconds: the time after which TTL may remove the row.
pub const LEASE_PURGE_AT: &str = "purgeAt";

/// The key of a lease in a table whose partition key has this name.
pub fn lease_key(name: &str, key: &str) -> Attributes {
    HashMap::from([(name.to_owned(), AttributeValue::S(key.to_owned()))])
}

/// The times of an acquire or a renewal, in milliseconds since 1970, by the clock of the caller before the first send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeaseTimes {
    /// The end of the lease.
    pub expires_at: u64,
    /// A lease with an end before this time is free: even holders with clocks behind no longer believe in it.
    pub cutoff: u64,
    /// The number from which the token rises if no row remembers a token.
    pub floor: u64,
}

/// Acquires a free or ended lease. Returns the new row. With `once`, this id acquires only once: a late copy leaves the
/// lease alone after it was acquired and released, unless another caller has acquired it in between.
pub fn acquire(
    key: Attributes,
    holder: &str,
    (id, once): (&[u8], bool),
    times: LeaseTimes,
    purge_at: u64,
) -> ConditionalWrite {
    let expression = "SET #holder = :holder, #token = if_not_exists(#token, :floor) + :one, #renewals = :zero, \
                      #expires = :expires, #id = :id, #purge = :purge";
    let values = [
        (":holder", AttributeValue::S(holder.to_owned())),
        (":floor", number(times.floor)),
        (":one", number(1)),
        (":zero", number(0)),
        (":expires", number(times.expires_at)),
        (":id", AttributeValue::B(Vec::from(id))),
        (":purge", number(purge_at)),
        (":cutoff", number(times.cutoff)),
    ];
    let condition = if once { IS_FREE_FOR_NEW } else { IS_FREE };
    let key_name = key.keys().next().cloned().unwrap_or_default();
    let mut write = on_lease(update_of(key, expression), condition, values);
    write.names.insert("#key".to_owned(), key_name);
    write
}

/// Renews a lease held under this token with exactly `at` renewals. Returns the new row.
pub fn renew(key: Attributes, token: u64, at: u64, expires_at: u64, purge_at: u64) -> ConditionalWrite {
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

/// Removes the holder of a lease last acquired with this token, and with exactly `at` renewals, if given.
pub fn release(key: Attributes, token: u64, at: Option<u64>, purge_at: u64) -> ConditionalWrite {
    let expression = "SET #purge = :purge REMOVE #holder";
    let values = [(":token", number(token)), (":purge", number(purge_at))];
    let condition = if at.is_some() { IS_UNDER_TOKEN_AT } else { IS_UNDER_TOKEN };
    let at = at.map(|at| (":at", number(at)));
    on_lease(update_of(key, expression), condition, values.into_iter().chain(at))
}

/// Checks that a lease is held under this token. It may have ended, as long as no other caller has acquired it.
pub fn check_held(key: Attributes, token: u64) -> ConditionalWrite {
    on_lease(Operation::Check { key }, IS_HELD, [(":token", number(token))])
}

fn update_of(key: Attributes, expression: &str) -> Operation {
    Operation::Update { key, expression: expression.to_owned() }
}

fn on_lease(
    action: Operation,
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
    let expression = if let Operation::Update { expression, .. } = &action { expression } else { "" };
    // DynamoDB refuses unused names.
    let used = NAMES.iter().filter(|(name, _)| expression.contains(name) || condition.contains(name));
    ConditionalWrite {
        names: used.map(|(placeholder, name)| ((*placeholder).to_owned(), (*name).to_owned())).collect(),
        values: values.into_iter().map(|(placeholder, value)| (placeholder.to_owned(), value)).collect(),
        action,
        condition: condition.into(),
        returning: Some(Returned::AllNew),
    }
}
