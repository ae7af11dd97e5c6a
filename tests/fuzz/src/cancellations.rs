//! `cancellations`: any lists of steps and reasons, and their verdicts.
//!
//! *Landed* needs a row with our id. *Never applied* needs a writing step with a later row, and no other step that
//! landed. Reasons without rows prove nothing. The order of the steps does not matter.

use crate::input::Input;
use crate::rows::Plain;
use crate::running::now;
use fencepost::AttributeValue;
use fencepost::testing::{
    AsKind, Base, Reason, Role, SentWrite, TableRules, Verdict, WriteId, first_row, is_lease_lost, judge,
    judge_cancellation, seen_row,
};
use fencepost::{Attributes, Incarnation, Version};
use std::collections::HashMap;

/// One step of a cancelled transaction.
type Step = (Role, Reason);

const NAMES: &[&str] = &["_version", "_incarnation", "_writes", "_purgeAt", "_fence", "token", "holder", "a"];

pub fn play(input: &[u8]) {
    let mut drawn = Input::new(input);
    let ours = WriteId::from_bytes(drawn.id());
    let mut steps = Vec::new();
    for _ in 0..=drawn.below(8) {
        steps.push((role(&mut drawn, ours), reason(&mut drawn)));
    }
    let verdict = judge_cancellation::<Plain>(&steps, now());
    check(verdict, &steps, ours);
    steps.reverse();
    let reversed = judge_cancellation::<Plain>(&steps, now());
    let kind = |verdict| match verdict {
        // Several steps may show the landed write, each with its own version. Proofs without a rank are equally good.
        Verdict::Landed(_) => 0,
        Verdict::NeverApplied => 1,
        Verdict::Open | Verdict::Corrupt => 2,
        Verdict::Unproved => 3,
    };
    assert_eq!(kind(verdict), kind(reversed), "the order of the steps matters");
    check_lease(&steps);
}

fn check(verdict: Verdict, steps: &[Step], ours: WriteId) {
    let each: Vec<Verdict> = steps.iter().filter_map(alone).collect();
    let landed = each.iter().any(|verdict| matches!(verdict, Verdict::Landed(_)));
    assert_eq!(matches!(verdict, Verdict::Landed(_)), landed, "{each:?}");
    if landed {
        assert!(steps.iter().any(|step| shows(step, ours)), "landed, and no row has our id");
    }
    match verdict {
        Verdict::NeverApplied => assert!(each.contains(&Verdict::NeverApplied), "{each:?}"),
        Verdict::Open => assert!(each.contains(&Verdict::Open), "{each:?}"),
        Verdict::Corrupt => assert!(each.contains(&Verdict::Corrupt), "{each:?}"),
        Verdict::Unproved => assert!(!each.contains(&Verdict::Open), "{each:?}"),
        Verdict::Landed(_) => {}
    }
    // A step without a row proves nothing, so leaving it out changes nothing.
    let telling: Vec<_> = steps.iter().filter(|step| alone(step).is_some()).cloned().collect();
    assert_eq!(judge_cancellation::<Plain>(&telling, now()), verdict);
}

/// The proof of the step alone. `None` if it leaves no id or shows no row.
fn alone(step: &Step) -> Option<Verdict> {
    match step {
        (Role::Writes(sent), Reason::Refused(Some(row))) => Some(judge(sent, seen_row::<Plain>(row).as_ref())),
        _ => None,
    }
}

/// Whether the row of the step has the id anywhere: in its memory, or as its incarnation.
fn shows(step: &Step, id: WriteId) -> bool {
    let (_, Reason::Refused(Some(row))) = step else { return false };
    let in_memory = row.get("_writes").and_then(|writes| writes.as_m()).is_some_and(|m| m.contains_key(&id.name()));
    in_memory || row.get("_incarnation").and_then(|own| own.as_b()).is_some_and(|own| own == id.as_bytes())
}

fn check_lease(steps: &[Step]) {
    let lost = |step: &Step| match step {
        (Role::Requires(mine), Reason::Refused(Some(row))) => {
            let token = row.get("token").and_then(|token| token.as_n()).and_then(|token| token.parse::<u64>().ok());
            token.is_some_and(|token| token > *mine || (token == *mine && !row.contains_key("holder")))
        }
        _ => false,
    };
    assert_eq!(is_lease_lost::<Plain>(steps), steps.iter().any(lost));
}

fn role(input: &mut Input, ours: WriteId) -> Role {
    match input.below(8) {
        0 => Role::Adds,
        1 => Role::Checks(base(input)),
        2 => Role::Requires(input.number()),
        _ => Role::Writes(SentWrite {
            id: ours,
            on: base(input),
            fence: input.flag().then(|| input.number()),
            rules: TableRules {
                remembered: 16,
                rows_may_vanish: input.below(8) == 7,
                versions_may_repeat: input.below(8) == 7,
                values_may_end: input.below(8) == 7,
            },
        }),
    }
}

fn base(input: &mut Input) -> Base {
    let incarnation = match input.below(4) {
        0 => Incarnation::of_content([input.byte(); 16]),
        _ => Incarnation::from_bytes(input.id()),
    };
    let version = Version::new(input.number() & ((1 << 52) - 1)).expect("52 bits");
    match input.below(3) {
        0 => Base::NoRow(Version::ABSENT.next()),
        _ => Base::Row { version, window: 1 + u64::from(input.below(16)), incarnation },
    }
}

fn reason(input: &mut Input) -> Reason {
    match input.below(8) {
        0 => Reason::None,
        1 => Reason::NotNow,
        2 => Reason::Rejected,
        3 => Reason::Refused(None),
        4 => Reason::Refused(Some(input.attributes(NAMES))),
        _ => Reason::Refused(Some(row(input))),
    }
}

/// A row as this crate has written it, but for a few attributes.
fn row(input: &mut Input) -> Attributes {
    let creator = WriteId::from_bytes(input.id());
    let value = Plain { a: String::new(), b: None };
    let mut row = first_row(&value, creator).expect("a row");
    row.insert("_version".to_owned(), AttributeValue::N(input.number().to_string()));
    let id = |input: &mut Input| WriteId::from_bytes(input.id()).name();
    let at = |input: &mut Input| {
        let sign = if input.flag() { "-" } else { "" };
        AttributeValue::N(format!("{sign}{}", input.number() >> 11))
    };
    let writes: HashMap<_, _> = (0..input.below(4)).map(|_| (id(input), at(input))).collect();
    row.insert("_writes".to_owned(), AttributeValue::M(writes));
    if input.flag() {
        row.extend(input.attributes(NAMES));
    }
    row
}
