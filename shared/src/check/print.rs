//! The templates of a schema, in JSON, which both languages read.

use super::schema::{IndexSchema, Keys, TableSchema, Ttl};
use crate::listing::Projection;
use fencepost_core::format::layout::Regions;

impl TableSchema {
    /// Prints a template of AWS `CloudFormation`, in JSON, with a table of this name that passes
    /// [`Store::check_table`](crate::Store::check_table). It is billed on demand, can be restored to any second of the last 35
    /// days, and stays when the stack goes. A key without a [type](TableSchema::with_key_type) is a string.
    ///
    /// ```
    /// let template = fencepost::TableSchema::leases().to_cloudformation("Leases");
    /// assert!(template.contains(r#""KeySchema": [{ "AttributeName": "leaseKey", "KeyType": "HASH" }]"#));
    /// ```
    ///
    /// # Panics
    /// If the settings say `in_regions`, because no `Record` names the Regions.
    #[must_use]
    pub fn to_cloudformation(&self, table: &str) -> String {
        // The id of a resource has only these characters.
        let id: String = table.chars().filter(char::is_ascii_alphanumeric).collect();
        let head = r#""Type": "AWS::DynamoDB::Table", "DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain""#;
        let properties = self.members(table, false);
        format!(
            "{{ \"Resources\": {{ \"{id}Table\": {{\n  {head}, \"Properties\": {{\n    {properties}\n  }}\n}} }} }}\n"
        )
    }

    /// Prints a configuration of Terraform with the table of [`TableSchema::to_cloudformation`], in JSON, for a file named
    /// `*.tf.json`.
    ///
    /// # Panics
    /// If the settings say `in_regions`, because no `Record` names the Regions.
    #[must_use]
    pub fn to_terraform(&self, table: &str) -> String {
        let id = table.replace(|letter: char| !letter.is_ascii_alphanumeric(), "_");
        let members = self.members(table, true);
        format!("{{ \"resource\": {{ \"aws_dynamodb_table\": {{ \"table_{id}\": {{\n    {members}\n}} }} }} }}\n")
    }

    fn members(&self, table: &str, is_terraform: bool) -> String {
        assert!(self.regions != Some(Regions::Strong), "no Record names the Regions of a table that has several");
        let word = |one, other| if is_terraform { other } else { one };
        let keys = |keys: &Keys, partitions: usize, is_local| {
            let has_several = partitions > 1 || keys.len() > partitions + 1;
            let [hash, range] =
                if is_terraform && !has_several { ["hash_key", "range_key"] } else { ["HASH", "RANGE"] };
            let role = |at| if at < partitions { hash } else { range };
            let parts = keys.iter().enumerate().map(|(at, name)| (name, role(at)));
            if is_terraform && has_several {
                let part = |(name, role)| format!(r#"{{ "attribute_name": {name:?}, "key_type": "{role}" }}"#);
                return format!(r#""key_schema": {}"#, list(parts.map(part)));
            }
            if is_terraform {
                // The partition key of a local index is that of the table.
                let parts = parts.skip(usize::from(is_local)).map(|(name, role)| format!(r#""{role}": {name:?}"#));
                return parts.collect::<Vec<_>>().join(", ");
            }
            let part = |(name, role)| format!(r#"{{ "AttributeName": {name:?}, "KeyType": "{role}" }}"#);
            format!(r#""KeySchema": {}"#, list(parts.map(part)))
        };
        let all: Vec<_> = self.key_names().collect();
        let names = all.iter().enumerate().filter(|(at, name)| !all[..*at].contains(name));
        let kinds = names.map(|(_, name)| {
            let kind = self.type_of(name).map_or("S", |kind| kind.as_str());
            format!(
                r#"{{ "{}": {name:?}, "{}": "{kind}" }}"#,
                word("AttributeName", "name"),
                word("AttributeType", "type")
            )
        });
        let index = |IndexSchema { name, keys: key, partitions, is_local, projection }: &IndexSchema| {
            let kind = word("ProjectionType", "projection_type");
            let projected = match projection {
                Projection::All => format!(r#""{kind}": "ALL""#),
                Projection::KeysOnly => format!(r#""{kind}": "KEYS_ONLY""#),
                Projection::Include(names) => {
                    format!(r#""{kind}": "INCLUDE", "{}": {names:?}"#, word("NonKeyAttributes", "non_key_attributes"))
                }
            };
            let projected = if is_terraform { projected } else { format!(r#""Projection": {{ {projected} }}"#) };
            format!(
                r#"{{ "{}": {name:?}, {}, {projected} }}"#,
                word("IndexName", "name"),
                keys(key, *partitions, *is_local)
            )
        };
        let enabled = word("PointInTimeRecoveryEnabled", "enabled");
        let mut members = vec![
            format!(r#""{}": {table:?}"#, word("TableName", "name")),
            format!(r#""{}": "PAY_PER_REQUEST""#, word("BillingMode", "billing_mode")),
            format!(r#""{}": true"#, word("DeletionProtectionEnabled", "deletion_protection_enabled")),
            format!(
                r#""{}": {{ "{enabled}": true }}"#,
                word("PointInTimeRecoverySpecification", "point_in_time_recovery")
            ),
            format!(r#""{}": {}"#, word("AttributeDefinitions", "attribute"), list(kinds)),
            keys(&self.keys, 1, false),
        ];
        for (name, is_local) in [
            (word("GlobalSecondaryIndexes", "global_secondary_index"), false),
            (word("LocalSecondaryIndexes", "local_secondary_index"), true),
        ] {
            let mut indexes = self.indexes.iter().filter(|index| index.is_local == is_local).map(index).peekable();
            members.extend(indexes.peek().is_some().then(|| format!(r#""{name}": {}"#, list(indexes))));
        }
        if let Ttl::On(attribute) = &self.ttl {
            let (ttl, name) = (word("TimeToLiveSpecification", "ttl"), word("AttributeName", "attribute_name"));
            members.push(format!(r#""{ttl}": {{ "{name}": {attribute:?}, "{}": true }}"#, word("Enabled", "enabled")));
        }
        members.join(",\n    ")
    }
}

fn list(members: impl Iterator<Item = String>) -> String {
    format!("[{}]", members.collect::<Vec<_>>().join(", "))
}
