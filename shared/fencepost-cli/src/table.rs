//! The table of a run: its client and its key, with the notation of keys: the JSON of `DynamoDB`, such as
//! `{"accountId":{"S":"a-1"}}`.

use crate::args::Target;
use crate::{Failure, reason};
use aws_config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::Credentials;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fencepost::AttributeValue;
use fencepost::lambda::https_client;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::env;

/// The credentials for another endpoint if the user has none. Local engines do not check signatures.
const PLACEHOLDER: &str = "local";

/// An existing table.
pub struct Table {
    /// A client for its DynamoDB.
    pub client: Client,
    /// Its id. Another table under the same name has another id.
    pub id: Option<String>,
    /// The names of the attributes that are its key: the partition key first.
    pub key: &'static [&'static str],
    /// The types of these attributes: `S`, `N` or `B`.
    kinds: Vec<String>,
}

impl Table {
    /// Finds the table.
    ///
    /// # Errors
    /// There is no region, no answer from DynamoDB or no such table.
    pub async fn find(target: &Target) -> Result<Self, Failure> {
        Self::described_by(client(target.endpoint.as_deref()).await?, &target.table).await
    }

    /// Finds the table through this client.
    ///
    /// # Errors
    /// There is no answer from DynamoDB or no such table.
    pub async fn described_by(client: Client, name: &str) -> Result<Self, Failure> {
        let answer = client.describe_table().table_name(name).send().await.map_err(|error| {
            let reason = reason(&error);
            Failure::new(format!(
                "{name} cannot be described ({reason}): correct the name, the region or the credentials."
            ))
        })?;
        let table = answer.table.ok_or_else(|| Failure::new(format!("{name} has no description.")))?;
        let kind_of = |name: &str| {
            let found = table.attribute_definitions().iter().find(|definition| definition.attribute_name() == name);
            found.map_or_else(String::new, |definition| definition.attribute_type().as_str().to_owned())
        };
        let mut elements: Vec<_> = table.key_schema().iter().collect();
        elements.sort_by_key(|element| element.key_type().as_str() != "HASH");
        if elements.is_empty() {
            return Err(Failure::new(format!("The description of {name} has no key.")));
        }
        let names: Vec<&'static str> =
            elements.iter().map(|element| &*element.attribute_name().to_owned().leak()).collect();
        let kinds = names.iter().map(|name| kind_of(name)).collect();
        Ok(Table { id: table.table_id().map(str::to_owned), client, key: names.leak(), kinds })
    }

    /// The key of one row, from the texts that the user gave.
    ///
    /// # Errors
    /// A usage failure if a part is missing, is none of the key, or has another type.
    pub fn key(&self, parts: &[(String, String)]) -> Result<Key, Failure> {
        let names = self.key.join(" and ");
        if parts.len() != self.key.len() || parts.iter().any(|(name, _)| !self.key.contains(&name.as_str())) {
            return Err(Failure::usage(format!("the key of the table is {names}, so give --key for exactly that")));
        }
        let part = |(name, text): &(String, String)| {
            let index = self.key.iter().position(|own| own == name)?;
            Some((name.clone(), typed(&self.kinds[index], text)?))
        };
        let key: Option<Key> = parts.iter().map(part).collect();
        key.ok_or_else(|| Failure::usage(format!("the key of the table is {names}: binary parts are base64")))
    }
}

/// A client of the DynamoDB at this address, or of that of the region.
///
/// # Errors
/// There is no region.
pub async fn client(endpoint: Option<&str>) -> Result<Client, Failure> {
    let mut loader = aws_config::defaults(BehaviorVersion::latest()).http_client(https_client());
    if let Some(endpoint) = endpoint {
        loader = loader.endpoint_url(endpoint);
        let is_set = |name: &str| env::var_os(name).is_some();
        if !is_set("AWS_ACCESS_KEY_ID") && !is_set("AWS_PROFILE") {
            loader = loader.credentials_provider(Credentials::new(PLACEHOLDER, PLACEHOLDER, None, None, "placeholder"));
        }
        if !is_set("AWS_REGION") {
            loader = loader.region(Region::new("us-east-1"));
        }
    }
    let config = loader.load().await;
    if config.region().is_none() {
        return Err(Failure::new("No region is set: set AWS_REGION, or name another DynamoDB with --endpoint URL."));
    }
    Ok(Client::new(&config))
}

/// A key, as attributes.
pub type Key = HashMap<String, AttributeValue>;

/// The key as JSON. Its parts are in the order of their names.
#[must_use]
pub fn to_json(key: &Key) -> Value {
    serde_json::to_value(key.iter().collect::<BTreeMap<_, _>>()).unwrap_or_default()
}

/// Reads a key from its JSON. `None` if it is none.
#[must_use]
pub fn from_json(key: &Value) -> Option<Key> {
    key.as_object()?.iter().map(|(name, value)| Some((name.clone(), part(value)?))).collect()
}

fn part(value: &Value) -> Option<AttributeValue> {
    let (kind, value) = value.as_object()?.iter().next()?;
    typed(kind, value.as_str()?)
}

/// The part of a key with this type and this text. Bytes are base64.
#[must_use]
pub fn typed(kind: &str, text: &str) -> Option<AttributeValue> {
    match kind {
        "S" => Some(AttributeValue::S(text.to_owned())),
        "N" => Some(AttributeValue::N(text.to_owned())),
        "B" => STANDARD.decode(text).ok().map(AttributeValue::B),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_key_is_read_back_from_its_json() {
        let key = Key::from([
            ("b".to_owned(), AttributeValue::N("7".to_owned())),
            ("a".to_owned(), AttributeValue::B(vec![0, 255])),
            ("c".to_owned(), AttributeValue::S("\"é".to_owned())),
        ]);
        let json = to_json(&key);
        assert_eq!(json.to_string(), r#"{"a":{"B":"AP8="},"b":{"N":"7"},"c":{"S":"\"é"}}"#);
        assert_eq!(from_json(&json), Some(key));
        for other in
            [json!(null), json!({"a": {}}), json!({"a": {"B": "*"}}), json!({"a": {"S": 1}}), json!({"a": {"M": "x"}})]
        {
            assert_eq!(from_json(&other), None, "{other}");
        }
    }
}
