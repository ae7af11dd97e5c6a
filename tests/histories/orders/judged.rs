//! The clerks' view of the whole shop, for a judge that knows only the rules of a shop: stocks, orders and restocks
//! change together or not at all.

use super::checks::Orders;
use super::plan::Sent;
use super::plan::{Plan, What};
use crate::harness::functions::ORDERS;
use judges::linearizable::{self, Object, Seen};
use serde_json::Value;
use tokio::time::Instant;

/// A shop, as its clients understand it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Shop {
    stocks: Vec<i64>,
    /// The state of each key's order.
    orders: Vec<Order>,
    /// Whether each key's restock was done.
    restocked: Vec<bool>,
    /// Whether a restock's key may stand for another change after a day.
    forgets: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Order {
    Absent,
    Pending,
    /// Pending, but the tag is another than at first: a write was burned in the row.
    Retagged,
    Cancelled,
}

#[derive(Clone, PartialEq, Debug)]
enum Op {
    Place {
        order: usize,
        lines: Vec<(usize, i64)>,
    },
    /// `as_placed`: only if the order is as it was placed.
    Cancel {
        order: usize,
        lines: Vec<(usize, i64)>,
        as_placed: bool,
    },
    Restock {
        restock: usize,
        product: usize,
        by: i64,
    },
    Adjust {
        product: usize,
        by: i64,
    },
    Look {
        product: usize,
    },
    Retag {
        order: usize,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Told {
    /// This request did it.
    Done,
    Stock(i64),
    /// It is done, by any request.
    IsDone,
    /// The stock is too short.
    Insufficient,
    NotFound,
    /// The order does not meet the request's condition.
    Changed,
}

impl Shop {
    /// Performs the operation, if it is possible now.
    fn performs(&mut self, op: &Op) -> bool {
        match op {
            Op::Place { order, lines } => {
                let can = self.orders[*order] == Order::Absent && self.has(lines);
                if can {
                    self.orders[*order] = Order::Pending;
                    self.move_stock(lines, -1);
                }
                can
            }
            Op::Cancel { order, lines, as_placed } => {
                let before = self.orders[*order];
                let can = before == Order::Pending || (before == Order::Retagged && !as_placed);
                if can {
                    self.move_stock(lines, 1);
                    self.orders[*order] = Order::Cancelled;
                }
                can || (before == Order::Cancelled && !as_placed)
            }
            Op::Restock { restock, product, by } => {
                let is_free = self.forgets || !self.restocked[*restock];
                let can = is_free && self.adjusts(*product, *by);
                self.restocked[*restock] |= can;
                can
            }
            Op::Adjust { product, by } => self.adjusts(*product, *by),
            Op::Retag { order } => {
                if self.orders[*order] == Order::Pending {
                    self.orders[*order] = Order::Retagged;
                }
                true
            }
            Op::Look { .. } => true,
        }
    }

    fn adjusts(&mut self, product: usize, by: i64) -> bool {
        let can = self.stocks[product] + by >= 0;
        if can {
            self.stocks[product] += by;
        }
        can
    }

    fn move_stock(&mut self, lines: &[(usize, i64)], sign: i64) {
        for (product, quantity) in lines {
            self.stocks[*product] += sign * quantity;
        }
    }

    fn has(&self, lines: &[(usize, i64)]) -> bool {
        lines.iter().all(|(product, quantity)| self.stocks[*product] >= *quantity)
    }
}

impl Object for Shop {
    type Op = Op;
    type Told = Told;

    fn may_do(&mut self, op: &Op) {
        self.performs(op);
    }

    fn does(&mut self, op: &Op, told: &Told) -> bool {
        match (told, op) {
            (Told::Stock(stock), Op::Look { product }) => self.stocks[*product] == *stock,
            (Told::Done, _) => self.performs(op),
            (Told::IsDone, Op::Place { order, .. }) => self.orders[*order] != Order::Absent,
            (Told::IsDone, Op::Restock { restock, .. }) => self.restocked[*restock],
            (Told::Insufficient, Op::Place { order, lines }) => {
                self.orders[*order] == Order::Absent && !self.has(lines)
            }
            (Told::Insufficient, Op::Restock { restock, product, by }) => {
                (self.forgets || !self.restocked[*restock]) && self.stocks[*product] + by < 0
            }
            (Told::Insufficient, Op::Adjust { product, by }) => self.stocks[*product] + by < 0,
            (Told::NotFound, Op::Cancel { order, .. }) => self.orders[*order] == Order::Absent,
            (Told::Changed, Op::Cancel { order, .. }) => {
                matches!(self.orders[*order], Order::Retagged | Order::Cancelled)
            }
            _ => false,
        }
    }
}

/// The judge's objection to this history.
pub fn violation(ended: &Orders) -> Option<String> {
    let plan = &ended.scene.plan;
    let shop = Shop {
        stocks: plan.stocks.clone(),
        orders: vec![Order::Absent; plan.orders.len()],
        restocked: vec![false; plan.restocks.len()],
        forgets: ended.scene.days.is_some(),
    };
    let mut seen: Vec<_> = ended.sent.iter().filter_map(|sent| seen(plan, sent)).collect();
    seen.extend(ended.sent.iter().filter_map(|sent| shown(plan, sent)));
    // The one exception: a refused request and its second copy, which the network delivered later.
    let copied = ended.sent.iter().filter(|sent| ended.is_made_untrue(sent));
    seen.extend(copied.map(|sent| of(plan, sent)));
    seen.extend(burns(ended));
    linearizable::judge(shop, seen).err()
}

/// A request with an unknown outcome.
fn of(plan: &Plan, sent: &Sent) -> Seen<Op, Told> {
    let op = match sent.what {
        What::Place(order) => Op::Place { order, lines: plan.orders[order].clone() },
        What::Cancel(order, ref tag) => {
            Op::Cancel { order, lines: plan.orders[order].clone(), as_placed: tag.is_some() }
        }
        What::Restock(restock) => {
            let (product, by) = plan.restocks[restock];
            Op::Restock { restock, product, by }
        }
        What::Adjust(product, by) => Op::Adjust { product, by },
    };
    let [began, ended] = [sent.began, sent.ended].map(Instant::into_std);
    Seen { client: sent.client, began, ended, op, told: None }
}

/// A request as its clerk saw it. `None` if the answer says nothing about the shop, except that nothing was done.
fn seen(plan: &Plan, sent: &Sent) -> Option<Seen<Op, Told>> {
    let told = match (sent.status, &sent.what) {
        (200 | 201, What::Place(_) | What::Restock(_)) if sent.replayed => Some(Told::IsDone),
        (200 | 201, _) => Some(Told::Done),
        (504, _) => None,
        (404, What::Cancel(..)) => Some(Told::NotFound),
        (412, What::Cancel(..)) => Some(Told::Changed),
        (409, _) if sent.body.contains("insufficient_stock") => Some(Told::Insufficient),
        (500.., _) => return None,
        _ => panic!("no such answer is expected: {sent:?}"),
    };
    Some(Seen { told, ..of(plan, sent) })
}

/// The burns in rows of orders, each by a client of its own.
fn burns(ended: &Orders) -> impl Iterator<Item = Seen<Op, Told>> {
    let plan = &ended.scene.plan;
    (BURNS..).zip(&ended.burns).filter_map(|(client, burn)| {
        let order = (0..plan.orders.len()).find(|order| burn.left_in(ORDERS, &plan.order_id(*order)).is_some())?;
        let [began, ended] = [burn.time.into_std(); 2];
        Some(Seen { client, began, ended, op: Op::Retag { order }, told: Some(Told::Done) })
    })
}

/// The first client number for burns.
const BURNS: u64 = 1 << 33;
/// The first client number for looks of other clients.
const LOOKS: u64 = 1 << 32;

/// The stock in an answer was there at some moment of the call. This is not always the moment of the change: after a
/// lost answer, the row is shown in its later state.
fn shown(plan: &Plan, sent: &Sent) -> Option<Seen<Op, Told>> {
    let product = match sent.what {
        What::Adjust(product, _) => product,
        What::Restock(restock) => plan.restocks[restock].0,
        What::Place(_) | What::Cancel(..) => return None,
    };
    if !sent.is_success() || sent.replayed {
        return None;
    }
    let stock = serde_json::from_str::<Value>(&sent.body).ok()?["stock"].as_i64()?;
    let [began, ended] = [sent.began, sent.ended].map(Instant::into_std);
    let told = Some(Told::Stock(stock));
    Some(Seen { client: LOOKS + sent.number, began, ended, op: Op::Look { product }, told })
}
