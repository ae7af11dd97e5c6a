//! The recordings, as the page reads them: a script with a line for each story and for each of its plays.
//!
//! Names and texts repeat many times in a play. So a play has them once. A moment is a list: the number of its shape, which
//! names its members, and then a value for each. Times are in milliseconds. In place of a text, whose member has a `$` before
//! its name, stands its number, and of the counters only what changed.

use crate::stories::{Play, STORIES, Story, play};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Plays every recorded play. Gives the text of the file.
#[must_use]
pub fn recordings() -> String {
    let stories: String = STORIES.iter().map(|story| record(story)).collect();
    format!("// Recorded by `cargo run -p console`.\nconst STORIES = [\n{stories}];\n")
}

/// A story with its plays, each on a line of its own.
fn record(story: &'static Story) -> String {
    let about = story.to_json().to_string();
    let about = about.strip_suffix('}').expect("an object");
    let plays = story.recorded().map(|settings| {
        let played = play(story, settings);
        let mut packed = pack(&played);
        packed.insert("seed".to_owned(), json!(settings.seed));
        packed.insert("lostAnswers".to_owned(), json!(settings.lost_answers));
        format!("{},\n", Value::Object(packed))
    });
    format!("{about},\"plays\":[\n{}]}},\n", plays.collect::<String>())
}

/// Distinct values in the order of their first use, by their number.
struct Numbered<T>(Vec<T>);

impl<T: PartialEq> Numbered<T> {
    fn number(&mut self, value: T) -> usize {
        self.0.iter().position(|known| *known == value).unwrap_or_else(|| {
            self.0.push(value);
            self.0.len() - 1
        })
    }
}

fn pack(Play { moments, ends, at }: &Play) -> Map<String, Value> {
    let (mut shapes, mut texts) = (Numbered(Vec::new()), Numbered(Vec::new()));
    let mut counters = BTreeMap::<String, Map<String, Value>>::new();
    let mut packed = Vec::new();
    for moment in moments {
        // What is missing says the same on the page.
        let nothing = [json!(null), json!(false), json!("")];
        let members = moment.as_object().into_iter().flatten().filter(|(_, value)| !nothing.contains(value));
        let names: Vec<_> = members
            .clone()
            .map(|(name, value)| if value.is_string() { format!("${name}") } else { name.clone() })
            .collect();
        let mut list = vec![json!(shapes.number(names))];
        list.extend(members.map(|(_, value)| match value {
            Value::String(text) => json!(texts.number(text.clone())),
            Value::Object(values) => {
                let before = counters.insert(moment["side"].to_string(), values.clone()).unwrap_or_default();
                let changed = values.iter().filter(|(name, value)| before.get(*name) != Some(value));
                changed.map(|(name, value)| (name.clone(), value.clone())).collect()
            }
            other => other.clone(),
        }));
        packed.push(Value::Array(list));
    }
    let packed = json!({ "at": at, "sides": ends, "shapes": shapes.0, "texts": texts.0, "moments": packed });
    packed.as_object().cloned().unwrap_or_default()
}
