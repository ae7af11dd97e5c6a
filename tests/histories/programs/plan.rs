//! A program: a seed and the operations of its clients. It knows no type and no method of Fencepost, so that another
//! surface needs another interpreter and no other program.

use super::catalog::{KINDS, Row};
use super::edits::{Ask, Clause, Edit, Path, Within};
use super::values::Draw;
use crate::histories::scene::{STORM, rates};
use fencepost_test::Rates;
use serde_json::{Value, json};
use std::fmt;

/// A program.
#[derive(Clone)]
pub struct Program {
    pub seed: u64,
    pub rates: Rates,
    /// Whether TTL removes rows as soon as they have ended, and how often it looks, in milliseconds.
    pub ttl: u64,
    pub clients: Vec<Client>,
}

/// A client and its work, one task after the other.
#[derive(Clone, Debug)]
pub struct Client {
    pub remembers: bool,
    pub few_attempts: bool,
    /// Whether it runs an older build of the program.
    pub is_older: bool,
    pub tasks: Vec<Task>,
}

#[derive(Clone, Debug)]
pub struct Task {
    pub op: Op,
    /// Milliseconds to wait before it.
    pub after: u64,
    /// Milliseconds until its deadline.
    pub within: u64,
    /// Its future is dropped if it is not done after so many polls.
    pub dropped_after: Option<u32>,
    /// Whether it writes under the fencing token of the client's lease, if it has one.
    pub is_fenced: bool,
}

#[derive(Clone, Debug)]
pub enum Op {
    Get(Row),
    GetMany(Vec<Row>),
    List(Row, Listing),
    Create(Row, u64),
    Update(Row, Change),
    /// At the version that the client knows, or else at the one that it reads first.
    UpdateAt(Row, Change),
    DeleteAt(Row),
    Delete(Row),
    Edit(Row, Edit),
    /// The edit, or the change if the item refuses it, as the routes of `http` do.
    EditOrUpdate(Row, Edit, Change),
    /// So many processes that each edit once, at a version that their caller names.
    /// Creates or changes the item.
    Upsert(Row, Change),
    OneShots(Row, u32),
    Transact(Transaction),
    /// The transaction under an idempotency key.
    Once(Transaction),
    Lease(LeaseOp),
    Newest(NewestOp),
}

impl Op {
    /// The edits in it.
    pub fn edits(&self) -> Vec<&Edit> {
        match self {
            Op::Edit(_, edit) | Op::EditOrUpdate(_, edit, _) => vec![edit],
            Op::Transact(of) | Op::Once(of) => of.rows.iter().filter_map(|(.., step)| step.edit()).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether it edits this row and says that the conditions of the edit suffice.
    pub fn is_blind(&self, row: Row) -> bool {
        let (Op::Transact(of) | Op::Once(of)) = self else { return false };
        of.rows.iter().any(|(of, _, _, step)| *of == row && matches!(step, Step::Blind(_)))
    }

    /// The rows that it names.
    pub fn rows(&self) -> Vec<Row> {
        match self {
            Op::Get(row)
            | Op::List(row, _)
            | Op::Create(row, _)
            | Op::Update(row, _)
            | Op::Upsert(row, _)
            | Op::UpdateAt(row, _)
            | Op::DeleteAt(row)
            | Op::Delete(row)
            | Op::Edit(row, _)
            | Op::EditOrUpdate(row, ..)
            | Op::OneShots(row, _)
            | Op::Lease(LeaseOp::UnderLease(row)) => vec![*row],
            Op::GetMany(rows) => rows.clone(),
            Op::Transact(of) | Op::Once(of) => of.rows.iter().map(|(row, ..)| *row).collect(),
            Op::Lease(_) | Op::Newest(_) => Vec::new(),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Listing {
    pub by_index: bool,
    pub descending: bool,
    pub limit: u16,
    pub bound: u8,
    pub as_stream: bool,
    pub how: How,
    pub filter: Option<Ask>,
}

/// What a listing asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum How {
    /// The items of a partition.
    Query,
    /// All items of the table, in so many parts.
    Scan(u32),
    /// How many there are in a partition.
    Count,
    /// Some attributes of the items of a partition.
    Project,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Answer {
    Change,
    Keep,
    Refuse,
}

/// The next value of an item: another one with this seed, or the same with another number.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    pub draw: Option<u64>,
    pub answer: Answer,
}

#[derive(Clone, Copy, Debug)]
pub enum LeaseOp {
    Acquire,
    AcquireWithin,
    AcquireOnce,
    Renew,
    RenewAt,
    Release,
    ReleaseAt,
    Look,
    /// Updates this row under the token of the lease, which is held meanwhile.
    UnderLease(Row),
}

#[derive(Clone, Debug)]
pub enum NewestOp {
    Register(u64, &'static str),
    Delete(u64, Option<&'static str>),
    Get,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Read {
    Fresh,
    Later,
    Remembered,
}

/// What a decision does with a row.
#[derive(Clone, Debug)]
pub enum Step {
    Nothing,
    Check,
    /// Creates it if it is not there, and otherwise replaces its value.
    Put(Change),
    Delete,
    Edit(Edit),
    /// An edit whose own conditions suffice.
    Blind(Edit),
}

impl Step {
    fn edit(&self) -> Option<&Edit> {
        if let Step::Edit(edit) | Step::Blind(edit) = self { Some(edit) } else { None }
    }
}

#[derive(Clone, Debug)]
pub struct Transaction {
    pub rows: Vec<(Row, Read, bool, Step)>,
    pub check_rest: bool,
    pub requires_lease: bool,
    pub answer: Answer,
}

/// Kinds whose values meet rarer conditions. Those that are named twice are drawn twice as often.
const RARE: &str =
    "Large Session Builds Sets Binaries Floats Lists Large Session MayEnd SortedText SortedNumber Regional";

/// Draws programs.
struct Plan {
    rng: fastrand::Rng,
    rows: Vec<Row>,
    /// The longest wait before a task, in milliseconds.
    waits: u64,
    /// Whether its clients are busy with leases, or with instances of which the newest wins.
    has_leases: bool,
    has_newest: bool,
    /// Whether rare conditions are to be met: it has few values and many edits.
    is_rare: bool,
    /// The first of the seeds of values that its clients have in common.
    common: u64,
}

impl Program {
    pub fn of(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed ^ 0x9206_2A45);
        // One program in three has one kind alone, whose values meet the rarer conditions.
        let is_rare = rng.u32(..3) == 0;
        // In one program of four, and more often with rare values, most faults are second copies that come soon.
        let copies = Rates { held: 40, second_copy: 400, copied_soon: 800, denied: 80, ..Rates::default() };
        let rates = match rng.u32(..4) {
            0 => Rates { answer_lost: 80, throttled: 60, ..copies },
            1 if is_rare => copies,
            1 => Rates::default(),
            _ => rates(&mut rng, 1..=8, Rates { frozen: 10, denied: 10, ..STORM }),
        };
        let kinds = if is_rare {
            let name = rng.choice(RARE.split(' ').collect::<Vec<_>>()).expect("one");
            vec![KINDS.iter().position(|kind| kind.table().strip_prefix("Play") == Some(name)).expect("a kind")]
        } else {
            (0..rng.usize(1..=3)).map(|_| rng.usize(0..KINDS.len())).collect()
        };
        let mut rows: Vec<_> =
            kinds.into_iter().flat_map(|kind| (0..rng.u8(1..=2)).map(move |key| Row { kind, key })).collect();
        rows.sort();
        rows.dedup();
        let (has_leases, has_newest) = (rng.u32(..6) == 0, rng.u32(..12) == 0);
        if has_leases {
            // So that holders meet at one item.
            rows.truncate(1);
        }
        let most = if is_rare || has_leases { 14 } else { 7 };
        let (clients, tasks) = (rng.usize(1..=4), rng.usize(2..=most));
        let ttl = rng.choice([20, 500, 100_000, 600_000]).expect("one");
        let (waits, common) = (if ttl <= 500 { 2_000 } else { 4_000_000 }, rng.u64(..));
        let mut plan = Plan { rng, rows, waits, has_leases, has_newest, is_rare, common };
        let clients = (0..clients).map(|_| plan.client(tasks)).collect();
        Program { seed, rates, ttl, clients }
    }
}

impl Plan {
    fn chance(&mut self, one_in: u32) -> bool {
        self.rng.u32(..one_in) == 0
    }

    /// The seed of a value. Few seeds make equal values, which conditions then meet.
    fn seed(&mut self) -> u64 {
        if self.chance(2) || self.is_rare { self.common.wrapping_add(self.rng.u64(..3)) } else { self.rng.u64(..) }
    }

    fn client(&mut self, tasks: usize) -> Client {
        let (remembers, few_attempts, is_older) = (self.chance(2), self.chance(3), self.chance(3));
        // The first task of many creates a row, so that there is something to change.
        let mut first = Some(Op::Create(self.row(), self.seed()));
        let tasks = (0..tasks).map(|_| {
            let op = first.take().filter(|_| !self.chance(4)).unwrap_or_else(|| self.op());
            Task {
                op,
                after: if self.chance(6) { self.rng.u64(..self.waits) } else { self.rng.u64(..60) },
                within: if self.chance(4) { 60_000 } else { 200 + self.rng.u64(..4_000) },
                dropped_after: if self.chance(10) { Some(self.rng.u32(1..12)) } else { None },
                is_fenced: self.chance(if self.has_leases { 2 } else { 8 }),
            }
        });
        Client { remembers, few_attempts, is_older, tasks: tasks.collect() }
    }

    fn row(&mut self) -> Row {
        self.rng.choice(self.rows.iter().copied()).expect("a row")
    }

    fn op(&mut self) -> Op {
        let row = self.row();
        if KINDS[row.kind].key().1.len() == 2 && self.chance(2) {
            return Op::List(row, self.listing(row));
        }
        // A value that ends may make room for another one.
        if KINDS[row.kind].expires_at().is_some() && self.chance(4) {
            return Op::Create(row, self.seed());
        }
        if self.is_rare && self.chance(3) {
            return Op::Edit(row, self.edit(row));
        }
        if self.has_leases && self.chance(2) {
            return Op::Lease(self.lease());
        }
        // Edits with a window are where a late copy of an older holder may fit.
        if self.has_leases && self.chance(2) {
            return Op::Edit(row, Edit::one_more(row, self.chance(2)));
        }
        if self.has_newest && self.chance(2) {
            return Op::Newest(self.newest());
        }
        match self.rng.u32(..32) {
            0 | 1 => Op::Get(row),
            2 => Op::GetMany(self.rows.iter().copied().filter(|of| of.kind == row.kind).chain([row]).collect()),
            3 => Op::List(row, self.listing(row)),
            4..=6 => Op::Create(row, self.seed()),
            10 => Op::UpdateAt(row, self.change()),
            11 => Op::DeleteAt(row),
            12 => Op::Delete(row),
            13..=16 => Op::Edit(row, self.edit(row)),
            7 => Op::Upsert(row, self.change()),
            8 | 9 | 17 => Op::EditOrUpdate(row, self.edit(row), self.change()),
            18 if self.chance(4) => Op::OneShots(row, self.rng.u32(2..90)),
            18..=24 => Op::Transact(self.transaction()),
            25 | 26 => Op::Once(self.transaction()),
            27..=29 => Op::Lease(self.lease()),
            30 => Op::Newest(self.newest()),
            _ => Op::Update(row, self.change()),
        }
    }

    fn listing(&mut self, row: Row) -> Listing {
        let (by_index, descending, as_stream) = (self.chance(4), self.chance(2), self.chance(2));
        let (limit, bound) = (self.rng.u16(..3), self.rng.u8(..7));
        let how =
            [How::Query, How::Count, How::Project, How::Scan(1), How::Scan(3)][self.rng.usize(..8).saturating_sub(3)];
        let sample: Vec<_> = KINDS[row.kind].sample(&mut Draw::new(self.seed())).into_iter().collect();
        let (name, value) = self.rng.choice(sample).expect("an attribute");
        let is_ordered = ["N", "S", "B"].iter().any(|kind| value.get(*kind).is_some());
        // A query does not filter by its keys.
        let keys = [KINDS[row.kind].number(), KINDS[row.kind].by()];
        let is_filtered = self.chance(3) && !(by_index && keys.contains(&name));
        let filter = is_filtered.then(|| ask(&mut self.rng, &vec![name], &value, is_ordered, 1));
        Listing { by_index, descending, limit, bound, as_stream, how, filter }
    }

    fn change(&mut self) -> Change {
        let draw = if self.chance(2) { Some(self.seed()) } else { None };
        let answer = [Answer::Change, Answer::Keep, Answer::Refuse][self.rng.usize(..12).saturating_sub(9)];
        Change { draw, answer }
    }

    fn lease(&mut self) -> LeaseOp {
        match self.rng.u32(..16) {
            0..=3 => LeaseOp::Acquire,
            4 => LeaseOp::AcquireWithin,
            5 => LeaseOp::AcquireOnce,
            6 | 7 => LeaseOp::Renew,
            8 => LeaseOp::RenewAt,
            9..=11 => LeaseOp::Release,
            12 => LeaseOp::ReleaseAt,
            13 => LeaseOp::Look,
            _ => LeaseOp::UnderLease(self.row()),
        }
    }

    fn newest(&mut self) -> NewestOp {
        let (term, node) = (self.rng.u64(..3), self.rng.choice(["a", "b"]).expect("one"));
        match self.rng.u32(..3) {
            0 => NewestOp::Delete(term, if self.chance(2) { Some(node) } else { None }),
            1 => NewestOp::Register(term, node),
            _ => NewestOp::Get,
        }
    }

    fn transaction(&mut self) -> Transaction {
        let mut rows = self.rows.clone();
        self.rng.shuffle(&mut rows);
        rows.truncate(self.rng.usize(1..=3));
        let rows = rows.into_iter().map(|row| {
            let read = self.rng.choice([Read::Fresh, Read::Later, Read::Remembered]).expect("one");
            let step = match self.rng.u32(..10) {
                0 | 1 => Step::Nothing,
                2 => Step::Check,
                3..=5 => Step::Put(self.change()),
                6 => Step::Delete,
                7 => Step::Blind(self.edit(row)),
                _ => Step::Edit(self.edit(row)),
            };
            (row, read, self.chance(2), step)
        });
        let rows = rows.collect();
        let answer = if self.chance(10) { Answer::Refuse } else { Answer::Change };
        Transaction {
            rows,
            check_rest: self.chance(4),
            requires_lease: self.chance(if self.has_leases { 2 } else { 6 }),
            answer,
        }
    }

    /// An edit of the attributes that an item of this kind may have.
    fn edit(&mut self, row: Row) -> Edit {
        let sample = KINDS[row.kind].sample(&mut Draw::new(self.seed()));
        let attributes: Vec<_> = sample.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let number = vec![KINDS[row.kind].number()];
        let mut clauses = Vec::new();
        if !self.chance(3) {
            let by = if self.chance(4) {
                self.rng.choice(["0.5", "-1.25", "1e1"]).expect("one").to_owned()
            } else {
                self.rng.i64(-6..=6).to_string()
            };
            let is_whole = by.parse::<i64>().is_ok();
            let within = match self.rng.u32(..4) {
                0 => Within::Any,
                1 => Within::Before("-3".to_owned(), "9.5".to_owned()),
                _ if is_whole => Within::Result(0, self.rng.i64(5..=14)),
                _ => Within::Any,
            };
            clauses.push(Clause::Add(number.clone(), by, within));
            let banded = ["text", "level"].into_iter().find(|name| sample.contains_key(*name));
            if let Some(name) = banded.filter(|_| is_whole && self.chance(3)) {
                let [low, high] = ["a", "b"].map(|text| json!({"S": text}));
                clauses.push(Clause::Bands(name.to_owned(), number, 5, low, high));
            }
        }
        for _ in 0..self.rng.usize(..4) {
            let (name, value) = self.rng.choice(attributes.iter()).expect("an attribute").clone();
            if name == KINDS[row.kind].by()
                || clauses.iter().any(|clause| clause.writes().is_some_and(|path| path[0] == name))
            {
                continue;
            }
            clauses.push(self.clause(name, value));
        }
        // Stamps and bands alone are no change.
        if !clauses.iter().any(|clause| !matches!(clause, Clause::Stamp(..) | Clause::Bands(..) | Clause::OnlyIf(_))) {
            clauses.push(Clause::Set(vec![KINDS[row.kind].number()], json!({"N": self.rng.i64(0..12).to_string()})));
        }
        // An add need not come first. Its bands come after it.
        if self.chance(3) && clauses.len() > 1 && matches!(clauses[1], Clause::Set(..)) {
            clauses.swap(0, 1);
        }
        if self.chance(4) {
            clauses.push(Clause::Changed);
        }
        Edit { clauses, seen: self.chance(3) }
    }

    fn clause(&mut self, name: String, value: Value) -> Clause {
        let mut path = vec![name.clone()];
        let (mut value, mut is_member) = (value, false);
        // Only these may have any members, and only those may be missing.
        let is_free = ["map", "deep", "json", "PLACE"].contains(&name.as_str());
        let may_go = ["note", "one", "two"].contains(&name.as_str());
        let members = value["M"].as_object().filter(|_| is_free);
        let member = members.and_then(|map| self.rng.choice(map.iter()));
        if let Some((member, inner)) = member.map(|(member, inner)| (member.clone(), inner.clone())) {
            (value, is_member) = (inner, true);
            path.push(member);
        }
        let is_ordered = ["N", "S", "B"].iter().any(|kind| value.get(*kind).is_some());
        let is_set = ["SS", "NS", "BS"].iter().any(|kind| value.get(*kind).is_some());
        // Drawn aside, so that the rest of the program stays as it is.
        let mut aside = self.rng.clone();
        aside.u64(..);
        let (at, one) = (path.clone(), value.clone());
        let usual = match self.rng.u32(..8) {
            5.. if is_set => Clause::Set(path, value),
            2 if is_ordered => {
                Clause::OnlyIf(Ask::Either(Box::new([Ask::None(path.clone()), Ask::AtMost(path, value)])))
            }
            0..=2 => Clause::OnlyIf(Ask::Is(path, value)),
            3 => Clause::OnlyIf(Ask::Some(path)),
            4 | 5 if is_member || may_go => Clause::Remove(path),
            6 if !is_member => Clause::Stamp(name, value),
            7 if self.chance(2) => Clause::OnlyIf(Ask::None(path)),
            _ => Clause::Set(path, value),
        };
        if aside.u32(..3) != 0 {
            return usual;
        }
        match aside.u32(..5) {
            0 if is_ordered => Clause::Raise(at, one),
            1 if is_member || may_go => Clause::Fill(at, one),
            2 if is_member || at == ["list"] => match one["L"].as_array().and_then(|list| list.first()) {
                Some(member) => Clause::Append(at, vec![member.clone(); aside.usize(1..3)]),
                None => usual,
            },
            _ => Clause::OnlyIf(ask(&mut aside, &at, &one, is_ordered, 2)),
        }
    }
}

/// A condition that asks for this value at this path, or for others that have to do with it.
fn ask(rng: &mut fastrand::Rng, path: &Path, value: &Value, is_ordered: bool, depth: u32) -> Ask {
    let inner = |rng: &mut fastrand::Rng| ask(rng, path, value, is_ordered, depth - 1);
    match rng.u32(..if depth == 0 { 7 } else { 10 }) {
        0 if is_ordered => Ask::Less(path.clone(), value.clone()),
        1 if is_ordered => Ask::AtMost(path.clone(), value.clone()),
        2 if is_ordered => Ask::AtLeast(path.clone(), value.clone()),
        3 if is_ordered => Ask::More(path.clone(), value.clone()),
        4 => Ask::Some(path.clone()),
        5 => Ask::None(path.clone()),
        7 => Ask::Not(Box::new(inner(rng))),
        8 => Ask::Both(Box::new([inner(rng), inner(rng)])),
        9 => Ask::Either(Box::new([inner(rng), inner(rng)])),
        _ => Ask::Is(path.clone(), value.clone()),
    }
}

impl Program {
    /// This program without one of its tasks or its faults, for each of them.
    pub fn smaller(&self) -> Vec<Self> {
        let mut smaller = Vec::new();
        for (client, of) in self.clients.iter().enumerate() {
            for task in 0..of.tasks.len() {
                let mut less = self.clone();
                less.clients[client].tasks.remove(task);
                less.clients.retain(|client| !client.tasks.is_empty());
                smaller.push(less);
            }
        }
        if self.rates != Rates::default() {
            smaller.push(Program { rates: Rates::default(), ..self.clone() });
        }
        smaller
    }
}

/// The story of a program.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "program {}, TTL every {} ms", self.seed, self.ttl)?;
        if self.rates != Rates::default() {
            writeln!(f, "  {:?}", self.rates)?;
        }
        for (number, client) in self.clients.iter().enumerate() {
            let Client { remembers, is_older, .. } = client;
            writeln!(f, "  client {number}, remembers: {remembers}, of an older build: {is_older}")?;
            for Task { op, after, within, dropped_after, is_fenced } in &client.tasks {
                write!(f, "    after {after} ms, within {within} ms: {op:?}")?;
                let dropped = dropped_after.map_or_else(String::new, |polls| format!(", dropped at await {polls}"));
                writeln!(f, "{dropped}{}", if *is_fenced { ", fenced" } else { "" })?;
            }
        }
        Ok(())
    }
}
