//! Creates the tables of the template in any DynamoDB.

use std::{collections::BTreeMap, error::Error, time::Duration};

use aws_sdk_dynamodb::{
    Client,
    client::Waiters,
    error::{BuildError, SdkError},
    types::{
        AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, Projection, TableDescription,
        TimeToLiveSpecification,
    },
};

use crate::{
    dynamodb::DynamoDb,
    failure::Failure,
    template::{Index, KeyAttribute, Table},
};

/// Creates missing tables, and checks the keys and the indexes of the existing ones.
///
/// # Errors
/// No DynamoDB answers, a request is refused, or an existing table or index has another key.
pub async fn create(dynamodb: &DynamoDb, tables: &[Table]) -> Result<(), Failure> {
    let client = dynamodb.client().await;
    for table in tables {
        if let Some(found) = existing(&client, dynamodb, table).await? {
            check_keys(dynamodb, table, &found)?;
            continue;
        }
        create_table(&client, table).await.map_err(|error| refused(dynamodb, table, error.as_ref()))?;
        if let Err(error) = set_ttl(&client, table).await {
            // Continues without TTL. Expired items do not count in any case; here they are only kept longer.
            let (table, reason) = (&table.name, reason(error.as_ref()));
            eprintln!("{table} is without TTL, this DynamoDB refuses it ({reason}).");
        }
    }
    Ok(())
}

async fn existing(client: &Client, dynamodb: &DynamoDb, table: &Table) -> Result<Option<TableDescription>, Failure> {
    match client.describe_table().table_name(&table.name).send().await {
        Ok(answer) => Ok(answer.table),
        Err(SdkError::ServiceError(error)) if error.err().is_resource_not_found_exception() => Ok(None),
        Err(error) => Err(Failure::new(format!(
            "No DynamoDB answers at {} ({}): start one there, or leave --endpoint out to use the embedded one.",
            dynamodb.endpoint,
            reason(&error)
        ))),
    }
}

async fn create_table(client: &Client, table: &Table) -> Result<(), Box<dyn Error>> {
    let indexes = table.indexes.iter().map(|index| {
        let built = GlobalSecondaryIndex::builder().index_name(&index.name).projection(projection(index));
        built.set_key_schema(Some(schema(&index.key)?)).build()
    });
    let indexes = indexes.collect::<Result<Vec<_>, _>>()?;
    let request = client.create_table().table_name(&table.name).billing_mode(BillingMode::PayPerRequest);
    let request =
        request.set_attribute_definitions(Some(definitions(table)?)).set_key_schema(Some(schema(&table.key)?));
    // DynamoDB refuses an empty list of indexes.
    request.set_global_secondary_indexes(Some(indexes).filter(|indexes| !indexes.is_empty())).send().await?;
    client.wait_until_table_exists().table_name(&table.name).wait(Duration::from_mins(1)).await?;
    Ok(())
}

/// Every attribute of a key of the table or of its indexes, once.
fn definitions(table: &Table) -> Result<Vec<AttributeDefinition>, BuildError> {
    let keys = table.indexes.iter().flat_map(|index| &index.key).chain(&table.key);
    let kinds: BTreeMap<_, _> = keys.map(|attribute| (&attribute.name, attribute.kind.as_str())).collect();
    let definition = |(name, kind): (&String, &str)| {
        AttributeDefinition::builder().attribute_name(name).attribute_type(kind.into()).build()
    };
    kinds.into_iter().map(definition).collect()
}

fn schema(key: &[KeyAttribute]) -> Result<Vec<KeySchemaElement>, BuildError> {
    let role = |attribute: &KeyAttribute| {
        let role = KeySchemaElement::builder().attribute_name(&attribute.name);
        role.key_type(attribute.role.as_str().into()).build()
    };
    key.iter().map(role).collect()
}

fn projection(index: &Index) -> Projection {
    let projection = Projection::builder().projection_type(index.projection.as_str().into());
    let includes = Some(index.includes.clone()).filter(|names| !names.is_empty());
    projection.set_non_key_attributes(includes).build()
}

async fn set_ttl(client: &Client, table: &Table) -> Result<(), Box<dyn Error>> {
    let Some(attribute) = &table.ttl_attribute else {
        return Ok(());
    };
    let specification = TimeToLiveSpecification::builder().attribute_name(attribute).enabled(true).build()?;
    client.update_time_to_live().table_name(&table.name).time_to_live_specification(specification).send().await?;
    Ok(())
}

fn check_keys(dynamodb: &DynamoDb, table: &Table, found: &TableDescription) -> Result<(), Failure> {
    let kind_of = |name: &str| {
        found
            .attribute_definitions()
            .iter()
            .find(|definition| definition.attribute_name() == name)
            .map(|definition| definition.attribute_type().as_str())
    };
    let is = |found: &[KeySchemaElement], key: &[KeyAttribute]| {
        found.len() == key.len()
            && found.iter().zip(key).all(|(found, wanted)| {
                found.attribute_name() == wanted.name
                    && found.key_type().as_str() == wanted.role
                    && kind_of(&wanted.name) == Some(wanted.kind.as_str())
            })
    };
    let differs = |what: String| {
        Failure::new(format!(
            "{} holds {what} with another key than template.yaml declares: delete that table or use another place.",
            dynamodb.kind
        ))
    };
    if !is(found.key_schema(), &table.key) {
        return Err(differs(format!("a table {}", table.name)));
    }
    for index in &table.indexes {
        let known = found.global_secondary_indexes().iter().find(|known| known.index_name() == Some(&index.name));
        if !known.is_some_and(|known| is(known.key_schema(), &index.key)) {
            return Err(differs(format!("{} without its index {}, or an index of that name", table.name, index.name)));
        }
    }
    Ok(())
}

fn refused(dynamodb: &DynamoDb, table: &Table, error: &dyn Error) -> Failure {
    Failure::new(format!(
        "{} at {} does not create table {}, change what it complains about: {}",
        dynamodb.kind,
        dynamodb.endpoint,
        table.name,
        reason(error)
    ))
}

/// The innermost cause. The outer errors of the SDK only say which layer failed.
pub(crate) fn reason(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
