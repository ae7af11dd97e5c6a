//! What the clients saw of the ledger, for a judge that knows nothing else.

use super::record::{Ended, Ledger, Operation, TTL, Told};
use crate::harness::states::version;
use fencepost::ItemVersion;
use judges::linearizable::Seen;
use judges::register::{self, Op, SeenOf, Shown, Value};

impl Value for Ledger {
    /// The number of the operation that adds.
    type Amount = u64;

    fn plus(&self, number: &u64) -> Option<Self> {
        Some(self.added(*number)).filter(Ledger::is_right)
    }
}

/// What the judge says against this history.
pub fn violation(ended: &Ended) -> Option<String> {
    let mut seen: Vec<_> = ended.done.iter().filter_map(seen).collect();
    seen.extend(ended.done.iter().filter_map(|operation| made_untrue(ended, operation)));
    seen.extend(purges(ended));
    register::judge(None, seen).err()
}

/// An operation as its client saw it. `None` if it was told that nothing was done, and nothing about the ledger: then
/// nothing that others see may need it.
fn seen(operation: &Operation) -> Option<SeenOf<Ledger>> {
    let Operation { number, client, began, ended, .. } = *operation;
    let (op, told) = match &operation.told {
        Told::Applied(at, _) => (op(operation)?, Some(register::Told::Done(Some(version(*at))))),
        Told::Landed => (op(operation)?, Some(register::Told::Done(None))),
        Told::Saw(at, ledger) => (Op::Read, Some(register::Told::Saw(Some(shown(*at, ledger))))),
        Told::SawNothing => (Op::Read, Some(register::Told::Saw(None))),
        Told::OutOfRange(at, ledger) => (Op::Add(number), Some(register::Told::OutOfBounds(shown(*at, ledger)))),
        Told::Unknown => (op(operation)?, None),
        Told::NotApplied => return None,
    };
    Some(Seen { client, began: began.into_std(), ended: ended.into_std(), op, told })
}

fn shown(at: ItemVersion, ledger: &Ledger) -> Shown<Ledger> {
    Shown { value: ledger.clone(), at: Some(version(at)) }
}

/// What it asked for. `None` if it decided nothing, so that it cannot have sent a write.
fn op(operation: &Operation) -> Option<Op<Ledger>> {
    Some(match operation.what {
        "get" => Op::Read,
        "create" => Op::Create(Ledger::first(operation.number)),
        "delete" | "delete at version" => Op::Delete,
        _ if operation.adds() => Op::Add(operation.number),
        _ => {
            let (from, to) = operation.asked.decided.clone()?;
            Op::CompareAndSet { from, to }
        }
    })
}

/// The one honest exception: a refused add, of which the network delivered a second copy later. Nobody knows what became
/// of that copy.
fn made_untrue(ended: &Ended, operation: &Operation) -> Option<SeenOf<Ledger>> {
    let is_copy = ended.applied.iter().any(|applied| applied.op == operation.number && applied.is_copy_of_refused);
    let is_refused = !matches!(operation.told, Told::Applied(..) | Told::Landed | Told::Unknown);
    let Operation { number, client, began, ended, .. } = *operation;
    (is_copy && is_refused && operation.adds()).then_some(Seen {
        client,
        began: began.into_std(),
        ended: ended.into_std(),
        op: Op::Add(number),
        told: None,
    })
}

/// What TTL removed, as its own client.
fn purges(ended: &Ended) -> impl Iterator<Item = SeenOf<Ledger>> {
    ended.applied.iter().filter(|applied| applied.op == TTL).map(|applied| {
        let told = Some(register::Told::Done(None));
        let time = applied.time.into_std();
        Seen { client: TTL / 2, began: time, ended: time, op: Op::Purge, told }
    })
}
