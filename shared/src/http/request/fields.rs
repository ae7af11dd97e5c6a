//! [`Fields`]: reads the members of a body one by one, and refuses unknown ones.

use super::values::{Id, Ip, MAX_BODY, past};
use crate::http::problem::Problem;
use crate::json::{self, Decimal, Object, pointer_to};
use crate::timestamp::Timestamp;
use serde_json::{Map, Value};
use std::ops::RangeInclusive;

/// The members of a body, or of an object in it. Read the members that the route knows, then call [`Fields::finish`].
#[derive(Debug)]
pub struct Fields {
    members: Map<String, Value>,
    /// The JSON Pointer to the object. Empty for the body itself.
    pointer: String,
}

impl Fields {
    pub(super) fn new(members: Map<String, Value>) -> Self {
        Fields { members, pointer: String::new() }
    }

    /// Parses the members of a message from a queue. Such fields need no [`Fields::finish`]: a sender may add members
    /// that this reader does not know, and they are ignored.
    ///
    /// # Errors
    /// `too_large`, `invalid_json`, `invalid_type`.
    pub fn from_message(text: &str) -> Result<Self, Problem> {
        if text.len() > MAX_BODY {
            return Err(Problem::too_large(format!("a message may have {MAX_BODY} bytes")));
        }
        match json::parse(text.as_bytes())? {
            Value::Object(members) => Ok(Fields::new(members)),
            _ => Err(Problem::invalid("", "invalid_type", "a message must be a JSON object")),
        }
    }

    /// Whether there is a member of this name that was not read yet.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    /// Reads the free-form object `name`.
    ///
    /// # Errors
    /// `missing_field`, and the errors of [`Object::new`].
    pub fn required_object(&mut self, name: &str) -> Result<Object, Problem> {
        self.optional_object(name)?.ok_or_else(|| self.missing(name))
    }

    /// Reads the free-form object `name`, if it is present.
    ///
    /// # Errors
    /// The errors of [`Object::new`].
    pub fn optional_object(&mut self, name: &str) -> Result<Option<Object>, Problem> {
        let object = self.members.remove(name).map(|value| Object::new(value, &self.pointer_to(name)));
        Ok(object.transpose()?)
    }

    /// Reads the text `name`.
    ///
    /// # Errors
    /// `missing_field`, `invalid_type`.
    pub fn required_text(&mut self, name: &str) -> Result<String, Problem> {
        self.optional_text(name)?.ok_or_else(|| self.missing(name))
    }

    /// Reads the text `name`, if it is present.
    ///
    /// # Errors
    /// `invalid_type`.
    pub fn optional_text(&mut self, name: &str) -> Result<Option<String>, Problem> {
        match self.members.remove(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(name, "invalid_type", "this must be a string")),
        }
    }

    /// Reads the id `name`.
    ///
    /// # Errors
    /// `missing_field`, `invalid_type`, `invalid_id`.
    pub fn required_id(&mut self, name: &str) -> Result<Id, Problem> {
        Id::parse(&self.required_text(name)?, &self.pointer_to(name))
    }

    /// Reads the id `name`, if it is present.
    ///
    /// # Errors
    /// `invalid_type`, `invalid_id`.
    pub fn optional_id(&mut self, name: &str) -> Result<Option<Id>, Problem> {
        self.optional_text(name)?.map(|text| Id::parse(&text, &self.pointer_to(name))).transpose()
    }

    /// Reads the IP address `name`.
    ///
    /// # Errors
    /// `missing_field`, `invalid_type`, `invalid_ip`.
    pub fn required_ip(&mut self, name: &str) -> Result<Ip, Problem> {
        Ip::parse(&self.required_text(name)?, &self.pointer_to(name))
    }

    /// Reads the moment `name`, which must not be in the future. Allows 5 minutes, because our clock may be behind.
    ///
    /// # Errors
    /// `missing_field`, `invalid_type`, `invalid_timestamp`, `timestamp_in_future`.
    pub fn required_past(&mut self, name: &str, now: Timestamp) -> Result<Timestamp, Problem> {
        past(&self.required_text(name)?, &self.pointer_to(name), now)
    }

    /// Reads the number `name`.
    ///
    /// # Errors
    /// `missing_field`, `invalid_type`, `number_out_of_range`.
    pub fn required_number(&mut self, name: &str) -> Result<Decimal, Problem> {
        self.optional_number(name)?.ok_or_else(|| self.missing(name))
    }

    /// Reads the number `name`, if it is present.
    ///
    /// # Errors
    /// `invalid_type`, `number_out_of_range`.
    pub fn optional_number(&mut self, name: &str) -> Result<Option<Decimal>, Problem> {
        match self.members.remove(name) {
            None => Ok(None),
            Some(Value::Number(number)) => Decimal::parse(number.as_str())
                .map(Some)
                .map_err(|error| self.wrong(name, "number_out_of_range", &error.to_string())),
            Some(_) => Err(self.wrong(name, "invalid_type", "this must be a number")),
        }
    }

    /// Reads the whole number `name`, within these limits. `5.0` and `5` are the same number.
    ///
    /// # Errors
    /// `missing_field`, and the errors of [`Fields::optional_whole`].
    pub fn required_whole(&mut self, name: &str, limits: RangeInclusive<i64>) -> Result<i64, Problem> {
        self.optional_whole(name, limits)?.ok_or_else(|| self.missing(name))
    }

    /// Reads the whole number `name`, within these limits, if it is present.
    ///
    /// # Errors
    /// `invalid_type`; `number_out_of_range` if a [`Decimal`] cannot keep the number; `invalid_value` if it is not
    /// whole or is outside the limits.
    pub fn optional_whole(&mut self, name: &str, limits: RangeInclusive<i64>) -> Result<Option<i64>, Problem> {
        let Some(number) = self.optional_number(name)? else { return Ok(None) };
        // The text of a whole number is plain digits, far beyond 64 bits.
        match number.to_string().parse() {
            Ok(whole) if limits.contains(&whole) => Ok(Some(whole)),
            _ => {
                let detail = format!("this must be a whole number from {} to {}", limits.start(), limits.end());
                Err(self.wrong(name, "invalid_value", &detail))
            }
        }
    }

    /// The members of the object `name`, if it is present. Read and finish them like the body.
    ///
    /// # Errors
    /// `invalid_type`.
    pub fn optional_fields(&mut self, name: &str) -> Result<Option<Fields>, Problem> {
        match self.members.remove(name) {
            None => Ok(None),
            Some(Value::Object(members)) => Ok(Some(Fields { members, pointer: self.pointer_to(name) })),
            Some(_) => Err(self.wrong(name, "invalid_type", "this must be an object")),
        }
    }

    /// The objects of the list `name`. Read and finish each of them like the body.
    ///
    /// # Errors
    /// `missing_field`, `invalid_type`; `invalid_value` if the length of the list is outside the limits.
    pub fn required_list(&mut self, name: &str, lengths: RangeInclusive<usize>) -> Result<Vec<Fields>, Problem> {
        let list = match self.members.remove(name) {
            None => return Err(self.missing(name)),
            Some(Value::Array(list)) => list,
            Some(_) => return Err(self.wrong(name, "invalid_type", "this must be an array")),
        };
        if !lengths.contains(&list.len()) {
            let detail = format!("this must have from {} to {} elements", lengths.start(), lengths.end());
            return Err(self.wrong(name, "invalid_value", &detail));
        }
        let list_at = self.pointer_to(name);
        let element = |(index, value): (usize, Value)| {
            let pointer = pointer_to(&list_at, &index.to_string());
            match value {
                Value::Object(members) => Ok(Fields { members, pointer }),
                _ => Err(Problem::invalid(pointer, "invalid_type", "this must be an object")),
            }
        };
        list.into_iter().enumerate().map(element).collect()
    }

    /// Refuses unread fields. Otherwise they would be ignored silently.
    ///
    /// # Errors
    /// `unknown_field`.
    pub fn finish(self) -> Result<(), Problem> {
        match self.members.keys().next() {
            None => Ok(()),
            Some(name) => Err(self.wrong(name, "unknown_field", "this route does not know this field")),
        }
    }

    /// Creates the problem of the field `name`, for an error that only the route can detect.
    #[must_use]
    pub fn wrong(&self, name: &str, code: &'static str, detail: &str) -> Problem {
        Problem::invalid(self.pointer_to(name), code, detail)
    }

    /// Creates the problem of the field `name` of the body itself. Use it after all fields are read.
    #[must_use]
    pub fn invalid(name: &str, code: &'static str, detail: &str) -> Problem {
        Problem::invalid(pointer_to("", name), code, detail)
    }

    fn pointer_to(&self, name: &str) -> String {
        pointer_to(&self.pointer, name)
    }

    fn missing(&self, name: &str) -> Problem {
        self.wrong(name, "missing_field", "this field is required")
    }
}
