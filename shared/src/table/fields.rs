//! [`check_fields`] (pure): finds a field of a type that its `Record` does not declare.

use serde::de::{self, DeserializeOwned, Deserializer, Visitor};
use serde::forward_to_deserialize_any;
use std::error::Error;
use std::fmt;

/// A field that serde reads, and that `ATTRIBUTES` does not name. It would always be read as missing.
#[derive(Debug)]
pub(crate) struct Undeclared(&'static str);

impl fmt::Display for Undeclared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "its type has the field {}, which is not among the attributes that its Record declares", self.0)
    }
}

impl Error for Undeclared {}

/// Checks that `attributes` has every field of `T` that serde reads. Checks nothing if serde does not list the fields, as
/// with `flatten` or an enum.
pub(super) fn check_fields<T: DeserializeOwned>(attributes: &[&str]) -> Result<(), Undeclared> {
    let forgotten = fields_of::<T>().iter().find(|name| !attributes.contains(name));
    forgotten.map_or(Ok(()), |name| Err(Undeclared(name)))
}

fn fields_of<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut fields: &[&str] = &[];
    // Never a value: a `Fields` has none.
    let _ = T::deserialize(Fields(&mut fields));
    fields
}

/// A deserializer without data. It keeps the names of the fields that a struct asks for.
struct Fields<'a>(&'a mut &'static [&'static str]);

/// The error of a deserializer that has no data.
#[derive(Debug)]
struct NoData;

impl fmt::Display for NoData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no data")
    }
}

impl Error for NoData {}

impl de::Error for NoData {
    fn custom<M: fmt::Display>(_: M) -> Self {
        NoData
    }
}

impl<'de> Deserializer<'de> for Fields<'_> {
    type Error = NoData;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, NoData> {
        Err(NoData)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, NoData> {
        *self.0 = fields;
        Err(NoData)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, NoData> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct seq
        tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use crate::error::{Failure, Source};
    use crate::protocol::item::Attributes;
    use crate::table::{Record, Table};
    use aws_sdk_dynamodb::types::AttributeValue;
    use serde::{Deserialize, Serialize};
    use std::collections::BTreeMap;

    #[derive(Serialize, Deserialize, Default)]
    #[serde(rename_all = "camelCase")]
    struct Account {
        total: i64,
        #[serde(skip_serializing_if = "Option::is_none")]
        last_note: Option<String>,
    }

    #[derive(Serialize, Deserialize, Default)]
    struct Wrapped(Account);

    #[derive(Serialize, Deserialize, Default)]
    struct Counter {
        total: i64,
        #[serde(skip)]
        _cached: i64,
    }

    #[derive(Serialize, Deserialize, Default)]
    struct Flat {
        total: i64,
        #[serde(flatten)]
        others: BTreeMap<String, i64>,
    }

    #[derive(Serialize, Deserialize, Default)]
    #[serde(transparent)]
    struct ByHand(Account);

    const ITS_OWN: &[&str] = &["total"];

    macro_rules! records {
        ($($name:ident)*) => {$(
            impl Record for $name {
                const PARTITION_KEY: &'static str = "id";
                const ATTRIBUTES: &'static [&'static str] = ITS_OWN;
            }
        )*};
    }
    records!(Account Wrapped Counter Flat);

    impl Record for ByHand {
        const PARTITION_KEY: &'static str = "id";
        const ATTRIBUTES: &'static [&'static str] = ITS_OWN;

        fn encode(&self) -> Result<Attributes, Source> {
            Ok(row())
        }

        fn decode(_: Attributes) -> Result<Self, Source> {
            Ok(ByHand::default())
        }
    }

    fn row() -> Attributes {
        [("total".to_owned(), AttributeValue::N("1".to_owned()))].into()
    }

    /// The failures to encode and to decode.
    fn failures<T: Record + Default>() -> [Option<Failure>; 2] {
        let mut row = row();
        row.insert("lastNote".to_owned(), AttributeValue::S("by another program".to_owned()));
        [Table::<T>::encode(&T::default()).err(), Table::<T>::value_in(&row).err()]
    }

    #[test]
    fn a_field_that_the_record_forgets_is_named_and_never_read_as_missing() {
        for failure in failures::<Account>().into_iter().chain(failures::<Wrapped>()) {
            let Some(Failure::InvalidRecord { reason }) = failure else { panic!("{failure:?}") };
            assert!(reason.contains("the field lastNote,"), "{reason}");
        }
    }

    #[test]
    fn a_type_without_such_a_field_and_one_whose_fields_are_not_known_are_taken_as_they_are() {
        for failures in [failures::<Counter>(), failures::<Flat>(), failures::<ByHand>()] {
            assert!(failures.iter().all(Option::is_none), "{failures:?}");
        }
    }
}
