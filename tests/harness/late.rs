//! A refused first attempt: its second copy lands while the next attempt is on its way.

use super::clients::{client_whose, error};
use super::engine::{Engine, is_read};
use aws_sdk_dynamodb::Client;
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex};

/// Each moment is before a write of the client, counted from 0. A moment that no write reaches is after the call.
#[derive(Clone, Copy, Debug)]
pub struct Moments {
    /// Another writer makes the first attempt acceptable again.
    pub rival: usize,
    /// The second copy of the first attempt arrives.
    pub copy: usize,
    /// Whether the write overtaken by the copy is throttled and sent again.
    pub is_throttled: bool,
}

impl Moments {
    /// Before the second write to after the last one.
    pub fn all() -> impl Iterator<Item = Self> {
        let pairs = (1..=3).flat_map(|rival| (rival..=4).map(move |copy| (rival, copy)));
        pairs.flat_map(|(rival, copy)| [false, true].map(|is_throttled| Moments { rival, copy, is_throttled }))
    }
}

/// The actions of the other writer.
#[derive(Clone, Copy)]
pub struct Rival {
    /// Before the first attempt arrives: the attempt is then refused.
    pub refuses: fn(&Engine),
    /// Afterwards: the attempt would then be applied.
    pub allows: fn(&Engine),
    /// After the second copy.
    pub after: fn(&Engine),
    /// Whether a cancellation names only the last of its refusing steps.
    pub names_last: bool,
    /// Whether each write after the second copy is throttled.
    pub throttles: bool,
}

impl Rival {
    pub fn of(refuses: fn(&Engine), allows: fn(&Engine)) -> Self {
        Rival { refuses, allows, after: |_| (), names_last: false, throttles: false }
    }
}

type Rows = Vec<Value>;

/// A story under way, with each state of the rows.
pub struct Story {
    moments: Moments,
    rival: Rival,
    rows: fn(&Engine) -> Rows,
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    first: Option<(String, Vec<u8>)>,
    has_rival_come: bool,
    copy: Option<u16>,
    /// Each state, with `true` if the caller's change made it, and `false` if the other writer did.
    states: Vec<(bool, Rows)>,
}

impl Story {
    /// Begins a story about these rows. Gives the client to call through.
    pub fn begin(engine: &Engine, moments: Moments, rival: Rival, rows: fn(&Engine) -> Rows) -> (Client, Arc<Self>) {
        let told = Told { states: vec![(false, rows(engine))], ..Told::default() };
        let story = Arc::new(Story { moments, rival, rows, told: Mutex::new(told) });
        let scene = story.clone();
        let client = client_whose(engine, move |engine, writes, operation, body| {
            if is_read(operation) {
                return engine.answer(operation, body);
            }
            if writes == 0 {
                (scene.rival.refuses)(engine);
                scene.note(engine, false);
                scene.told().first = Some((operation.to_owned(), body.to_vec()));
                let refused = engine.answer(operation, body);
                assert_eq!(refused.0, 400, "the first attempt is refused");
                return refused;
            }
            let has_come = scene.go_on(engine, writes);
            if has_come && scene.moments.is_throttled || scene.rival.throttles && scene.told().copy.is_some() {
                return error(400, "ThrottlingException");
            }
            let (status, mut answer) = engine.answer(operation, body);
            scene.note(engine, true);
            if status == 400 && scene.rival.names_last {
                answer = naming_last(&answer);
            }
            (status, answer)
        });
        (client, story)
    }

    fn told(&self) -> std::sync::MutexGuard<'_, Told> {
        self.told.lock().expect("no panic while telling")
    }

    fn note(&self, engine: &Engine, is_ours: bool) {
        let rows = (self.rows)(engine);
        self.told().states.push((is_ours, rows));
    }

    /// Runs the events that are due before this write. Tells whether the copy was among them.
    fn go_on(&self, engine: &Engine, writes: usize) -> bool {
        if writes >= self.moments.rival && !std::mem::replace(&mut self.told().has_rival_come, true) {
            (self.rival.allows)(engine);
            self.note(engine, false);
        }
        if writes < self.moments.copy || self.told().copy.is_some() {
            return false;
        }
        let (operation, body) = self.told().first.clone().expect("there was a first attempt");
        let (status, _) = engine.answer(&operation, &body);
        self.told().copy = Some(status);
        self.note(engine, true);
        (self.rival.after)(engine);
        self.note(engine, false);
        true
    }

    /// Runs the events that did not come during the call. Tells whether the copy was applied.
    pub fn end(&self, engine: &Engine) -> bool {
        self.go_on(engine, usize::MAX);
        self.told().copy == Some(200)
    }

    /// The rows before and after the only effect of the change; `None` if it had none. A burn is no effect.
    pub fn effect(&self) -> Option<(Rows, Rows)> {
        let told = self.told();
        let pairs = told.states.windows(2).filter(|pair| pair[1].0 && values(&pair[0].1) != values(&pair[1].1));
        let mut effects = pairs.map(|pair| (pair[0].1.clone(), pair[1].1.clone()));
        let effect = effects.next();
        assert_eq!(effects.next(), None, "applied twice, first as {effect:?}");
        effect
    }
}

/// The same cancellation with only the last of its refusing steps named.
pub fn naming_last(answer: &str) -> String {
    let mut answer: Value = serde_json::from_str(answer).expect("answers are JSON");
    let reasons = answer["CancellationReasons"].as_array_mut().expect("a cancellation");
    let last = reasons.iter().rposition(|reason| reason["Code"] != "None").expect("a refusal");
    for reason in &mut reasons[..last] {
        *reason = serde_json::json!({"Code": "None"});
    }
    answer.to_string()
}

/// The rows without the attributes of the crate. A tombstone is no row.
fn values(rows: &Rows) -> Vec<Map<String, Value>> {
    let value = |row: &Value| {
        let mut row = row.as_object().cloned().unwrap_or_default();
        if row.contains_key("_purgeAt") {
            return Map::new();
        }
        row.retain(|name, _| !name.starts_with('_'));
        row
    };
    rows.iter().map(value).filter(|row| !row.is_empty()).collect()
}
