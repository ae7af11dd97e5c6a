//! [`fields_of`] (pure): the fields of a type, as serde names them.

use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// The names of the fields read by serde. None if serde does not list them, as with `flatten` or an enum.
pub(super) fn fields_of<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut fields: &[&str] = &[];
    // Never a value: a `Fields` has none.
    let _ = T::deserialize(Fields(&mut fields));
    fields
}

/// A deserializer without data. It keeps the names of the fields requested by a struct.
struct Fields<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Fields<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("there is no data"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.0 = fields;
        Err(Error::custom("there is no data"))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct seq
        tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::collections::BTreeMap;

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "only the names of the fields matter")]
    struct Account {
        total: i64,
        last_note: Option<String>,
        #[serde(skip)]
        cached: i64,
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only the names of the fields matter")]
    struct Wrapped(Account);

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only the names of the fields matter")]
    struct Flat {
        total: i64,
        #[serde(flatten)]
        others: BTreeMap<String, i64>,
    }

    #[test]
    fn fields_are_named_as_serde_names_them_and_are_not_known_of_every_type() {
        assert_eq!(fields_of::<Account>(), ["total", "lastNote"]);
        assert_eq!(fields_of::<Wrapped>(), ["total", "lastNote"]);
        assert!(fields_of::<Flat>().is_empty() && fields_of::<BTreeMap<String, i64>>().is_empty());
    }
}
