//! [`Store::check`]: asks for a table, and says in what it differs from its schema.

use super::schema::{IndexSchema, Keys, TableSchema, Ttl};
use crate::driver::read_page;
use crate::driver::send::{Found, ReadRows};
use crate::error::{Error, Failure, FailureKind, Place};
use crate::listing::Projection;
use crate::rejection::Rejection;
use crate::store::Store;
use crate::table::Record;
use aws_sdk_dynamodb::types::{
    self, IndexStatus, KeySchemaElement, KeyType, MultiRegionConsistency, ProjectionType, TableDescription,
    TableStatus, TimeToLiveDescription, TimeToLiveStatus,
};
use fencepost_core::format::layout::Regions;
use std::fmt;
use std::sync::PoisonError;

/// Why a table cannot be used as it is: it differs from its schema, or the program may not look at it. `Display` shows a
/// sentence on each line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SchemaMismatch {
    /// A sentence for each difference: what the table has, what is needed, and the remedy. Never empty.
    pub sentences: Vec<String>,
}

impl fmt::Display for SchemaMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentences.join("\n"))
    }
}

impl Store {
    /// Checks at the start of a program that the table with this name has what its `Record` needs: see
    /// [`TableSchema::of`]. For types of keys and for indexes, use [`Store::check_table`].
    ///
    /// Sends `DescribeTable` and `DescribeTimeToLive`, for which the program needs the permissions. Changes nothing.
    ///
    /// ```
    /// # use fencepost::{Error, Record, SchemaMismatch, Store};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize, Record)]
    /// # #[record(key = "accountId")]
    /// # struct Account { balance: u64 }
    /// async fn start(store: &Store) -> Result<(), Error<SchemaMismatch>> {
    ///     store.check::<Account>("Accounts").await
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Error::Refused`]: there is no such table, it lacks what is needed, or a permission is missing. The reason has all
    /// differences at once: correct them, and start again. [`Error::Failed`]: see [`Failure`].
    pub async fn check<T: Record>(&self, table: &str) -> Result<(), Error<SchemaMismatch>> {
        self.check_table(table, &TableSchema::of::<T>()).await
    }

    /// Checks that the table with this name has what this schema needs, as [`Store::check`] does.
    ///
    /// # Errors
    /// See [`Store::check`].
    pub async fn check_table(&self, table: &str, schema: &TableSchema) -> Result<(), Error<SchemaMismatch>> {
        let (sender, call, found) = (self.sender(), &self.call(), Found::default());
        let checked = || Place::of_table("check", table);
        let read = read_page(sender, call, checked, &|leave| Box::pin(sender.describe(table, &found, leave))).await;
        let place = format!("{table} in the region {}", sender.region().unwrap_or("of the client"));
        let sentences = match answer(read, found, (&place, "DescribeTable"))? {
            Err(sentence) => vec![sentence],
            Ok(described) => {
                let mut sentences = differences(schema, table, &described);
                // A table with multi-Region strong consistency has no TTL.
                let has_ttl = schema.regions.is_some() || !is_strong(&described);
                if is_usable(&described) && has_ttl {
                    let found = Found::default();
                    let read =
                        read_page(sender, call, checked, &|leave| Box::pin(sender.describe_ttl(table, &found, leave)))
                            .await;
                    let ttl = answer(read, found, (&place, "DescribeTimeToLive"))?;
                    sentences.extend(ttl.map_or_else(Some, |ttl| ttl_difference(schema, table, &ttl)));
                }
                sentences
            }
        };
        if sentences.is_empty() { Ok(()) } else { Err(Error::Refused(SchemaMismatch { sentences })) }
    }
}

/// The description, or why there is none.
fn answer<D>(
    read: Result<ReadRows, Failure>,
    found: Found<D>,
    (table, operation): (&str, &str),
) -> Result<Result<D, String>, Failure> {
    let missing = || format!("There is no table {table}: create it, or correct its name or the region.");
    match read {
        Ok(_) => Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner).ok_or_else(missing)),
        Err(Failure { kind: FailureKind::Rejected { source }, .. }) => {
            match Rejection::codes_of(&source).first().and_then(Option::as_deref) {
                Some("ResourceNotFoundException") => Ok(Err(missing())),
                Some("AccessDeniedException") => Ok(Err(format!(
                    "The program may not look at the table {table}: allow it dynamodb:{operation} on that table."
                ))),
                _ => Err(Failure::of(FailureKind::Rejected { source })),
            }
        }
        Err(failure) => Err(failure),
    }
}

/// Whether items can be read and written.
fn is_usable(found: &TableDescription) -> bool {
    matches!(found.table_status(), None | Some(TableStatus::Active | TableStatus::Updating))
}

fn is_strong(found: &TableDescription) -> bool {
    found.multi_region_consistency() == Some(&MultiRegionConsistency::Strong)
}

fn differences(schema: &TableSchema, table: &str, found: &TableDescription) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(status) = found.table_status().filter(|_| !is_usable(found)) {
        sentences
            .push(format!("The table {table} is {status}, and can be used when it is ACTIVE: wait, and check again."));
    }
    sentences.extend(key_difference((&schema.keys, 1), found.key_schema(), schema, found).map(|difference| {
        format!(
            "The key of the table {table} is {difference}: a key cannot be changed, so correct the name of the table or its \
             Record, or create another table."
        )
    }));
    let (has, say) = if is_strong(found) { ("has", "do not say") } else { ("lacks", "say") };
    if schema.regions.is_some_and(|regions| (regions == Regions::Strong) != is_strong(found)) {
        sentences.push(format!(
            "The table {table} {has} multi-Region strong consistency, and its settings {say} in_regions: correct the settings, \
             or create another table."
        ));
    }
    sentences.extend(schema.indexes.iter().filter_map(|index| index_difference(index, schema, table, found)));
    sentences
}

/// The key that was found, and the needed one if it is another.
fn key_difference(
    (needed, partitions): (&Keys, usize),
    key: &[KeySchemaElement],
    schema: &TableSchema,
    found: &TableDescription,
) -> Option<String> {
    let kind_of = |name: &String| {
        let kind = found.attribute_definitions().iter().find(|kind| kind.attribute_name() == name)?;
        Some(kind.attribute_type())
    };
    let names: Keys = key.iter().map(|part| part.attribute_name().to_owned()).collect(); // the partition key comes first
    let differs =
        |name: &String| schema.type_of(name).is_some_and(|needed| kind_of(name).is_some_and(|kind| kind != needed));
    let part = |name: &String, kind: Option<_>| kind.map_or_else(|| name.clone(), |kind| format!("{name} ({kind})"));
    let shown = |parts: Vec<String>, partitions: usize| {
        let (partition, sort) = parts.split_at(partitions.min(parts.len()));
        let sort = if sort.is_empty() { String::new() } else { format!(" with the sort key {}", sort.join(", ")) };
        format!("{}{sort}", partition.join(", "))
    };
    let has = key.iter().filter(|part| *part.key_type() == KeyType::Hash).count();
    (names != *needed || has != partitions || needed.iter().any(differs)).then(|| {
        let found = shown(names.iter().map(|name| part(name, kind_of(name))).collect(), has);
        let needed = shown(needed.iter().map(|name| part(name, schema.type_of(name))).collect(), partitions);
        format!("{found}, and {needed} is needed")
    })
}

fn index_difference(
    IndexSchema { name, keys, partitions, is_local, projection }: &IndexSchema,
    schema: &TableSchema,
    table: &str,
    found: &TableDescription,
) -> Option<String> {
    let global = found.global_secondary_indexes().iter();
    let global = global.map(|one| (false, one.index_name(), one.key_schema(), one.projection(), one.index_status()));
    let local = found.local_secondary_indexes().iter();
    let local = local.map(|one| (true, one.index_name(), one.key_schema(), one.projection(), None));
    let index = global.chain(local).find(|(is, named, ..)| is == is_local && *named == Some(name));
    let Some((.., key, projected, status)) = index else {
        let kind = if *is_local { "local" } else { "global" };
        return Some(format!(
            "The table {table} has no {kind} index {name}, which the program queries: {}.",
            remedy(*is_local)
        ));
    };
    let place = format!("index {name} of the table {table}");
    let kind = projected.and_then(types::Projection::projection_type).map_or("nothing", ProjectionType::as_str);
    if let Some(difference) = key_difference((keys, *partitions), key, schema, found) {
        Some(format!("The key of the {place} is {difference}: {}.", remedy(*is_local)))
    } else if let Some(needed) = lacks(*projection, projected) {
        Some(format!("The {place} projects {kind}, and {needed} is needed: {}.", remedy(*is_local)))
    } else {
        let status = status.filter(|status| matches!(status, IndexStatus::Creating | IndexStatus::Deleting))?;
        Some(format!("The {place} is {status}, and can be used when it is ACTIVE: wait, and check again."))
    }
}

fn remedy(is_local: bool) -> &'static str {
    if is_local {
        "create another table with this index, because a local one cannot be added, or correct its Index"
    } else {
        "create the index with the key and the projection of its Index, or correct the Index"
    }
}

/// What a projection lacks.
fn lacks(needed: Projection, found: Option<&types::Projection>) -> Option<String> {
    let (kind, names) = (found?.projection_type(), found?.non_key_attributes());
    match needed {
        _ if kind == Some(&ProjectionType::All) => None,
        Projection::KeysOnly => None,
        Projection::All => Some("ALL".to_owned()),
        Projection::Include(needed) => {
            needed.iter().find(|name| !names.iter().any(|has| has == *name)).map(ToString::to_string)
        }
    }
}

fn ttl_difference(schema: &TableSchema, table: &str, found: &TimeToLiveDescription) -> Option<String> {
    let is_on = matches!(found.time_to_live_status(), Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling));
    let on = found.attribute_name().filter(|_| is_on);
    let is = on.map_or_else(|| "off".to_owned(), |on| format!("on with the attribute {on}"));
    match (&schema.ttl, on) {
        (Ttl::On(needed), on) if on != Some(needed) => Some(format!(
            "TTL of the table {table} is {is}, and {needed} is needed: switch it on with {needed}, or name another attribute \
             in the Record."
        )),
        (Ttl::Off { with }, Some(on)) if with.as_ref().is_none_or(|with| with == on) => Some(format!(
            "TTL of the table {table} is {is}, and by its settings TTL removes no tombstones: switch it off, or correct the \
             settings or EXPIRES_AT of the Record."
        )),
        _ => None,
    }
}
