//! The possible requests of one history, drawn before it begins. Several clerks can then send the same one.

use fencepost::derived_id;

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
        let products = (0..count).map(|index| format!("{index}-{caller}").replace(['(', ')'], "-")).collect();
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
