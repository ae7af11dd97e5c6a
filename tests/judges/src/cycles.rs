//! Checks the serializability of transactions over several lists by their dependencies.
//!
//! The method is that of Elle (Kingsbury and Alvaro 2020, <https://doi.org/10.14778/3430915.3430918>), for lists with
//! appends. Each element names its writer: a list that was read shows the order of all earlier writes. Three kinds of
//! dependencies follow from these orders. A cycle of dependencies is an anomaly, named after their kinds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The name of a list.
pub type List = &'static str;

/// One transaction as its client saw it.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// The element that it appends, as its name.
    pub name: u64,
    /// The answer to its client.
    pub told: Told,
    /// The lists that the transaction read, without its own appends.
    pub read: Vec<(List, Vec<u64>)>,
    /// The lists that received its append.
    pub appended: BTreeSet<List>,
}

/// The answer to a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    /// It is in effect.
    Committed,
    /// It is not in effect and never will be.
    NotCommitted,
    /// The outcome is unknown.
    Unknown,
}

/// An anomaly and its place in a history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Anomaly {
    /// A list has an element twice.
    Twice {
        /// The list.
        list: List,
        /// The element.
        element: u64,
    },
    /// Two reads of a list disagree about the order of its elements.
    Torn {
        /// The list.
        list: List,
    },
    /// An element was read, or is there at the end, without a committed append.
    DirtyRead {
        /// The list.
        list: List,
        /// The element.
        element: u64,
    },
    /// A committed append is not in the list at the end.
    Lost {
        /// The list.
        list: List,
        /// The element.
        element: u64,
    },
    /// Transactions depend on each other in a circle.
    Cycle(Vec<(u64, Dependency)>),
}

/// Why the next transaction must come after this one in every order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Dependency {
    /// It appended right after this one's append.
    AppendedAfter(List),
    /// It read this one's append.
    Read(List),
    /// This one read the list without its append.
    Unseen(List),
}

impl Dependency {
    fn is_unseen(self) -> bool {
        matches!(self, Dependency::Unseen(_))
    }
}

/// The start of the name of a cycle in which two or more transactions did not see an append of the next.
pub const WRITE_SKEW: &str = "write skew";
/// The same for one transaction.
pub const READ_SKEW: &str = "read skew";
/// The same for none.
pub const CIRCULAR: &str = "circular information flow";

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Anomaly::Twice { list, element } => write!(f, "double append: {list} has {element} twice"),
            Anomaly::Torn { list } => write!(f, "torn order: two reads of {list} disagree"),
            Anomaly::DirtyRead { list, element } => write!(f, "dirty read: {element} in {list} was never committed"),
            Anomaly::Lost { list, element } => write!(f, "lost update: {element} is not in {list} at the end"),
            Anomaly::Cycle(cycle) => {
                let unseen = cycle.iter().filter(|(_, why)| why.is_unseen()).count();
                f.write_str([CIRCULAR, READ_SKEW, WRITE_SKEW][unseen.min(2)])?;
                let nexts = cycle.iter().cycle().skip(1);
                for ((name, why), (next, _)) in cycle.iter().zip(nexts) {
                    match why {
                        Dependency::AppendedAfter(list) => write!(f, "; {next} appended to {list} after {name}")?,
                        Dependency::Read(list) => write!(f, "; {next} read in {list} what {name} appended")?,
                        Dependency::Unseen(list) => write!(f, "; {name} read {list} without what {next} appended")?,
                    }
                }
                Ok(())
            }
        }
    }
}

/// All anomalies of these transactions. `last` has the final lists. Each group of transactions that depend on each
/// other has one cycle in the result.
pub fn anomalies(transactions: &[Transaction], last: &[(List, Vec<u64>)]) -> Vec<Anomaly> {
    let mut found = Vec::new();
    let orders: BTreeMap<List, &[u64]> = last.iter().map(|(list, elements)| (*list, elements.as_slice())).collect();
    let committed: BTreeSet<u64> = transactions
        .iter()
        .filter(|transaction| is_in_effect(transaction, &orders))
        .map(|transaction| transaction.name)
        .collect();
    for (list, order) in &orders {
        let mut seen = BTreeSet::new();
        for element in *order {
            if !seen.insert(element) {
                found.push(Anomaly::Twice { list, element: *element });
            }
            if !committed.contains(element) {
                found.push(Anomaly::DirtyRead { list, element: *element });
            }
        }
    }
    for transaction in transactions.iter().filter(|transaction| committed.contains(&transaction.name)) {
        for list in transaction.appended.iter().filter(|list| !orders[*list].contains(&transaction.name)) {
            found.push(Anomaly::Lost { list, element: transaction.name });
        }
    }
    for transaction in transactions.iter().filter(|transaction| transaction.told != Told::NotCommitted) {
        for (list, elements) in &transaction.read {
            if let Some(element) = elements.iter().find(|element| !committed.contains(element)) {
                found.push(Anomaly::DirtyRead { list, element: *element });
            } else if !orders[list].starts_with(elements) {
                found.push(Anomaly::Torn { list });
            }
        }
    }
    if found.is_empty() {
        let effective = transactions.iter().filter(|transaction| committed.contains(&transaction.name));
        found.extend(cycles(&dependencies(effective, &orders)).into_iter().map(Anomaly::Cycle));
    }
    found
}

/// Whether a transaction counts: the client was told so, or the outcome is unknown and an append is there.
fn is_in_effect(transaction: &Transaction, orders: &BTreeMap<List, &[u64]>) -> bool {
    let is_there = |list: &List| orders[list].contains(&transaction.name);
    match transaction.told {
        Told::Committed => true,
        Told::NotCommitted => false,
        Told::Unknown => transaction.appended.iter().any(is_there),
    }
}

type Graph = BTreeMap<u64, BTreeSet<(u64, Dependency)>>;

fn dependencies<'a>(transactions: impl Iterator<Item = &'a Transaction>, orders: &BTreeMap<List, &[u64]>) -> Graph {
    let mut graph = Graph::new();
    let mut depends = |first: u64, then: u64, why: Dependency| {
        if first != then {
            graph.entry(first).or_default().insert((then, why));
        }
    };
    for (list, order) in orders {
        for pair in order.windows(2) {
            depends(pair[0], pair[1], Dependency::AppendedAfter(list));
        }
    }
    for transaction in transactions {
        for (list, elements) in &transaction.read {
            if let Some(last) = elements.last() {
                depends(*last, transaction.name, Dependency::Read(list));
            }
            if let Some(next) = orders[list].get(elements.len()) {
                depends(transaction.name, *next, Dependency::Unseen(list));
            }
        }
    }
    graph
}

/// The shortest cycle of each group, if there is one. Among cycles of equal length, the one with the fewest unseen
/// appends is first.
fn cycles(graph: &Graph) -> Vec<Vec<(u64, Dependency)>> {
    let mut shortest: Vec<_> = graph.keys().filter_map(|start| cycle_through(graph, *start)).collect();
    let unseen = |cycle: &Vec<(u64, Dependency)>| cycle.iter().filter(|(_, why)| why.is_unseen()).count();
    shortest.sort_by_key(|cycle| (cycle.len(), unseen(cycle)));
    let mut named = BTreeSet::new();
    shortest.retain(|cycle| {
        let is_new = cycle.iter().all(|(name, _)| !named.contains(name));
        named.extend(cycle.iter().map(|(name, _)| *name));
        is_new
    });
    shortest
}

/// The shortest way from a transaction back to itself, breadth first.
fn cycle_through(graph: &Graph, start: u64) -> Option<Vec<(u64, Dependency)>> {
    let mut came: BTreeMap<u64, (u64, Dependency)> = BTreeMap::new();
    let mut next = vec![start];
    while !next.is_empty() && !came.contains_key(&start) {
        let mut reached = Vec::new();
        for name in next {
            for (then, why) in graph.get(&name).into_iter().flatten() {
                if !came.contains_key(then) {
                    came.insert(*then, (name, *why));
                    reached.push(*then);
                }
            }
        }
        next = reached;
    }
    let mut cycle = vec![*came.get(&start)?];
    while cycle[0].0 != start {
        cycle.insert(0, came[&cycle[0].0]);
    }
    Some(cycle)
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: List = "x";
    const Y: List = "y";

    fn did(name: u64, read: &[(List, &[u64])], appended: &[List]) -> Transaction {
        let read = read.iter().map(|(list, elements)| (*list, elements.to_vec())).collect();
        Transaction { name, told: Told::Committed, read, appended: appended.iter().copied().collect() }
    }

    fn judged(transactions: &[Transaction], x: &[u64], y: &[u64]) -> Vec<String> {
        let last = [(X, x.to_vec()), (Y, y.to_vec())];
        anomalies(transactions, &last).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn transactions_in_one_order_have_no_anomaly() {
        let order = [
            did(1, &[(X, &[]), (Y, &[])], &[X, Y]),
            did(2, &[(X, &[1]), (Y, &[1])], &[X]),
            did(3, &[(X, &[1, 2]), (Y, &[1])], &[]),
            did(4, &[(Y, &[1])], &[Y]),
        ];
        assert_eq!(judged(&order, &[1, 2], &[1, 4]), [""; 0]);
    }

    #[test]
    fn a_transaction_may_see_less_than_was_committed_before_it_began() {
        // Serializable, though not in the order of time. Nothing more is promised across items.
        let order = [did(1, &[], &[X]), did(2, &[], &[Y]), did(3, &[(X, &[]), (Y, &[2])], &[])];
        assert_eq!(judged(&order, &[1], &[2]), [""; 0]);
    }

    #[test]
    fn a_cycle_is_named_after_its_unseen_appends_and_other_anomalies_after_what_is_there() {
        let nothing: &[(List, &[u64])] = &[(X, &[]), (Y, &[])];
        let skew = [did(1, nothing, &[X]), did(2, nothing, &[Y])];
        let named = "write skew; 1 read y without what 2 appended; 2 read x without what 1 appended";
        assert_eq!(judged(&skew, &[1], &[2]), [named]);
        let skew = [did(1, &[], &[X, Y]), did(2, &[(X, &[1]), (Y, &[])], &[])];
        let named = "read skew; 2 read in x what 1 appended; 2 read y without what 1 appended";
        assert_eq!(judged(&skew, &[1], &[1]), [named]);
        let circle = [did(1, &[], &[X, Y]), did(2, &[], &[X, Y])];
        let named = "circular information flow; 2 appended to x after 1; 1 appended to y after 2";
        assert_eq!(judged(&circle, &[1, 2], &[2, 1]), [named]);
        assert_eq!(judged(&[did(1, &[], &[X])], &[1, 1], &[]), ["double append: x has 1 twice"]);
        let torn = [did(1, &[], &[X]), did(2, &[], &[X]), did(3, &[(X, &[2])], &[])];
        assert_eq!(judged(&torn, &[1, 2], &[]), ["torn order: two reads of x disagree"]);
    }

    #[test]
    fn a_lost_update_is_an_append_that_is_not_there_at_the_end() {
        let lost = [did(1, &[(X, &[])], &[X]), did(2, &[(X, &[])], &[X])];
        assert_eq!(judged(&lost, &[2], &[]), ["lost update: 1 is not in x at the end"]);
        // Half of a transaction is lost too, even after an unknown outcome.
        let half = Transaction { told: Told::Unknown, ..did(1, &[], &[X, Y]) };
        assert_eq!(judged(&[half], &[1], &[]), ["lost update: 1 is not in y at the end"]);
    }

    #[test]
    fn a_dirty_read_is_one_of_what_was_not_committed_also_where_it_is_gone_at_the_end() {
        let refused = Transaction { told: Told::NotCommitted, ..did(1, &[], &[X]) };
        let reader = did(2, &[(X, &[1])], &[]);
        let expected = ["dirty read: 1 in x was never committed"];
        assert_eq!(judged(&[refused.clone(), reader.clone()], &[], &[]), expected);
        assert_eq!(judged(std::slice::from_ref(&refused), &[1], &[]), expected);
        let unknown = Transaction { told: Told::Unknown, ..refused };
        assert_eq!(judged(&[unknown.clone(), reader.clone()], &[1], &[]), [""; 0]);
        assert_eq!(judged(&[unknown, reader], &[], &[]), expected);
    }
}
