//! The types of items in programs: all kinds of fields, every attribute of serde that the derive accepts, every kind of
//! key and all settings.

use super::values::{Bytes, Draw, Drawn, Ends, Fixed, Odd, PartitionField, Rare, SortField};
use fencepost::lww::LwwRecord;
use fencepost::{Holds, Index, Names, Projection, Record, Settings};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A type of items. A change leaves its own number in `by`; an add goes to `n`.
pub trait Subject: Record + Clone + PartialEq + Send + Sync + 'static {
    const TABLE: &'static str;
    /// The kinds of the parts of its key: `S`, `N` or `B` for each.
    const KEY: &'static str;
    /// The attribute that an older build does not know, if there is one.
    const HIDDEN: Option<&'static str>;

    fn drawn(draw: &mut Draw) -> Self;
    fn by(&self) -> u64;
    fn with(self, by: u64, n: u32) -> Self;
}

/// The kind of a type with the fields `by` and `n`, and perhaps others that hold the number of the change too.
macro_rules! subject {
    ($name:ident in $table:expr, $key:literal, $hidden:expr, |$draw:ident| $drawn:expr $(, $also:ident)?) => {
        impl Subject for $name {
            const TABLE: &'static str = $table;
            const KEY: &'static str = $key;
            const HIDDEN: Option<&'static str> = $hidden;

            fn drawn($draw: &mut Draw) -> Self {
                $drawn
            }

            fn by(&self) -> u64 {
                self.by
            }

            fn with(self, by: u64, n: u32) -> Self {
                $name { by, n: n.into(), $($also: by,)? ..self }
            }
        }
    };
}

/// Declares types with the fields `by` and `n` before their own, and lists them for [`super::catalog::KINDS`].
macro_rules! subjects {
    ($($(#[$of_type:meta])* $name:ident $key:literal { $($(#[$of_field:meta])* $field:ident: $type:ty),* $(,)? })*) => {
        $(
            #[derive(Clone, PartialEq, Serialize, Deserialize, Record)]
            $(#[$of_type])*
            #[allow(clippy::struct_field_names, reason = "the names of the fields are those of the attributes")]
            pub struct $name { by: u64, n: f64, $($(#[$of_field])* pub(super) $field: $type),* }

            subject!($name in concat!("Play", stringify!($name)), $key, None, |draw| {
                $name { by: 0, n: draw.small().into(), $($field: Drawn::drawn(draw)),* }
            });
        )*

        /// All types that the macro declares.
        macro_rules! all_subjects {
            ($of:ident, $more:tt) => { $crate::histories::programs::records::listed!($of, $more, [$($name),*]) };
        }
        pub(super) use all_subjects;
    };
}

/// A static list with `$of` of each of these types.
macro_rules! listed {
    ($of:ident, [$($more:ident),*], [$($name:ident),*]) => { &[$(&$of::<$name>(PhantomData),)* $(&$of::<$more>(PhantomData)),*] };
}
pub(super) use listed;

const RENAMED: Names = Names::DEFAULT
    .version("v")
    .incarnation("row")
    .writes("ids")
    .purge_at("goesAt")
    .buried("deletedAt")
    .fence("token")
    .given("tickets")
    .served("turn")
    .holds("parts")
    .placed_by("attempt");

subjects! {
    #[record(key = "id")]
    Plain "S" { #[serde(skip_serializing_if = "Option::is_none")] note: Option<i64> }
    #[record(key = "id")]
    Texts "S" { text: String, other: Option<String>, letter: char }
    #[record(key = "id")]
    Skips "S" {
        #[serde(skip_serializing_if = "Option::is_none")] note: Option<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")] list: Vec<i64>,
    }
    #[record(key = "id")]
    Wholes "S" { small: i8, large: u64, other: i64 }
    #[record(key = "id")]
    Floats "S" { ratio: Odd<f64>, half: Odd<f32>, maybe: Option<f64> }
    #[record(key = "id")]
    Maps "S" { map: BTreeMap<String, i64>, deep: BTreeMap<String, BTreeMap<String, Option<String>>> }
    #[record(key = "id")]
    Lists "S" { list: Vec<Option<bool>>, pairs: Vec<(u8, String)>, three: [u8; 3], none: () }
    #[record(key = "id")]
    Bags "S" { bag: BTreeSet<String>, bag_of_numbers: BTreeSet<i64> }
    #[record(key = "id")]
    Sets "S" {
        #[serde(with = "serde_dynamo::string_set")] tags: Rare<BTreeSet<String>>,
        #[serde(with = "serde_dynamo::number_set")] numbers: Rare<BTreeSet<i64>>,
        #[serde(with = "serde_dynamo::binary_set")] parts: Rare<BTreeSet<Bytes>>,
    }
    #[record(key = "id")]
    Binaries "S" { data: Bytes, more: Option<Bytes> }
    #[record(key = "id")]
    #[serde(rename_all = "camelCase")]
    Camel "S" { first_name: String, last_seen_at: i64 }
    #[record(key = "id")]
    #[serde(rename_all = "kebab-case", deny_unknown_fields)]
    Kebab "S" { first_name: String }
    #[record(key = "id")]
    #[serde(rename_all = "SCREAMING_SNAKE_CASE", rename = "another")]
    Screaming "S" { first_name: String }
    #[record(key = "id")]
    #[serde(rename_all = "PascalCase", expecting = "a value of this type")]
    Pascal "S" { first_name: Option<i64> }
    #[record(key = "id")]
    #[serde(rename_all(serialize = "UPPERCASE", deserialize = "UPPERCASE"), crate = "serde")]
    Upper "S" { place: BTreeMap<String, i64> }
    #[record(key = "id")]
    Renamed "S" { #[serde(rename = "class name")] class: String, r#type: i64, #[serde(rename = "a.b")] dotted: i64 }
    #[record(key = "id")]
    #[derive(Default)]
    #[serde(default)]
    AllDefault "S" { text: String, list: Vec<i64> }
    #[record(key = "id")]
    #[serde(bound = "")]
    SomeDefault "S" { #[serde(default)] text: String, #[serde(default = "seven")] number: i64 }
    #[record(key = "id")]
    Custom "S" {
        #[serde(with = "as_text")] number: i64,
        #[serde(serialize_with = "as_text::serialize", deserialize_with = "as_text::deserialize")] other: i64,
    }
    #[record(key = "id")]
    Skipped "S" { #[serde(skip)] nothing: (), #[serde(skip_serializing, skip_deserializing)] more: (), text: String }
    #[record(key = "id")]
    Enums "S" { unit: Color, data: Shape, inner: Tagged, #[serde(bound = "")] loose: Loose }
    #[record(key = "id")]
    Nested "S" { place: Place, places: Vec<Place> }
    #[record(key = "id")]
    Json "S" { json: Value }
    #[record(key = "id", expires_at = "ends")]
    Session "S" { ends: Ends, text: String }
    #[record(key = "id", expires_at = "ends")]
    MayEnd "S" { #[serde(skip_serializing_if = "Option::is_none")] ends: Option<Ends> }
    #[record(key = "id", settings = Settings::without_ttl().swept())]
    Swept "S" { text: String }
    #[record(key = "id", settings = Settings::without_ttl().kept())]
    Kept "S" { text: String }
    #[record(key = "id", settings = Settings::without_ttl().removed())]
    Removed "S" { text: String }
    #[record(key = "id", settings = Settings::without_ttl().shared_with_versioned_writers().swept())]
    SharedSwept "S" { text: String }
    #[record(key = "id", settings = Settings::without_ttl().shared_with_versioned_writers().removed())]
    SharedRemoved "S" { map: BTreeMap<String, i64> }
    #[record(key = "id", settings = Settings::open_to_any())]
    Open "S" { text: String }
    #[record(key = "id", settings = Settings::without_ttl().in_regions().removed())]
    Regional "S" { text: String }
    #[record(key = "id", settings = Settings::own().names(RENAMED).first_version(7))]
    Named "S" { text: String }
    #[record(key = "id", settings = Settings::own().remembered_writes(4).edit_window(1))]
    Narrow "S" { text: String }
    #[record(key = "id", settings = Settings::own().remembered_writes(128).edit_window(128))]
    Wide "S" { text: String }
    #[record(key = "id", holds = Holds::of("n"))]
    Holding "S" { text: String }
    #[record(key = "number")]
    NumberKey "N" { text: String }
    #[record(key = "bytes")]
    BytesKey "B" { text: String }
    #[record(key = "id", sort = "line")]
    SortedText "SS" { text: String }
    #[record(key = "id", sort = "line")]
    SortedNumber "SN" { text: String }
    #[record(key = "id", sort = "line")]
    SortedBytes "SB" { text: String }
    #[record(key = "id", sort = "line")]
    Keyed "SN" { id: PartitionField, line: SortField, text: String }
    #[record(key = "id")]
    Large "S" { some: Fixed, more: Fixed, level: String }
}

fn seven() -> i64 {
    7
}

/// A number as text.
mod as_text {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub fn serialize<S: Serializer>(number: &i64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(number)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// Declares types of fields that are drawn field by field, or one of their values.
macro_rules! drawn {
    (enum $name:ident { $($value:expr),* $(,)? }) => {
        impl Drawn for $name {
            fn drawn(draw: &mut Draw) -> Self {
                let values = [$(|draw: &mut Draw| { let _ = &draw; $value(draw) }),*];
                values[draw.pick(values.len())](draw)
            }
        }
    };
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub enum Color {
    Red,
    #[serde(rename = "dark green")]
    Green,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub enum Shape {
    Dot,
    Circle(u32),
    Box { width: u32, height: Option<u32> },
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum Tagged {
    Empty,
    Number { number: i64 },
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Loose {
    Text(String),
    Number(i64),
}

drawn!(enum Color { |_| Color::Red, |_| Color::Green });
drawn!(enum Shape {
    |_| Shape::Dot,
    |draw| Shape::Circle(Drawn::drawn(draw)),
    |draw: &mut Draw| Shape::Box { width: Drawn::drawn(draw), height: Drawn::drawn(draw) },
});
drawn!(enum Tagged { |_| Tagged::Empty, |draw| Tagged::Number { number: Drawn::drawn(draw) } });
drawn!(enum Loose { |draw| Loose::Text(Drawn::drawn(draw)), |draw| Loose::Number(Drawn::drawn(draw)) });

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Place {
    city: String,
    at: Option<(i64, i64)>,
}

impl Drawn for Place {
    fn drawn(draw: &mut Draw) -> Self {
        Place { city: Drawn::drawn(draw), at: Drawn::drawn(draw) }
    }
}

/// Hand-written, because its attributes are not all fields.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Flat {
    by: u64,
    n: f64,
    #[serde(flatten)]
    others: BTreeMap<String, i64>,
}

impl Record for Flat {
    const PARTITION_KEY: &'static str = "id";
    const ATTRIBUTES: &'static [&'static str] = &["by", "n", "one", "two"];
}

subject!(Flat in "PlayFlat", "S", None, |draw| {
    let names = ["one", "two"].into_iter().filter(|_| draw.pick(2) == 0).map(str::to_owned).collect::<Vec<_>>();
    let others = names.into_iter().map(|name| (name, draw.small().into())).collect();
    Flat { by: 0, n: draw.small().into(), others }
});

/// Today's build of a type, with an attribute that the build before does not know: the number of the last change of the
/// whole item by today's build.
#[derive(Clone, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "id", settings = Settings::own().remembered_writes(12).edit_window(4))]
pub struct Builds {
    by: u64,
    n: f64,
    text: String,
    #[serde(default)]
    noted: u64,
}

subject!(Builds in "PlayBuilds", "S", Some("noted"), |draw| {
    Builds { by: 0, n: draw.small().into(), text: Drawn::drawn(draw), noted: 0 }
}, noted);

/// The build before [`Builds`], with another window.
#[derive(Clone, PartialEq, Serialize, Deserialize, Record)]
#[record(key = "id", settings = Settings::own().remembered_writes(12).edit_window(12))]
pub struct Before {
    by: u64,
    n: f64,
    text: String,
}

subject!(Before in "PlayBuilds", "S", None, |draw| {
    Before { by: 0, n: draw.small().into(), text: Drawn::drawn(draw) }
});

/// A part of [`SortedText`].
#[derive(Serialize, Deserialize, Record)]
#[record(key = "id", sort = "line")]
pub struct SortedPart {
    by: u64,
}

/// The index of a table with a sort key.
pub struct ByN;

impl Index for ByN {
    type Record = SortedText;
    type Shown = SortedText;
    const NAME: &'static str = "byN";
    const PARTITION_KEY: &'static str = "id";
    const SORT_KEY: Option<&'static str> = Some("n");
    const IS_LOCAL: bool = true;
    const PROJECTION: Projection = Projection::All;
}

/// A global index of the same table, whose keys have several attributes.
pub struct ByLine;

impl Index for ByLine {
    type Record = SortedText;
    type Shown = SortedText;
    const NAME: &'static str = "byLine";
    const PARTITION_KEY: &'static str = "id";
    const MORE_PARTITION_KEYS: &'static [&'static str] = &["line"];
    const SORT_KEY: Option<&'static str> = Some("n");
    const MORE_SORT_KEYS: &'static [&'static str] = &["by"];
}

/// The newest of the instances of a key.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Record)]
#[record(key = "shard")]
pub struct Leader {
    pub term: u64,
    pub node: String,
    pub address: String,
}

impl LwwRecord for Leader {
    const ORDERED_BY: &'static str = "term";
    const NAMED_BY: &'static str = "node";
}
