//! The items as the clients of both Regions saw them, for a judge without other knowledge.

use super::told::{ITEMS, Told};
use crate::harness::states::version;
use judges::linearizable::Seen;
use judges::register::{self, Op, SeenOf, Shown, Value};
use tokio::time::Instant;

/// The balance of an account.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Balance(pub i64);

impl Value for Balance {
    type Amount = i64;

    fn plus(&self, amount: &i64) -> Option<Self> {
        self.0.checked_add(*amount).map(Balance)
    }
}

/// One client's view of an item, from its request until now. `None` if it was only told that nothing was done.
pub fn seen(client: u64, began: Instant, op: Op<Balance>, told: &Told) -> Option<SeenOf<Balance>> {
    let (op, told) = match told {
        Told::Applied(made) => (op, Some(register::Told::Done(made.map(version)))),
        Told::Saw(None) => (Op::Read, Some(register::Told::Saw(None))),
        Told::Saw(Some(now)) => {
            let shown = Shown { value: Balance(now.value.balance), at: Some(version(now.at)) };
            (Op::Read, Some(register::Told::Saw(Some(shown))))
        }
        Told::Unknown => (op, None),
        Told::NotApplied | Told::Fenced => return None,
    };
    Some(Seen { client, began: began.into_std(), ended: Instant::now().into_std(), op, told })
}

/// The judge's objections to each item. All items are absent at first.
pub fn violations(seen: &[(&'static str, SeenOf<Balance>)]) -> Vec<String> {
    let judge = |item: &str| {
        let of_item = seen.iter().filter(|(of, _)| *of == item).map(|(_, seen)| seen.clone());
        register::judge(None, of_item.collect()).err().map(|why| format!("{item}: {why}"))
    };
    ITEMS.into_iter().filter_map(judge).collect()
}
