//! Tells a way through a world, one numbered sentence for each act.

use crate::front::number;
use crate::play::Act;
use crate::state::{Applied, Caller, End, Request, Way, World};
use crate::table::{Does, LeaseRow, Row, Stored, Write};
use fencepost_core::{Base, Trace, WriteId};

/// The way, one line for each act.
#[must_use]
pub fn tell(way: &[(World, Option<Act>)]) -> String {
    let steps = way.iter().zip(way.iter().skip(1)).zip(1_usize..);
    let told = steps.filter_map(|(((before, act), (after, _)), number)| {
        Some(format!("{number}. {}\n", sentence(before, act.as_ref()?, after)))
    });
    told.collect()
}

fn sentence(before: &World, act: &Act, after: &World) -> String {
    let whole = |caller: usize| before.callers[caller].part_of.unwrap_or(caller);
    let name = |caller: usize| char::from(b'A' + u8::try_from(whole(caller)).unwrap_or(25));
    let whose = |flight: usize| {
        let flight = &before.flights[flight];
        format!("{}'s {}", name(flight.caller), request(&flight.request))
    };
    let met = |flight: usize| met(before, after, before.flights[flight].caller);
    let follows = |caller: usize| follows(before, after, caller, name(caller));
    let follows_of = |flight: usize| follows(before.flights[flight].caller);
    let in_time = |is_late: &bool| if *is_late { " Its time is over." } else { "" };
    let call = |caller: usize| format!("{}'s {:?}", name(caller), before.callers[caller].kind);
    match act {
        Act::Look(caller) => format!("{} looks: {}.", call(*caller), rows(after)),
        Act::Begin(caller) => format!("{} begins: {}.{}", call(*caller), rows(before), follows(*caller)),
        Act::Meet(flight, _) if before.flights[*flight].way == Way::Unheard => {
            format!("{} arrives late, and nobody hears the answer: it {}", whose(*flight), met(*flight))
        }
        Act::Meet(flight, is_late) => {
            format!("{} arrives: it {}{}{}", whose(*flight), met(*flight), in_time(is_late), follows_of(*flight))
        }
        Act::MeetUnheard(flight, is_late) => {
            let (whose, met) = (whose(*flight), met(*flight));
            format!("{whose} arrives: it {met} The answer is lost.{}{}", in_time(is_late), follows_of(*flight))
        }
        Act::GiveUp(flight, outcome, is_late) => {
            let (whose, late) = (whose(*flight), in_time(is_late));
            format!("{whose} is late ({outcome:?}), and waited for no longer.{late}{}", follows_of(*flight))
        }
        Act::Turn(flight, outcome, is_late) => {
            let (whose, late) = (whose(*flight), in_time(is_late));
            format!("{whose} is turned away ({outcome:?}).{late}{}", follows_of(*flight))
        }
        Act::Reject(flight) => format!("{} is rejected.{}", whose(*flight), follows_of(*flight)),
        Act::Hedge(caller) => format!("{} has waited so long that it sends the same again.", name(*caller)),
        Act::Copy(flight) => {
            format!("The network delivers a second copy of {}: it {}", whose(*flight), met(*flight))
        }
        Act::Drop(caller) => format!("The future of {} is dropped.", call(*caller)),
        Act::Deliver(flight, twice) => {
            let times = if *twice { "twice" } else { "once" };
            format!("The answer to {} arrives {times}.{}", whose(*flight), follows_of(*flight))
        }
        Act::Other(_) => format!("Somebody else adds one by an update ({}).", rows(after)),
        Act::Settle(caller, is_late) => {
            let late = in_time(is_late);
            format!("{} looks at the orders of the holds in its way.{late}{}", name(*caller), follows(*caller))
        }
        Act::Overwrite(_) => format!("Another program writes the row and drops its memory ({}).", rows(after)),
        Act::Reset(_) => format!("Another program puts the first state of the row back ({}).", rows(after)),
        Act::Remove => format!("Another program removes or replaces a row ({}).", rows(after)),
        Act::Ttl(_) => format!("TTL removes a row ({}).", rows(after)),
        Act::Pass(time) => format!("{} s pass.", time.as_secs_f64()),
    }
}

/// What a request of this caller has met.
fn met(before: &World, after: &World, caller: usize) -> String {
    let applied = after.callers[caller].applied.len();
    let twice = applied > 1 && applied > before.callers[caller].applied.len() && after.callers[caller].kind.is_change();
    let twice = if twice { " It is applied a second time!" } else { "" };
    if before.rows == after.rows { "is refused.".to_owned() } else { format!("is applied ({}).{twice}", rows(after)) }
}

/// What the caller is told or sends.
fn follows(before: &World, after: &World, caller: usize, name: char) -> String {
    let Caller { end, .. } = &after.callers[caller];
    if let (Some(end), None) = (end, &before.callers[caller].end) {
        return format!(" {name} is told: {}.", told(end));
    }
    let sends = |world: &World| {
        let awaited = world.flights.iter().filter(|flight| flight.caller == caller && flight.way == Way::Awaited);
        awaited.max_by_key(|flight| flight.send).map(|flight| (flight.send, request(&flight.request)))
    };
    match sends(after) {
        Some((send, request)) if sends(before).map(|(send, _)| send) != Some(send) => {
            format!(" {name} sends its {request}.")
        }
        _ => String::new(),
    }
}

fn told(end: &End) -> String {
    match end {
        End::Applied(Applied { at, .. }) => {
            format!("applied{}", at.map(|at| format!(" (version {})", at.version)).unwrap_or_default())
        }
        End::NotApplied => "not applied".to_owned(),
        End::Replayed => "the order is there".to_owned(),
        End::SoldOut => "sold out".to_owned(),
        End::Unknown => "unknown".to_owned(),
        End::Instance(said) => format!("{said:?}").to_lowercase(),
    }
}

fn request(request: &Request) -> String {
    match request {
        Request::Read(_) => "read".to_owned(),
        Request::Ticket(_) => "request for a ticket".to_owned(),
        Request::Burn(burn) => format!("burn: {}", write(burn)),
        Request::Attempt { writes, .. } => match &**writes {
            [alone] => write(alone),
            steps => {
                let steps = steps.iter().map(|step| format!("{}: {}", ["X", "Y"][step.row], write(step)));
                format!("transaction ({})", steps.collect::<Vec<_>>().join("; "))
            }
        },
    }
}

fn write(write: &Write) -> String {
    let what = match &write.does {
        Does::Set(stock) => format!("write of stock {stock}"),
        Does::Add { by, .. } => format!("add of {by}"),
        Does::Bury { .. } => "tombstone".to_owned(),
        Does::Remove => "delete".to_owned(),
        Does::Burn => "burn".to_owned(),
        Does::Check => "check".to_owned(),
        Does::Take(hold, _) => format!("take of {} for attempt {}", hold.quantity, number(hold.attempt)),
        Does::GiveBack(hold) => format!("give-back of {} for attempt {}", hold.quantity, number(hold.attempt)),
        Does::Place(attempt) => format!("order for attempt {}", number(*attempt)),
        other => format!("{other:?}"),
    };
    let id = write.id.map(|id| format!(" (id {})", number(id))).unwrap_or_default();
    match write.on {
        Some(Base::NoRow(_)) => format!("{what}{id} on no row"),
        Some(Base::Row { version, window: 1, .. }) => format!("{what}{id} on version {version}"),
        Some(Base::Row { version, window, .. }) => {
            format!("{what}{id} on version {version} to {}", version.get() + window - 1)
        }
        None => format!("{what}{id}"),
    }
}

fn rows(world: &World) -> String {
    let rows: Vec<_> = world.rows.iter().flatten().map(row).collect();
    if rows.is_empty() { "no row".to_owned() } else { rows.join("; ") }
}

fn row(stored: &Stored) -> String {
    match stored {
        Stored::Item(Row { at, memory, stock, purge_at, fence, holds, placed_by, .. }) => {
            let what = match (purge_at, placed_by) {
                (Some(_), _) => "a tombstone".to_owned(),
                (None, Some(attempt)) => format!("{stock} ordered by attempt {}", number(*attempt)),
                (None, None) => format!("stock {stock}"),
            };
            let held = holds.values().map(|hold| format!(", {} held by {}", hold.quantity, number(hold.attempt)));
            let what = held.fold(what, |what, held| what + &held);
            let trace = |(id, trace): (&WriteId, &Trace)| match trace {
                Trace::Applied(version) => format!("{}@{version}", number(*id)),
                Trace::Burned(version) => format!("{} burned@{version}", number(*id)),
            };
            let memory = memory.iter().flatten().map(trace).collect::<Vec<_>>().join(", ");
            let token = fence.map(|fence| format!(", token {fence}")).unwrap_or_default();
            format!("version {}, {what}, remembers [{memory}]{token}", at.version)
        }
        Stored::Lease(LeaseRow { holder, token, renewals, expires_at, .. }) => {
            let holder = holder.map_or("nobody".to_owned(), |holder| format!("process {}", holder + 1));
            format!("lease of {holder}, token {token}, {renewals} renewals, ends {expires_at}")
        }
        Stored::Instance(instance) => {
            let (order, name) = instance.order_key;
            let name = name.map(String::from).unwrap_or_default();
            let live = instance.live.map_or("a tombstone".to_owned(), |value| format!("value {value}"));
            format!("instance {order}{name}, {live}")
        }
    }
}
