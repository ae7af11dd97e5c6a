//! Creates the tables of the template in any DynamoDB.

use std::{error::Error, time::Duration};

use aws_sdk_dynamodb::{
    Client,
    client::Waiters,
    error::{BuildError, SdkError},
    types::{AttributeDefinition, BillingMode, KeySchemaElement, TableDescription, TimeToLiveSpecification},
};

use crate::{
    dynamodb::DynamoDb,
    failure::Failure,
    template::{KeyAttribute, Table},
};

/// Creates missing tables, and checks the keys of existing ones.
///
/// # Errors
/// No DynamoDB answers, it refuses a request, or an existing table has another key.
pub async fn create(dynamodb: &DynamoDb, tables: &[Table]) -> Result<(), Failure> {
    let client = dynamodb.client().await;
    for table in tables {
        if let Some(found) = existing(&client, dynamodb, table).await? {
            check_key(dynamodb, table, &found)?;
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
    let mut request = client.create_table().table_name(&table.name).billing_mode(BillingMode::PayPerRequest);
    for attribute in &table.key {
        let (definition, role) = key_attribute(attribute)?;
        request = request.attribute_definitions(definition).key_schema(role);
    }
    request.send().await?;
    client.wait_until_table_exists().table_name(&table.name).wait(Duration::from_mins(1)).await?;
    Ok(())
}

fn key_attribute(attribute: &KeyAttribute) -> Result<(AttributeDefinition, KeySchemaElement), BuildError> {
    let definition = AttributeDefinition::builder()
        .attribute_name(&attribute.name)
        .attribute_type(attribute.kind.as_str().into())
        .build()?;
    let role =
        KeySchemaElement::builder().attribute_name(&attribute.name).key_type(attribute.role.as_str().into()).build()?;
    Ok((definition, role))
}

async fn set_ttl(client: &Client, table: &Table) -> Result<(), Box<dyn Error>> {
    let Some(attribute) = &table.ttl_attribute else {
        return Ok(());
    };
    let specification = TimeToLiveSpecification::builder().attribute_name(attribute).enabled(true).build()?;
    client.update_time_to_live().table_name(&table.name).time_to_live_specification(specification).send().await?;
    Ok(())
}

fn check_key(dynamodb: &DynamoDb, table: &Table, found: &TableDescription) -> Result<(), Failure> {
    let kind_of = |name: &str| {
        found
            .attribute_definitions()
            .iter()
            .find(|definition| definition.attribute_name() == name)
            .map(|definition| definition.attribute_type().as_str())
    };
    let same = found.key_schema().len() == table.key.len()
        && found.key_schema().iter().zip(&table.key).all(|(found, wanted)| {
            found.attribute_name() == wanted.name
                && found.key_type().as_str() == wanted.role
                && kind_of(&wanted.name) == Some(wanted.kind.as_str())
        });
    if same {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{} holds a table {} with another key than template.yaml declares: delete that table or use another place.",
        dynamodb.kind, table.name
    )))
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
