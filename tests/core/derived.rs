//! `#[derive(Record)]` lists the attributes read and written by serde.

use fencepost::{Record, Settings};
use serde::{Deserialize, Serialize};

/// Compares the attributes with those read by serde, and with those written by it.
fn agrees_with_serde<T: Record + Default>() -> &'static [&'static str] {
    assert_eq!(T::fields(), T::ATTRIBUTES);
    let written = T::default().encode().expect("attributes");
    let mut written: Vec<_> = written.keys().map(String::as_str).collect();
    let mut listed = T::ATTRIBUTES.to_vec();
    written.sort_unstable();
    listed.sort_unstable();
    assert_eq!(written, listed);
    T::ATTRIBUTES
}

macro_rules! under {
    ($($rule:literal)*) => {[$({
        #[derive(Default, Serialize, Deserialize, Record)]
        #[record(key = "id")]
        #[serde(rename_all = $rule)]
        struct Named {
            total: u64,
            last_seen_at: Option<u64>,
            r#type: String,
            _hidden_: u64,
            x1_y: u64,
            #[serde(rename = "Own name")]
            renamed: u64,
            #[serde(skip)]
            _cached: u64,
            #[serde(rename(serialize = "same", deserialize = "same"))]
            both: u64,
        }
        agrees_with_serde::<Named>()
    }),*]};
}

#[test]
fn a_rule_of_serde_gives_the_same_names() {
    let lists = under! {
        "lowercase" "UPPERCASE" "PascalCase" "camelCase" "snake_case" "SCREAMING_SNAKE_CASE" "kebab-case"
        "SCREAMING-KEBAB-CASE"
    };
    assert!(lists.iter().all(|list| list.len() == 7), "{lists:?}");
    assert_eq!(lists[3][..3], ["total", "lastSeenAt", "type"]);
}

const HOT: Settings = Settings::own().remembered_writes(64);

#[derive(Default, Serialize, Deserialize, Record)]
#[record(key = "room", sort = "number", expires_at = "endsAt", settings = HOT.add_window(32))]
#[serde(rename_all(serialize = "camelCase", deserialize = "camelCase"), deny_unknown_fields)]
struct Message<const LONG: bool> {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    text: String,
    ends_at: u64,
}

#[test]
fn a_record_has_the_key_the_expiry_and_the_settings_that_it_was_told() {
    type Long = Message<true>;
    assert_eq!((Long::PARTITION_KEY, Long::SORT_KEY, Long::EXPIRES_AT), ("room", Some("number"), Some("endsAt")));
    assert_eq!((Long::ATTRIBUTES, Long::fields()), (&["text", "endsAt"][..], &["text", "endsAt"][..]));
    assert_eq!(Long::SETTINGS, Settings::own().remembered_writes(64).add_window(32));
}
