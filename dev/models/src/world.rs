//! [`World`]: the calls of one model, their requests and the network.
//!
//! A request meets the table at one moment. Its answer is heard at that moment or never. A late answer adds nothing:
//! the caller's next request may be late instead. So a lost answer and a late request, each at any moment, are all that
//! a network can do here, beside second copies and throttling.

use crate::protocol::{Answer, Next, Protocol, Told};
use stateright::{Model, Path, Property};

/// All calls of one model with their requests and their shared state.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct World<P: Protocol> {
    /// The rows with the history to compare them with.
    pub shared: P::Shared,
    pub callers: Vec<Caller<P>>,
    /// The time, in the unit of the model.
    pub now: u32,
    /// The remaining faults of the network.
    pub left: Faults,
}

/// How often each fault may happen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Faults {
    /// Lost answers and requests that their callers have given up.
    pub losses: u8,
    pub copies: u8,
    pub throttles: u8,
}

/// One call with its requests and its real outcome.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Caller<P: Protocol> {
    /// How far the call is.
    pub call: P::Call,
    /// The write without a proved outcome, and whether a send of it is pending.
    pub sending: Option<(P::Write, bool)>,
    /// The requests of this call that may meet the table.
    pub flights: Vec<Flight<P::Write>>,
    pub sends: u8,
    /// When the call began. Its requests live for a while from then on.
    pub began: u32,
    pub told: Option<Told<P::Said>>,
    /// How often the change was really applied.
    pub applied: u8,
    /// How often it had been when the caller was told.
    pub applied_then: u8,
    /// The attempt that was really applied, the last one if there were several.
    pub committed: Option<P::Said>,
    /// Whether the second copy of a refused request was applied after the end of the call, in one of the cases that are
    /// known and left open.
    pub is_excused: bool,
    /// Whether a send was ever pending.
    pub was_pending: bool,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Flight<W> {
    pub write: W,
    pub way: Way,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Way {
    /// It is on its way. Its caller waits for the answer.
    Awaited,
    /// It is on its way. Its caller has given up.
    Unheard,
    /// It met the table. The network may deliver a second copy.
    Met {
        /// Whether its caller heard a refusal, with nothing pending.
        was_refused: bool,
    },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Act<E> {
    GoOn(usize),
    /// A request meets the table. Its answer is heard if its caller waits for it.
    Meet(usize, usize),
    /// A request meets the table. Its answer is lost.
    MeetUnheard(usize, usize),
    GiveUp(usize, usize),
    /// A request is throttled instead of applied. Its caller hears that.
    Throttle(usize, usize),
    SendAgain(usize),
    Copy(usize, usize),
    OutOfTime(usize),
    Happen(E),
}

/// A protocol as a model of `stateright`.
#[derive(Clone, Debug)]
pub struct Checked<P>(pub P);

impl<P: Protocol> Model for Checked<P> {
    type State = World<P>;
    type Action = Act<P::Event>;

    fn init_states(&self) -> Vec<World<P>> {
        let caller = |call| Caller {
            call,
            sending: None,
            flights: Vec::new(),
            sends: self.0.limits().sends,
            began: 0,
            told: None,
            applied: 0,
            applied_then: 0,
            committed: None,
            is_excused: false,
            was_pending: false,
        };
        let worlds = self.0.start().into_iter().map(|(shared, calls)| World {
            shared,
            callers: calls.into_iter().map(caller).collect(),
            now: self.0.limits().begins,
            left: self.0.limits().faults,
        });
        worlds.collect()
    }

    fn actions(&self, world: &World<P>, acts: &mut Vec<Act<P::Event>>) {
        let mut events = Vec::new();
        self.0.events(world, &mut events);
        acts.extend(events.into_iter().map(Act::Happen));
        for (index, caller) in world.callers.iter().enumerate() {
            let awaited = caller.flights.iter().filter(|flight| flight.way == Way::Awaited).count();
            if caller.told.is_none() && caller.sending.is_none() && self.0.may_go_on(world, index) {
                acts.push(Act::GoOn(index));
            }
            if let Some((_, is_pending)) = caller.sending {
                let in_time = world.now <= caller.began + self.0.limits().life;
                let is_due = awaited == 0 || (awaited == 1 && self.0.limits().hedges);
                if caller.sends > 0 && is_due && in_time {
                    acts.push(Act::SendAgain(index));
                }
                // A call that never sent in vain does not run out of time: it waits for the answer.
                if awaited == 0 && (is_pending || caller.sends == 0 || !in_time) {
                    acts.push(Act::OutOfTime(index));
                }
            }
            // Of two ways of one length, the checker tells the one with the last steps here: late requests are easier
            // to follow than second copies.
            for (flight, Flight { way, .. }) in caller.flights.iter().enumerate().rev() {
                match way {
                    Way::Awaited => {
                        acts.push(Act::Meet(index, flight));
                        if world.left.losses > 0 {
                            acts.extend([Act::MeetUnheard(index, flight), Act::GiveUp(index, flight)]);
                        }
                        if world.left.throttles > 0 {
                            acts.push(Act::Throttle(index, flight));
                        }
                    }
                    Way::Unheard => acts.push(Act::Meet(index, flight)),
                    Way::Met { .. } if world.left.copies > 0 => acts.push(Act::Copy(index, flight)),
                    Way::Met { .. } => {}
                }
            }
        }
    }

    fn next_state(&self, before: &World<P>, act: Act<P::Event>) -> Option<World<P>> {
        let mut world = before.clone();
        match act {
            Act::GoOn(index) => {
                let caller = &mut world.callers[index];
                let next = self.0.go_on(&mut world.shared, &mut caller.call, world.now)?;
                self.follow(&mut world, index, next);
            }
            Act::Meet(index, flight) => self.meet(&mut world, index, flight, true),
            Act::MeetUnheard(index, flight) => {
                world.left.losses -= 1;
                world.callers[index].gives_up(flight);
                self.meet(&mut world, index, flight, false);
            }
            Act::GiveUp(index, flight) => {
                world.left.losses -= 1;
                world.callers[index].gives_up(flight);
            }
            Act::Throttle(index, flight) => {
                world.left.throttles -= 1;
                let caller = &mut world.callers[index];
                caller.flights.remove(flight);
                if self.0.throttling_clears_pending() {
                    caller.sending = caller.sending.take().map(|(write, _)| (write, false));
                }
            }
            Act::SendAgain(index) => {
                let caller = &mut world.callers[index];
                caller.sends -= 1;
                let (write, is_pending) = caller.sending.take()?;
                let write = self.0.again(&mut caller.call, write);
                caller.flights.push(Flight { write: write.clone(), way: Way::Awaited });
                caller.sending = Some((write, is_pending));
            }
            Act::Copy(index, flight) => {
                world.left.copies -= 1;
                self.meet(&mut world, index, flight, false);
            }
            Act::OutOfTime(index) => {
                let caller = &mut world.callers[index];
                let (write, is_pending) = caller.sending.take()?;
                let told = self.0.out_of_time(&caller.call, &write, is_pending);
                caller.is_told(told);
            }
            Act::Happen(event) => self.0.happen(&mut world.shared, &mut world.now, &event),
        }
        world.tidy(self.0.limits().life);
        (world != *before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        P::properties()
    }
}

impl<P: Protocol> Checked<P> {
    /// A request meets the table. `is_heard` says that its caller hears the answer, if it waits for one.
    fn meet(&self, world: &mut World<P>, index: usize, flight: usize, is_heard: bool) {
        let Flight { write, way } = world.callers[index].flights[flight].clone();
        let (answer, applied) = self.0.meets(&mut world.shared, &write, world.now);
        let caller = &mut world.callers[index];
        if applied.is_some() {
            caller.applied += 1;
            caller.committed = applied;
            let is_late = way == Way::Met { was_refused: true } && caller.told.is_some();
            caller.is_excused |= is_late && self.0.is_left_open(&caller.call, &write);
        }
        let was_refused = matches!(answer, Answer::Refused(_));
        let others = caller.flights.iter().enumerate();
        let others = others.filter(|(other, flight_of)| *other != flight && flight_of.way == Way::Awaited).count();
        let is_pending = others > 0 || caller.sending.as_ref().is_some_and(|(_, is_pending)| *is_pending);
        let is_heard = is_heard && way == Way::Awaited;
        match way {
            // The network delivers one copy of each answered send. Which one that is makes no difference.
            Way::Met { .. } => {}
            _ => caller.flights[flight].way = Way::Met { was_refused: was_refused && is_heard && !is_pending },
        }
        if !is_heard {
            return;
        }
        for flight in caller.flights.iter_mut().filter(|flight| flight.way == Way::Awaited) {
            flight.way = Way::Unheard;
        }
        caller.was_pending |= is_pending && was_refused;
        caller.sending = None;
        let next = self.0.answered(&mut world.shared, &mut caller.call, &write, world.now, answer, is_pending);
        self.follow(world, index, next);
    }

    fn follow(&self, world: &mut World<P>, index: usize, next: Next<P>) {
        let caller = &mut world.callers[index];
        match next {
            Next::Pause => {}
            Next::Told(told) => caller.is_told(told),
            Next::Send(write) if caller.sends == 0 => {
                let told = self.0.out_of_time(&caller.call, &write, false);
                caller.is_told(told);
            }
            Next::Send(write) => {
                if caller.began == 0 {
                    caller.began = world.now;
                }
                caller.sends -= 1;
                caller.flights.push(Flight { write: write.clone(), way: Way::Awaited });
                caller.sending = Some((write, false));
            }
        }
    }
}

impl<P: Protocol> Caller<P> {
    /// Whether the caller was told that the change was applied.
    pub fn is_told_applied(&self) -> bool {
        matches!(self.told, Some(Told::Applied(_)))
    }

    fn is_told(&mut self, told: Told<P::Said>) {
        (self.told, self.applied_then) = (Some(told), self.applied);
    }

    fn gives_up(&mut self, flight: usize) {
        self.flights[flight].way = Way::Unheard;
        self.was_pending = true;
        self.sending = self.sending.take().map(|(write, _)| (write, true));
    }
}

impl<P: Protocol> World<P> {
    /// Drops dead requests and sorts the others, so that equal worlds are equal.
    fn tidy(&mut self, life: u32) {
        for caller in &mut self.callers {
            let is_alive = self.now <= caller.began + life;
            if !is_alive && caller.flights.iter().any(|flight| flight.way == Way::Awaited) {
                caller.was_pending = true;
                caller.sending = caller.sending.take().map(|(write, _)| (write, true));
            }
            caller.flights.retain(|flight| match flight.way {
                Way::Met { .. } => is_alive && self.left.copies > 0,
                _ => is_alive,
            });
            caller.flights.sort_unstable();
            if caller.flights.len() > 1 {
                let copies = |one: &Flight<P::Write>, other: &Flight<P::Write>| {
                    one == other && matches!(one.way, Way::Met { .. })
                };
                caller.flights.dedup_by(|one, other| copies(one, other));
            }
        }
    }
}

/// A way through a model.
pub type PathTo<P> = Path<World<P>, Act<<P as Protocol>::Event>>;

/// Tells a way through a model, one numbered line for each step.
pub fn tell<P: Protocol>(model: &Checked<P>, path: PathTo<P>) -> String {
    let path = path.into_vec();
    let steps = path.iter().zip(path.iter().skip(1)).zip(1..);
    let line = |(((before, act), (after, _)), number): ((&(_, Option<_>), &(_, _)), u32)| {
        let act = act.as_ref().expect("a step leads to the next state");
        format!("{number}. {}\n", model.sentence(before, act, after))
    };
    steps.map(line).collect()
}

impl<P: Protocol> Checked<P> {
    fn told(&self, told: &Told<P::Said>) -> String {
        match told {
            Told::Applied(said) => format!("applied{}", self.0.said(said)),
            Told::NotApplied => "not applied".to_owned(),
            Told::Unknown => "unknown".to_owned(),
        }
    }

    fn sentence(&self, before: &World<P>, act: &Act<P::Event>, after: &World<P>) -> String {
        let name = |index: usize| char::from(b'A' + u8::try_from(index).unwrap_or(25));
        let call = |index: usize| format!("{}'s {}", name(index), self.0.call(&before.callers[index].call));
        let write = |index: usize, flight: usize| {
            let Flight { write, .. } = &before.callers[index].flights[flight];
            format!("{}'s {}", name(index), self.0.write(write))
        };
        let met = |index: usize| {
            let (then, now) = (&before.callers[index], &after.callers[index]);
            let rows = if before.shared == after.shared {
                "is refused".to_owned()
            } else {
                self.0.change(&before.shared, &after.shared)
            };
            let twice =
                if now.applied > 1 && now.applied > then.applied { " It is applied a second time!" } else { "" };
            format!("{rows}.{twice}")
        };
        let follows = |index: usize| {
            let now = &after.callers[index];
            match (&now.told, &now.sending) {
                (Some(told), _) => format!(" {} is told: {}.", name(index), self.told(told)),
                (None, Some((write, _)))
                    if before.callers[index].sending.as_ref().map(|(write, _)| write) != Some(write) =>
                {
                    format!(" {} sends its {}.", name(index), self.0.write(write))
                }
                _ => String::new(),
            }
        };
        match act {
            Act::GoOn(index) => match (&after.callers[*index].told, &after.callers[*index].sending) {
                (None, None) => format!("{} looks: {}.", call(*index), self.0.rows(&after.shared)),
                _ if before.callers[*index].began > 0 => format!("{} reads.{}", call(*index), follows(*index)),
                _ => format!("{} begins.{}", call(*index), follows(*index)),
            },
            Act::Meet(index, flight) if before.callers[*index].flights[*flight].way == Way::Unheard => {
                format!("{} arrives late, and nobody hears the answer: it {}", write(*index, *flight), met(*index))
            }
            Act::Meet(index, flight) => {
                format!("{} arrives: it {}{}", write(*index, *flight), met(*index), follows(*index))
            }
            Act::MeetUnheard(index, flight) => {
                format!("{} arrives: it {} The answer is lost.", write(*index, *flight), met(*index))
            }
            Act::GiveUp(index, flight) => {
                format!("{} is late. {} waits no longer.", write(*index, *flight), name(*index))
            }
            Act::Throttle(index, flight) => format!("{} is throttled, and so not applied.", write(*index, *flight)),
            Act::SendAgain(index) => match &after.callers[*index].sending {
                Some((write, _)) => format!("{} sends its {} again.", name(*index), self.0.write(write)),
                None => format!("{} sends again.", name(*index)),
            },
            Act::Copy(index, flight) => {
                format!("The network delivers a second copy of {}: it {}", write(*index, *flight), met(*index))
            }
            Act::OutOfTime(index) => format!("{} runs out of time.{}", call(*index), follows(*index)),
            Act::Happen(event) => {
                let rows = if before.shared == after.shared {
                    String::new()
                } else {
                    format!(" ({})", self.0.rows(&after.shared))
                };
                format!("{}{rows}.", self.0.event(event))
            }
        }
    }
}
