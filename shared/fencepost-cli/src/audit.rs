//! `fencepost audit`: checks the changes that a stream or an export of a table shows.

use crate::Failure;
use crate::args::Audited;
use fencepost::maintenance::{Audit, Change, Rule};
use fencepost::{AttributeValue, Timestamp};
use serde::Deserialize;
use serde_json::{Deserializer, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::io::{BufReader, Read, Write};
use std::time::Duration;

type Attributes = HashMap<String, AttributeValue>;

/// One document of the input: an event of Lambda or an answer of `get-records`, which have records, one such record, or one
/// line of an export. No two of them have the same member with different meanings.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Document {
    records: Option<Vec<Document>>,
    #[serde(rename = "dynamodb")]
    dynamodb: Option<Box<Document>>,
    #[serde(rename = "userIdentity")]
    user_identity: Option<Identity>,
    approximate_creation_date_time: Option<Value>,
    stream_view_type: Option<String>,
    old_image: Option<Attributes>,
    new_image: Option<Attributes>,
    keys: Option<Attributes>,
    metadata: Option<Attributes>,
    item: Option<Attributes>,
}

#[derive(Deserialize)]
struct Identity {
    #[serde(rename = "principalId", alias = "PrincipalId")]
    principal_id: String,
}

/// An audit so far.
struct Run<'a, W> {
    audit: Audit,
    is_json: bool,
    changes: u64,
    breaches: BTreeMap<Rule, u64>,
    out: &'a mut W,
}

/// Checks all changes in the input, and writes each breach and the counts. Holds one document at a time.
///
/// # Errors
/// A rule was broken, the input is none that is known, or the output cannot be written.
pub fn run(options: &Audited, input: impl Read, out: &mut impl Write) -> Result<(), Failure> {
    let (changes, breaches) = (0, BTreeMap::new());
    let mut run = Run { audit: options.audit(), is_json: options.json, changes, breaches, out };
    for (number, document) in Deserializer::from_reader(BufReader::new(input)).into_iter().enumerate() {
        let unread =
            |why: String| Failure::usage(format!("document {} of the input cannot be read: {why}", number + 1));
        run.read(document.map_err(|error| unread(error.to_string()))?, &unread)?;
    }
    run.end()
}

impl<W: Write> Run<'_, W> {
    fn read(&mut self, document: Document, unread: &dyn Fn(String) -> Failure) -> Result<(), Failure> {
        match document {
            Document { records: Some(records), .. } => records.into_iter().try_for_each(|one| self.read(one, unread)),
            Document { dynamodb: Some(images), user_identity, .. } => {
                if images.stream_view_type.as_ref().is_some_and(|view| view != "NEW_AND_OLD_IMAGES") {
                    return Err(unread("the stream of the table needs the view NEW_AND_OLD_IMAGES".to_owned()));
                }
                let at = images.approximate_creation_date_time.as_ref().and_then(time_of);
                let at = at.ok_or_else(|| unread("it has no ApproximateCreationDateTime".to_owned()))?;
                let change = Change::new(images.old_image.as_ref(), images.new_image.as_ref(), at);
                let by_ttl = user_identity.is_some_and(|user| user.principal_id == "dynamodb.amazonaws.com");
                self.check(images.keys.as_ref(), &if by_ttl { change.by_ttl() } else { change })
            }
            Document { metadata: Some(metadata), old_image, new_image, keys, .. } => {
                let written = metadata.get("WriteTimestampMicros").and_then(|micros| {
                    let AttributeValue::N(micros) = micros else { return None };
                    Timestamp::from_epoch_millis(micros.parse::<u64>().ok()? / 1000)
                });
                let at = written.ok_or_else(|| unread("its Metadata has no WriteTimestampMicros".to_owned()))?;
                let change = Change::new(old_image.as_ref(), new_image.as_ref(), at);
                self.check(keys.as_ref(), &change.of_a_period())
            }
            Document { item: Some(row), .. } => {
                let at = Timestamp::from_epoch_millis(0).expect("1970 has a timestamp"); // nothing is removed here
                self.check(None, &Change::new(None, Some(&row), at).of_a_period())
            }
            _ => Err(unread("it has none of Records, dynamodb, Metadata and Item".to_owned())),
        }
    }

    fn check(&mut self, keys: Option<&Attributes>, change: &Change<'_>) -> Result<(), Failure> {
        self.changes += 1;
        for breach in self.audit.check(change) {
            *self.breaches.entry(breach.rule).or_default() += 1;
            let (rule, sentence) = (breach.rule.name(), &breach.sentence);
            if self.is_json {
                writeln!(self.out, "{}", json!({"keys": keys, "rule": rule, "sentence": sentence}))?;
            } else {
                let keys = serde_json::to_string(&keys).unwrap_or_default();
                writeln!(self.out, "{keys} {rule}: {sentence}")?;
            }
        }
        Ok(())
    }

    fn end(self) -> Result<(), Failure> {
        let Run { changes, breaches, out, .. } = self;
        let named: BTreeMap<_, _> = breaches.iter().map(|(rule, count)| (rule.name(), count)).collect();
        if self.is_json {
            writeln!(out, "{}", json!({"changes": changes, "breaches": named}))?;
        } else {
            let named: Vec<_> = named.iter().map(|(rule, count)| format!("; {count} of the rule {rule}")).collect();
            writeln!(out, "{changes} changes, {} breaches{}", breaches.values().sum::<u64>(), named.concat())?;
        }
        if breaches.is_empty() { Ok(()) } else { Err(Failure::new("Some changes broke rules.")) }
    }
}

/// The time of a record: seconds since 1970 in events, RFC 3339 in the answers of the AWS CLI.
fn time_of(time: &Value) -> Option<Timestamp> {
    match time {
        Value::Number(seconds) => {
            let since_1970 = Duration::try_from_secs_f64(seconds.as_f64()?).ok()?;
            Timestamp::from_epoch_millis(since_1970.as_millis().try_into().ok()?)
        }
        Value::String(text) => Timestamp::from_rfc3339(text).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Command, parse};
    use std::ffi::OsString;

    const KEYS: &str = r#""Keys": {"id": {"S": "a"}}"#;
    /// A row of this crate at a version, with the ids of the writes that made it.
    fn image(version: u64) -> Value {
        let ids = ["AAAAAAAAAAE", "AAAAAAAAAAI", "AAAAAAAAAAM"].into_iter().zip(0..version);
        let ids: BTreeMap<_, _> = ids.map(|(id, before)| (id, json!({"N": before.to_string()}))).collect();
        let version = version.to_string();
        json!({"id": {"S": "a"}, "_version": {"N": version}, "_incarnation": {"B": "AAAAAAAAAAE="}, "_writes": {"M": ids}})
    }

    fn said(line: &str, input: &str) -> (String, Option<String>) {
        let line = format!("fencepost audit {line}");
        let Ok(Command::Audit(options)) = parse(line.split_whitespace().map(OsString::from)) else { panic!("{line}") };
        let mut out = Vec::new();
        let failure = run(&options, input.as_bytes(), &mut out).err();
        (String::from_utf8(out).expect("text"), failure.map(|failure| format!("{} {failure}", failure.exit_code())))
    }

    #[test]
    fn every_form_of_input_is_read_and_a_breach_is_named_with_its_key() {
        let (one, two, three) = (image(1), image(2), image(3));
        let event = |old: &Value, new: &Value| {
            format!(
                r#"{{"eventName": "MODIFY", "dynamodb": {{"ApproximateCreationDateTime": 1800000000.0, {KEYS}, "OldImage": {old},
                   "NewImage": {new}, "StreamViewType": "NEW_AND_OLD_IMAGES"}}, "eventSource": "aws:dynamodb"}}"#
            )
        };
        let good = event(&one, &two);
        let of_the_cli = good.replace("1800000000.0", r#""2027-01-15T08:00:00+00:00""#);
        let export = format!(
            r#"{{"Metadata": {{"WriteTimestampMicros": {{"N": "1800000000000000"}}}}, {KEYS}, "OldImage": {one}, "NewImage": {three}}}"#
        );
        let full = format!(r#"{{"Item": {two}}}"#);
        let input = [format!(r#"{{"Records": [{good}, {of_the_cli}]}}"#), good, export, full].join("\n");
        assert_eq!(said("", &input), ("5 changes, 0 breaches\n".to_owned(), None));

        let broken = Some("1 Some changes broke rules.".to_owned());
        let skipped = event(&one, &three);
        let (out, failure) = said("", &skipped);
        assert!(out.starts_with(r#"{"id":{"S":"a"}} version: version 1 became 3"#), "{out}");
        assert!(out.ends_with("1 changes, 2 breaches; 1 of the rule version; 1 of the rule write-id\n"), "{out}");
        assert_eq!(failure, broken);
        let removed = event(&one, &two).replace("NewImage", "Gone");
        assert_eq!(said("", &removed).1, broken);
        let by_ttl = removed.replacen(
            '{',
            r#"{"userIdentity": {"principalId": "dynamodb.amazonaws.com", "type": "Service"}, "#,
            1,
        );
        assert_eq!(said("", &by_ttl).1, None);
        let (out, _) = said("--json", &removed);
        let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!((&lines[0]["rule"], &lines[1]["breaches"]["tombstone"]), (&json!("tombstone"), &json!(1)));
    }

    #[test]
    fn a_time_is_read_in_every_notation_of_a_number() {
        let at = Timestamp::from_epoch_millis(1_800_000_000_000);
        for text in ["1800000000", "1800000000.0", "1.8E9", r#""2027-01-15T08:00:00Z""#] {
            assert_eq!(time_of(&serde_json::from_str(text).expect("JSON")), at, "{text}");
        }
        for text in ["-1", "1e300", "18000000000000000000", "null", r#""soon""#] {
            assert_eq!(time_of(&serde_json::from_str(text).expect("JSON")), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_change_is_refused_with_its_place() {
        for (input, why) in [
            ("{}", "document 1 of the input cannot be read: it has none of Records"),
            (r#"{"Records": []} {"a": "#, "document 2"),
            (r#"{"Item": {"a": {"X": 1}}}"#, "document 1"),
            (r#"{"dynamodb": {"StreamViewType": "KEYS_ONLY"}}"#, "NEW_AND_OLD_IMAGES"),
            (r#"{"dynamodb": {}}"#, "ApproximateCreationDateTime"),
            (r#"{"Metadata": {}}"#, "WriteTimestampMicros"),
        ] {
            let failure = said("", input).1.expect("is refused");
            assert!(failure.starts_with("2 ") && failure.contains(why), "{input}: {failure}");
        }
    }
}
