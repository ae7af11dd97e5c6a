//! The possible requests of one history, drawn before it begins, so that several clerks can send the same one. The state that
//! the clerks share, and their answers.

use crate::harness::faults::Broken;
use crate::histories::scene;
use fencepost::derived_id;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The orders and restocks with keys, and their products.
pub struct Plan {
    /// The caller, unique to this history.
    pub caller: String,
    pub products: Vec<String>,
    /// The stock of each product at first.
    pub stocks: Vec<i64>,
    /// The lines of each key's order: product and quantity.
    pub orders: Vec<Vec<(usize, i64)>>,
    /// The restock of each key: product and amount.
    pub restocks: Vec<(usize, i64)>,
}

/// One request, by its place in the plan.
#[derive(Clone, Debug)]
pub enum What {
    Place(usize),
    /// The order and the tag for `If-Match`.
    Cancel(usize, Option<String>),
    Restock(usize),
    /// Without a key: every request counts.
    Adjust(usize, i64),
}

impl What {
    /// The same request again. `None` if a repeat would be another change.
    pub fn to_repeat(&self) -> Option<Self> {
        match self {
            What::Place(_) | What::Restock(_) => Some(self.clone()),
            // The request itself may have made its tag stale.
            What::Cancel(order, _) => Some(What::Cancel(*order, None)),
            What::Adjust(..) => None,
        }
    }

    /// Whether both have the same key.
    pub fn has_key_of(&self, other: &What) -> bool {
        matches!((self, other), (What::Place(one), What::Place(two)) | (What::Restock(one), What::Restock(two)) if one == two)
    }
}

impl Plan {
    pub fn draw(rng: &mut fastrand::Rng, caller: String) -> Self {
        let count = rng.usize(2..=3);
        let products = (0..count).map(|index| format!("{index}-{caller}")).collect();
        let stocks = (0..count).map(|_| rng.i64(2..=9)).collect();
        let mut lines = |_| {
            let first = rng.usize(0..count);
            let taken = (0..rng.usize(1..=2)).map(|offset| ((first + offset) % count, rng.i64(1..=3)));
            taken.collect()
        };
        let orders = (0..4).map(&mut lines).collect();
        let restocks = (0..3).map(|_| (rng.usize(0..count), rng.i64(-2..=3))).collect();
        Plan { caller, products, stocks, orders, restocks }
    }

    /// A random request. `tags` are those of placed orders.
    pub fn pick(&self, mut below: impl FnMut(usize) -> usize, tags: &[(usize, String)]) -> What {
        match below(10) {
            0..=4 => What::Place(below(self.orders.len())),
            5 | 6 => match below(2) {
                0 if !tags.is_empty() => {
                    let (order, tag) = tags[below(tags.len())].clone();
                    What::Cancel(order, Some(tag))
                }
                _ => What::Cancel(below(self.orders.len()), None),
            },
            7 | 8 => What::Restock(below(self.restocks.len())),
            _ => What::Adjust(below(self.products.len()), [-2, -1, 0, 1, 2, 3][below(6)]),
        }
    }

    /// The user of each key's order, who identifies it under any id.
    pub fn user(order: usize) -> String {
        format!("user-{order}")
    }

    pub fn order_key(order: usize) -> String {
        format!("place-{order}")
    }

    pub fn restock_key(restock: usize) -> String {
        format!("restock-{restock}")
    }

    pub fn order_id(&self, order: usize) -> String {
        derived_id(&["order", &self.caller, &Self::user(order), &Self::order_key(order)])
    }

    pub fn record_id(&self, restock: usize) -> String {
        let route = "POST /products/{productId}/adjustments";
        derived_id(&[&self.caller, route, &Self::restock_key(restock)])
    }
}

/// The part of the scene for these histories alone.
pub struct Own {
    pub plan: Plan,
    pub broken: Broken,
    /// In some histories, the clerks are away for days and records of keys end.
    pub days: Option<Days>,
}

pub type Scene = scene::Scene<Own, Sent>;

/// The absences of the clerks and the times of TTL, from random numbers of their own.
pub struct Days(Mutex<fastrand::Rng>);

impl Days {
    /// One in four histories has them.
    pub fn of(seed: u64) -> Option<Self> {
        let mut rng = fastrand::Rng::with_seed(seed ^ 0xDA75_DA75);
        (rng.u32(..4) == 0).then(|| Days(Mutex::new(rng)))
    }

    pub fn below(&self, bound: u64) -> u64 {
        self.0.lock().expect("no panic while drawing").u64(0..bound)
    }

    /// Some clerks rest for about as long as a record is kept, some for longer than a tombstone.
    pub async fn rest(&self) {
        let hours = [0, 0, 23, 24, 25, 26, 8 * 24][usize::try_from(self.below(7)).expect("few")];
        if hours > 0 {
            sleep(Duration::from_hours(hours) + Duration::from_millis(self.below(3_600_000))).await;
        }
    }
}

/// One invocation of a function, and its answer.
#[derive(Clone, Debug)]
pub struct Sent {
    pub number: u64,
    pub client: u64,
    pub what: What,
    pub began: Instant,
    pub ended: Instant,
    pub status: u16,
    pub body: String,
    pub etag: Option<String>,
    pub replayed: bool,
    pub conflicts: u32,
}

impl Sent {
    pub fn is_unknown(&self) -> bool {
        self.status == 504
    }

    pub fn is_refusal(&self) -> bool {
        (400..500).contains(&self.status)
    }

    pub fn is_success(&self) -> bool {
        matches!(self.status, 200 | 201)
    }
}
