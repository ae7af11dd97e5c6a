//! [`Fields`]: the members of a body, read one by one, with none left over.

use crate::http::Problem;
use crate::json::{Decimal, Object, pointer_to};
use serde_json::{Map, Value};

/// The members of a body. Read what the route knows, then [`Fields::finish`].
#[derive(Debug)]
pub struct Fields {
    members: Map<String, Value>,
}

impl Fields {
    pub(super) fn new(members: Map<String, Value>) -> Self {
        Fields { members }
    }

    /// The free-form object of this name.
    ///
    /// # Errors
    /// `missing_field`, or whatever [`Object::new`] refuses.
    pub fn required_object(&mut self, name: &str) -> Result<Object, Problem> {
        self.optional_object(name)?.ok_or_else(|| missing(name))
    }

    /// The free-form object of this name, if there is one.
    ///
    /// # Errors
    /// Whatever [`Object::new`] refuses.
    pub fn optional_object(&mut self, name: &str) -> Result<Option<Object>, Problem> {
        let object = self.members.remove(name).map(|value| Object::new(value, &pointer_to("", name)));
        Ok(object.transpose()?)
    }

    /// The text of this name.
    ///
    /// # Errors
    /// `missing_field`, `invalid_type`.
    pub fn required_text(&mut self, name: &str) -> Result<String, Problem> {
        self.optional_text(name)?.ok_or_else(|| missing(name))
    }

    /// The text of this name, if there is one.
    ///
    /// # Errors
    /// `invalid_type`.
    pub fn optional_text(&mut self, name: &str) -> Result<Option<String>, Problem> {
        match self.members.remove(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Self::invalid(name, "invalid_type", "this must be a string")),
        }
    }

    /// The number of this name.
    ///
    /// # Errors
    /// `missing_field`, `invalid_type`.
    pub fn required_number(&mut self, name: &str) -> Result<Decimal, Problem> {
        self.optional_number(name)?.ok_or_else(|| missing(name))
    }

    /// The number of this name, if there is one.
    ///
    /// # Errors
    /// `invalid_type`.
    pub fn optional_number(&mut self, name: &str) -> Result<Option<Decimal>, Problem> {
        match self.members.remove(name) {
            None => Ok(None),
            Some(Value::Number(number)) => Decimal::parse(number.as_str())
                .map(Some)
                .map_err(|error| Self::invalid(name, "number_out_of_range", &error.to_string())),
            Some(_) => Err(Self::invalid(name, "invalid_type", "this must be a number")),
        }
    }

    /// Nothing may be left: a field that would be ignored is refused.
    ///
    /// # Errors
    /// `unknown_field`.
    pub fn finish(self) -> Result<(), Problem> {
        match self.members.keys().next() {
            None => Ok(()),
            Some(name) => Err(Self::invalid(name, "unknown_field", "this route does not know this field")),
        }
    }

    /// The field of this name is wrong in a way that only the route can tell.
    #[must_use]
    pub fn invalid(name: &str, code: &'static str, detail: &str) -> Problem {
        Problem::invalid(pointer_to("", name), code, detail)
    }
}

fn missing(name: &str) -> Problem {
    Fields::invalid(name, "missing_field", "this field is required")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fields(value: &Value) -> Fields {
        Fields::new(value.as_object().cloned().expect("an object"))
    }

    #[test]
    fn a_field_that_nobody_reads_is_refused() {
        let mut read = fields(&json!({"a": "x", "b": 1}));
        assert_eq!(read.required_text("a").ok().as_deref(), Some("x"));
        assert_eq!(read.finish().expect_err("refused").code(), "unknown_field");
        assert!(fields(&json!({})).finish().is_ok());
    }

    #[test]
    fn a_field_is_missing_or_of_a_wrong_type_but_never_guessed() {
        let value = json!({"a": null, "n": "1"});
        assert_eq!(fields(&value).required_text("b").expect_err("refused").code(), "missing_field");
        assert_eq!(fields(&value).optional_text("a").expect_err("refused").code(), "invalid_type");
        assert_eq!(fields(&value).required_number("n").expect_err("refused").code(), "invalid_type");
        assert_eq!(fields(&value).required_object("a").expect_err("refused").code(), "invalid_type");
    }
}
