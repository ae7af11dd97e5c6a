//! The changes in one history, drawn before it begins, with the end that follows from them. The state that its clients
//! share, with their requests and answers.

use crate::histories::scene;
use fencepost::Timestamp;
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use tokio::time::Instant;

/// An instance, or all instances of a moment. The newer of two is the greater one, by the contract. This rule is
/// written here once more: the tests must not trust the crate.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Who {
    /// In milliseconds since 1970.
    pub moment: u64,
    pub name: Name,
}

/// All instances of a moment come after each of them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Name {
    One(String),
    All,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    Register(Who),
    Delete(Who),
}

/// A row: a mapping, or a tombstone.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Stand {
    pub who: Who,
    pub live: bool,
}

impl Who {
    pub fn one(moment: u64, name: &str) -> Self {
        Who { moment, name: Name::One(name.to_owned()) }
    }

    pub fn all(moment: u64) -> Self {
        Who { moment, name: Name::All }
    }

    /// The timestamp as clients write it.
    pub fn timestamp(&self) -> String {
        Timestamp::from_epoch_millis(self.moment).expect("a moment of our time").to_string()
    }

    pub fn instance(&self) -> Option<&str> {
        match &self.name {
            Name::One(name) => Some(name),
            Name::All => None,
        }
    }

    fn cell(&self) -> String {
        format!("cell-{}-{}", self.moment % 10, self.instance().expect("one instance"))
    }

    /// The body that registers it.
    pub fn body(&self) -> Value {
        json!({"cellId": self.cell(), "instanceId": self.instance(), "creationTimestamp": self.timestamp()})
    }

    /// The answer to a look-up.
    pub fn shown(&self, address: &str) -> Value {
        let mut shown = self.body();
        shown["hostIp"] = json!(address);
        shown
    }

    /// The message that deletes it, with extra members.
    pub fn message(&self, address: &str) -> Value {
        let mut message = json!({"hostIp": address, "creationTimestamp": self.timestamp(), "reason": {"code": 7}});
        if let Some(instance) = self.instance() {
            message["instanceId"] = json!(instance);
        }
        message
    }

    /// The instance in a body.
    pub fn of_body(body: &Value) -> Self {
        let moment = Timestamp::from_rfc3339(body["creationTimestamp"].as_str().expect("a timestamp"));
        let moment = moment.ok().and_then(Timestamp::epoch_millis).expect("a moment after 1970");
        body["instanceId"].as_str().map_or_else(|| Who::all(moment), |name| Who::one(moment, name))
    }
}

impl Change {
    pub fn who(&self) -> &Who {
        let (Change::Register(who) | Change::Delete(who)) = self;
        who
    }
}

impl Stand {
    pub fn of_row(row: &Value) -> Self {
        let moment = row["creationTimestamp"]["N"].as_str().and_then(|number| number.parse().ok());
        let moment = moment.unwrap_or_else(|| panic!("a whole number of milliseconds: {row}"));
        let name = row["instanceId"]["S"].as_str();
        let who = name.map_or_else(|| Who::all(moment), |name| Who::one(moment, name));
        Stand { who, live: row.get("_purgeAt").is_none() }
    }
}

/// The instance that is seen in the end, in any order of arrival: the newest registered one, if it is newer than all
/// deleted ones.
pub fn left_by<'a>(changes: impl IntoIterator<Item = &'a Change>) -> Option<Who> {
    let (mut registered, mut deleted) = (None, None);
    for change in changes {
        match change {
            Change::Register(who) => registered = registered.max(Some(who)),
            Change::Delete(who) => deleted = deleted.max(Some(who)),
        }
    }
    registered.filter(|who| Some(*who) > deleted).cloned()
}

/// An instance that was deleted at an address a month before.
#[derive(Clone, Debug)]
pub struct Buried {
    pub who: Who,
    /// Whether it is newer than all instances in the plan. Then no change has an effect before the tombstone is gone.
    pub is_newest: bool,
    /// The end of its tombstone, after the start of the history.
    pub ends_after: Duration,
}

impl Buried {
    /// The instance deleted at each address, in one of four histories. `first` is the earliest moment in the plan.
    pub fn draw(seed: u64, addresses: usize, first: u64) -> Vec<Option<Self>> {
        let mut rng = fastrand::Rng::with_seed(seed ^ 0xB0_41ED);
        let has_some = rng.u32(..4) == 0;
        let mut buried = |_| {
            let (is_there, is_newest) = (rng.u32(..3) > 0, rng.bool());
            let ends_after = Duration::from_millis(rng.u64(0..900_000));
            let who = Who::one(if is_newest { first + 100 } else { first - 100 }, "x");
            (has_some && is_there).then_some(Buried { who, is_newest, ends_after })
        };
        (0..addresses).map(&mut buried).collect()
    }

    pub fn stand(&self) -> Stand {
        Stand { who: self.who.clone(), live: false }
    }
}

/// One change to an address.
#[derive(Clone, Debug)]
pub struct Ask {
    pub address: usize,
    pub change: Change,
    /// Through the queue, not by HTTP.
    pub queued: bool,
}

pub struct Plan {
    /// Unique to this history.
    pub addresses: Vec<Address>,
    pub asks: Vec<Ask>,
    /// The instance that was deleted at each address a month before.
    pub buried: Vec<Option<Buried>>,
}

/// An address as it is kept, and its spellings.
pub struct Address {
    pub kept: String,
    pub written: Vec<String>,
}

impl Address {
    fn draw(rng: &mut fastrand::Rng, number: u64) -> Self {
        let [.., high, middle, low] = number.to_be_bytes();
        if rng.bool() {
            let kept = format!("10.{high}.{middle}.{low}");
            return Address { written: vec![kept.clone(), format!("::ffff:{kept}"), format!("::FFFF:{kept}")], kept };
        }
        let low = u16::from_be_bytes([middle, low]);
        let long = format!("2001:0DB8:0000:0000:0000:000A:{high:04X}:{low:04X}");
        let kept = long.parse::<std::net::Ipv6Addr>().expect("an address").to_string();
        Address { written: vec![kept.clone(), kept.to_uppercase(), long], kept }
    }
}

impl Plan {
    /// Draws few instances of few moments, so that they meet. `first` is the earliest moment.
    pub fn draw(rng: &mut fastrand::Rng, seed: u64, first: u64) -> Self {
        let addresses: Vec<_> =
            (0..rng.u64(1..=3)).map(|index| Address::draw(rng, seed.wrapping_mul(4) + index)).collect();
        let mut asks = Vec::new();
        for address in 0..addresses.len() {
            let moments = rng.u64(1..=3);
            for _ in 0..rng.usize(2..=5) {
                let who = Who::one(first + rng.u64(0..moments), ["B", "a", "ab", "b"][rng.usize(0..4)]);
                let delete = if rng.u8(0..5) == 0 { Who::all(who.moment) } else { who.clone() };
                let (registered, deleted) = (rng.u8(0..8) > 0, rng.u8(0..8) < 3);
                if registered {
                    asks.push(Ask { address, change: Change::Register(who), queued: false });
                }
                if deleted {
                    asks.push(Ask { address, change: Change::Delete(delete), queued: rng.bool() });
                }
            }
        }
        let buried = Buried::draw(seed, addresses.len(), first);
        Plan { addresses, asks, buried }
    }

    /// The instance behind an address in the end.
    pub fn ends_with(&self, address: usize) -> Option<Who> {
        left_by(self.asks.iter().filter(|ask| ask.address == address).map(|ask| &ask.change))
    }

    /// The number of different changes.
    pub fn different(&self) -> usize {
        let same = |one: &Ask, other: &Ask| one.address == other.address && one.change == other.change;
        let first = |(place, ask): (usize, &Ask)| !self.asks[..place].iter().any(|earlier| same(earlier, ask));
        self.asks.iter().enumerate().filter(|place_and_ask| first(*place_and_ask)).count()
    }
}

/// The part of the scene for these histories alone.
pub struct Own {
    pub plan: Plan,
    /// The deletes in the queue, by their place in the plan.
    pub queue: Mutex<Vec<usize>>,
    /// The number of clients that may still add to the queue.
    pub asking: AtomicUsize,
}

pub type Scene = scene::Scene<Own, Sent>;

/// A request about an address.
#[derive(Clone, PartialEq, Debug)]
pub enum What {
    Change(Change),
    LookUp,
}

/// The answer to one request or message.
#[derive(Clone, PartialEq, Debug)]
pub enum Told {
    New,
    Same,
    /// The newer instance, if the answer names it.
    Superseded(Option<Who>),
    Deleted,
    AlreadyGone,
    Folded,
    Shown(Who),
    ShownNothing,
    NotApplied,
    Unknown,
}

impl Told {
    pub fn is_definite(&self) -> bool {
        !matches!(self, Told::NotApplied | Told::Unknown)
    }
}

/// One request or one message of a batch, with its answer.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The number of its invocation. All messages of a batch have the same number.
    pub number: u64,
    /// The client. `None` for a message of the queue: those of one batch are handled at once.
    pub client: Option<u64>,
    pub address: usize,
    pub what: What,
    pub began: Instant,
    pub ended: Instant,
    pub told: Told,
}

impl Sent {
    pub fn was_queued(&self) -> bool {
        self.client.is_none()
    }
}
