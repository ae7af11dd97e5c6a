//! [`Place`]: a place in a YAML file with its own path. So every failure names the place.

use saphyr::{LoadableYamlNode, Scalar, Yaml};

use crate::failure::Failure;

/// One node of the file, with the keys that lead to it.
#[derive(Clone)]
pub struct Place<'a> {
    file: &'a str,
    path: String,
    node: &'a Yaml<'a>,
}

/// Parses `text` and passes its first document to `read`.
///
/// # Errors
/// The text is not YAML, or `read` fails.
pub fn read<T>(file: &str, text: &str, read: impl FnOnce(&Place<'_>) -> Result<T, Failure>) -> Result<T, Failure> {
    let documents = Yaml::load_from_str(text)
        .map_err(|error| Failure::new(format!("{file} is not valid YAML, correct it: {error}.")))?;
    let node = documents.first().unwrap_or(&Yaml::BadValue);
    read(&Place { file, path: String::new(), node })
}

impl<'a> Place<'a> {
    /// The value at a path of keys, if every step of the path exists.
    #[must_use]
    pub fn get(&self, keys: &[&str]) -> Option<Place<'a>> {
        let mut place = Place { file: self.file, path: self.path.clone(), node: self.node };
        for key in keys {
            let node = place.node.as_mapping_get(key)?;
            place = place.below(key, node);
        }
        Some(place)
    }

    /// The value at a path of keys.
    ///
    /// # Errors
    /// A step of the path is missing.
    pub fn require(&self, keys: &[&str]) -> Result<Place<'a>, Failure> {
        self.get(keys).ok_or_else(|| self.wrong(&format!("has no {}, add it", keys.join("."))))
    }

    /// The entries of a mapping, in the order of the file.
    ///
    /// # Errors
    /// The node is not a mapping, or has a key that is not text.
    pub fn entries(&self) -> Result<Vec<(&'a str, Place<'a>)>, Failure> {
        let mapping = self.node.as_mapping().ok_or_else(|| self.wrong("must be a mapping"))?;
        mapping
            .iter()
            .map(|(key, node)| match key.as_str() {
                Some(key) => Ok((key, self.below(key, node))),
                None => Err(self.wrong("has a key that is not text")),
            })
            .collect()
    }

    /// The items of a list.
    ///
    /// # Errors
    /// The node is not a list.
    pub fn items(&self) -> Result<Vec<Place<'a>>, Failure> {
        let list = self.node.as_vec().ok_or_else(|| self.wrong("must be a list"))?;
        Ok(list.iter().enumerate().map(|(index, node)| self.below(&index.to_string(), node)).collect())
    }

    /// A plain value as text. Numbers and booleans have the text that a stack would get.
    ///
    /// # Errors
    /// The node is a list, a mapping or a function such as `!Ref`.
    pub fn text(&self) -> Result<String, Failure> {
        match self.node {
            Yaml::Value(Scalar::String(text)) => Ok(text.to_string()),
            Yaml::Value(Scalar::Integer(number)) => Ok(number.to_string()),
            Yaml::Value(Scalar::FloatingPoint(number)) => Ok(number.to_string()),
            Yaml::Value(Scalar::Boolean(truth)) => Ok(truth.to_string()),
            _ => Err(self.wrong("must be a plain value")),
        }
    }

    /// The logical id in `!Ref Id`, if this is one.
    #[must_use]
    pub fn reference(&self) -> Option<&'a str> {
        self.tagged("Ref")
    }

    /// The logical id in `!GetAtt Id.Arn`, if this is one.
    #[must_use]
    pub fn arn(&self) -> Option<&'a str> {
        self.attribute("Arn")
    }

    /// The logical id in `!GetAtt Id.Name`, if this is one with that name.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&'a str> {
        self.tagged("GetAtt")?.strip_suffix(name)?.strip_suffix('.')
    }

    /// The text in `!Sub text`, if this is one.
    #[must_use]
    pub fn substitution(&self) -> Option<&'a str> {
        self.tagged("Sub")
    }

    /// The value that `!If [Condition, value, other]` has while this condition holds, if this is one.
    #[must_use]
    pub fn when(&self, condition: &str) -> Option<Place<'a>> {
        match self.function("If")?.as_vec()?.as_slice() {
            [name, value, _] if name.as_str() == Some(condition) => Some(self.below("1", value)),
            _ => None,
        }
    }

    fn tagged(&self, name: &str) -> Option<&'a str> {
        self.function(name)?.as_str()
    }

    /// The argument of the function `!name`, if this is one.
    fn function(&self, name: &str) -> Option<&'a Yaml<'a>> {
        match self.node {
            Yaml::Tagged(tag, value) if tag.handle == "!" && tag.suffix == name => Some(value),
            _ => None,
        }
    }

    /// A failure that names the file and this place in it.
    #[must_use]
    pub fn wrong(&self, problem: &str) -> Failure {
        let Self { file, path, .. } = self;
        if path.is_empty() {
            Failure::new(format!("{file} {problem}."))
        } else {
            Failure::new(format!("{path} in {file} {problem}."))
        }
    }

    fn below(&self, key: &str, node: &'a Yaml<'a>) -> Place<'a> {
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        Place { file: self.file, path, node }
    }
}
