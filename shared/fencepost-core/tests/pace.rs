//! When the machine sends, waits and gives up, what it counts, and what it tells: one change with scripted answers.

use fencepost_core::{
    Action, Answer, Base, Cause, Change, ClientState, Cost, Fault, Incarnation, Leave, Line, Now, Outcome, Plan,
    Reason, RetryPolicy, Role, Seen, SeenRow, SendId, SentWrite, Step, TableRules, Terms, Told, Trace, Version, What,
    Why, WriteId,
};
use std::time::{Duration, SystemTime};

const RULES: TableRules =
    TableRules { remembered: 16, rows_may_vanish: false, versions_may_repeat: false, values_may_end: false };
const ROW: Incarnation = Incarnation::from_bytes([7; 8]);

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn version(number: u64) -> Version {
    Version::new(number).expect("small")
}

fn row_at(number: u64) -> SeenRow {
    let memory = Some([].into_iter().collect());
    SeenRow { version: version(number), incarnation: ROW, memory, fence: None, ends_at: None }
}

/// One change, with the time and the random numbers that it is given.
struct Play {
    change: Change,
    client: ClientState,
    at: Duration,
    left: Duration,
    random: u64,
}

impl Play {
    fn new(set: impl FnOnce(&mut RetryPolicy)) -> Self {
        let mut policy = RetryPolicy::default();
        set(&mut policy);
        let (at, left) = (Duration::from_secs(100), Duration::from_secs(10));
        let now = Now { at, wall: SystemTime::UNIX_EPOCH + at, left };
        let change = Change::new(Terms { policy, relies_on_token: false }, WriteId::from_random(1), now);
        Play { change, client: ClientState::default(), at, left, random: u64::MAX }
    }

    fn now(&self) -> Now {
        Now { at: self.at, wall: SystemTime::UNIX_EPOCH + self.at, left: self.left }
    }

    fn passes(&mut self, time: Duration) {
        self.at += time;
        self.left = self.left.saturating_sub(time);
    }

    fn poll(&mut self) -> Option<Action> {
        let (now, random) = (self.now(), self.random);
        self.change.poll(now, &mut self.client, &mut || random)
    }

    /// The send that is due, which is handed over at once.
    #[track_caller]
    fn sends(&mut self) -> (Leave, What) {
        let Some(Action::Send(leave, what)) = self.poll() else { panic!("nothing is due") };
        self.change.handed_over(leave.id, self.now());
        (leave, what)
    }

    #[track_caller]
    fn tells(&mut self) -> Told {
        assert_eq!(self.change.wake_at(), Some(Duration::ZERO), "what is told waits for nobody");
        let Some(Action::Tell(told)) = self.poll() else { panic!("nothing is told") };
        told
    }

    fn answer(&mut self, leave: &Leave, answer: Answer) {
        let (now, random) = (self.now(), self.random);
        self.change.answered(leave.id, answer, now, &mut self.client, &mut || random);
    }

    /// Sends a request, loses its answer and pauses. Gives the next send.
    #[track_caller]
    fn loses_an_answer(&mut self) -> Leave {
        let (lost, _) = self.sends();
        self.answer(&lost, Answer::of(Outcome::Unknown, false));
        self.passes(millis(20));
        self.sends().0
    }

    /// Sends an update of the version `at`, which an answer refuses after 10 ms with the row one version later.
    #[track_caller]
    fn loses(&mut self, at: u64) -> Leave {
        self.attempt(at);
        let (leave, _) = self.sends();
        self.passes(millis(10));
        self.answer(&leave, refused(at + 1));
        assert!(matches!(self.tells(), Told::NotApplied { .. }));
        self.change.lost_race();
        leave
    }

    fn attempt(&mut self, at: u64) {
        let role = self.writes(at, 1);
        self.plan(&[(0, role)], |_| {});
    }

    /// The same at a row with this line.
    fn attempt_in_line(&mut self, at: u64, given: u64, served: u64) {
        let role = self.writes(at, 1);
        self.plan(&[(0, role)], |plan| plan.lines_up_at = Some((0, ROW, Line { given, served })));
    }

    /// Loses a race, and takes this ticket, because others wait.
    #[track_caller]
    fn takes_ticket(&mut self, ticket: u64) {
        self.loses(1);
        self.attempt_in_line(2, 5, 4);
        let (leave, what) = self.sends();
        assert_eq!(what, What::Ticket { row: 0, incarnation: ROW });
        self.passes(millis(10));
        let mut answer = read(&[0]);
        answer.ticket = Some(ticket);
        self.answer(&leave, answer);
        assert_eq!(self.tells(), Told::Look(vec![]));
    }

    fn reads(&mut self, rows: &[usize]) {
        self.change.read(rows.to_vec(), self.now());
    }

    /// A write in the window of the version `at`, under the id of the next attempt.
    fn writes(&self, at: u64, window: u64) -> Role {
        let on = Base::Row { version: version(at), window, incarnation: ROW };
        Role::Writes(SentWrite { id: self.change.attempts().id, on, fence: None, rules: RULES })
    }

    fn plan(&mut self, steps: &[(usize, Role)], set: impl FnOnce(&mut Plan)) {
        let step = |&(row, role)| Step { row, role, rules: RULES, is_named_by_client: false };
        let steps = steps.iter().map(step).collect();
        let mut plan = Plan { steps, lines_up_at: None, gives_way: false, is_transaction: false, rereads: false };
        set(&mut plan);
        let (now, random) = (self.now(), self.random);
        self.change.attempt(plan, now, &mut || random);
    }

    /// A change with an open attempt on row 0: another transaction stood in its way, so a late copy may be applied.
    #[track_caller]
    fn with_an_open_attempt() -> (Self, WriteId) {
        let mut play = Play::new(|_| {});
        play.attempt(1);
        let (id, (leave, _)) = (play.change.attempts().id, play.sends());
        let mut not_now = Answer::of(Outcome::Refused, true);
        not_now.reasons = vec![Reason::NotNow];
        play.random = 2;
        play.answer(&leave, not_now);
        assert_eq!(play.tells(), Told::NotApplied { unseen: Vec::new(), burned: None });
        assert!(play.change.attempts().is_open(id));
        (play, id)
    }

    /// Ends the burn that is due.
    #[track_caller]
    fn ends_burn(&mut self, ending: Ending) -> SendId {
        let (leave, what) = self.sends();
        let What::Burn { row: 0, sent, .. } = what else { panic!("{what:?}") };
        let (now, random) = (self.now(), self.random);
        match ending {
            Ending::Impossible => self.change.cannot_be_made(leave.id, now, &mut || random),
            Ending::Burned => self.answer(&leave, Answer::of(Outcome::Applied, true)),
            Ending::Shows(version, true) => self.answer(&leave, refused_by_memory(version, sent.id)),
            Ending::Shows(version, false) => self.answer(&leave, refused(version)),
            Ending::Rejected => self.answer(&leave, Answer::of(Outcome::Rejected, true)),
            Ending::OutOfTime => {
                self.left = Duration::ZERO;
                self.answer(&leave, Answer::of(Outcome::Unknown, false));
            }
        }
        leave.id
    }
}

/// How a burn ends.
#[derive(Clone, Copy, Debug)]
enum Ending {
    Impossible,
    Burned,
    /// The row refuses it at this version, and may remember that the write was applied.
    Shows(u64, bool),
    Rejected,
    OutOfTime,
}

/// So late that the row would have forgotten a write at version 1.
const LATE: u64 = 40;

fn refused(version: u64) -> Answer {
    let mut answer = Answer::of(Outcome::Refused, true);
    answer.reasons = vec![Reason::Refused(Seen::Row(Some(row_at(version))))];
    answer
}

/// A refusal by the row at this version, with this write in its memory.
fn refused_by_memory(version: u64, id: WriteId) -> Answer {
    let mut answer = refused(version);
    answer.reasons = vec![Reason::Refused(Seen::Row(Some(remembers(version, id))))];
    answer
}

/// The row at this version. Its memory has this write, applied to the first version.
fn remembers(at: u64, id: WriteId) -> SeenRow {
    SeenRow { memory: Some([(id, Trace::Applied(version(1)))].into_iter().collect()), ..row_at(at) }
}

/// A rejection for these reasons, which other data may lift.
fn rejected(depends_on_data: bool, reasons: &[Reason]) -> Answer {
    let mut answer = Answer::of(Outcome::Rejected, true);
    (answer.depends_on_data, answer.reasons) = (depends_on_data, reasons.to_vec());
    answer
}

fn read(rows: &[usize]) -> Answer {
    let mut answer = Answer::of(Outcome::Applied, true);
    answer.rows = rows.iter().map(|row| (*row, Some(row_at(1)))).collect();
    answer
}

#[test]
fn a_change_counts_itself_its_attempts_its_conflicts_and_the_lost_answers_of_its_writes() {
    let mut play = Play::new(|_| {});
    play.reads(&[0]);
    let leave = play.loses_an_answer();
    play.answer(&leave, read(&[0]));
    assert_eq!((play.tells(), play.change.take_cost()), (Told::Read, Cost::default()), "a read costs no write");
    play.loses(1);
    assert_eq!(play.change.take_cost(), Cost { changes: 1, attempts: 1, conflicts: 1, lost_answers: 0 });
    play.random = 0; // At once.
    play.attempt(2);
    let (leave, _) = play.sends();
    assert_eq!((leave.why, play.change.rounds()), (Why::Conflict, 2));
    play.answer(&leave, Answer::of(Outcome::Unknown, false));
    let (again, _) = play.sends();
    assert_eq!(again.why, Why::After(Outcome::Unknown));
    play.answer(&again, Answer::of(Outcome::Broken, false));
    assert_eq!(play.change.take_cost(), Cost { changes: 0, attempts: 1, conflicts: 0, lost_answers: 2 });
    play.change.was_late();
    assert_eq!(play.change.take_cost(), Cost { conflicts: 1, ..Cost::default() });
    assert_eq!(play.change.take_cost(), Cost::default());
}

#[test]
fn a_wait_ends_in_its_time_takes_half_of_what_is_left_at_most_and_leaves_time_for_a_send() {
    for (left, waits) in [(10_000, true), (250, true), (249, false)] {
        let mut play = Play::new(|_| {});
        play.left = millis(left);
        let (now, random) = (play.now(), u64::MAX);
        play.change.wait(millis(100), now, &mut || random);
        if !waits {
            assert_eq!(play.tells(), Told::Failed(Fault::Contention { attempts: 0 }));
            continue;
        }
        let due = play.change.wake_at().expect("it waits");
        assert!(due > play.at + millis(99) && due <= play.at + millis(100), "{due:?}");
        assert!(play.poll().is_none(), "{left}");
        play.passes(millis(99));
        assert!(play.poll().is_none(), "{left}: it is not over");
        play.passes(millis(1));
        assert_eq!(play.poll(), Some(Action::Tell(Told::Waited)));
    }
    let mut play = Play::new(|_| {});
    play.left = millis(400);
    let (now, random) = (play.now(), u64::MAX);
    play.change.wait(Duration::from_secs(9), now, &mut || random);
    assert_eq!(play.change.wake_at(), Some(play.at + millis(200)), "half of the time left");
    play.at += millis(200);
    assert_eq!(play.poll(), Some(Action::Tell(Told::Waited)), "at that moment");
}

#[test]
fn an_attempt_after_a_conflict_looks_first_and_the_last_one_is_followed_by_contention() {
    let mut play = Play::new(|policy| policy.max_attempts = 2);
    assert_eq!(play.loses(1).why, Why::First);
    assert_eq!(play.change.round_trip(), millis(10));
    play.attempt(2);
    assert_eq!(play.tells(), Told::Look(vec![0]));
    play.reads(&[0]);
    assert!(play.poll().is_none(), "it pauses");
    let pause = play.change.wake_at().expect("a pause").saturating_sub(play.at);
    assert!(pause > millis(29) && pause <= millis(30), "3 round trips: {pause:?}");
    play.passes(millis(30));
    let (look, what) = play.sends();
    assert_eq!(what, What::Read(vec![0]));
    play.answer(&look, read(&[0]));
    assert_eq!(play.tells(), Told::Read);
    play.attempt(2);
    let (leave, _) = play.sends();
    assert_eq!(leave.why, Why::Conflict);
    play.answer(&leave, refused(3));
    assert!(matches!(play.tells(), Told::NotApplied { .. }));
    play.attempt(3);
    assert_eq!(play.tells(), Told::Failed(Fault::Contention { attempts: 2 }));
    assert_eq!(play.change.contention(), Fault::Contention { attempts: 2 });
}

#[test]
fn attempts_that_meet_nobody_are_counted_too_and_do_not_wait() {
    let mut play = Play::new(|policy| policy.max_attempts = 2);
    for at in [1, 2] {
        play.attempt(at);
        let (leave, _) = play.sends();
        play.answer(&leave, refused(at + 1));
        assert!(matches!(play.tells(), Told::NotApplied { .. }));
    }
    play.attempt(3);
    assert_eq!(play.tells(), Told::Failed(Fault::Contention { attempts: 2 }));
}

/// Whoever made a write that repeats judges the refusing row itself.
#[test]
fn a_write_that_repeats_waits_and_does_not_look() {
    let mut play = Play::new(|_| {});
    play.loses(1);
    play.plan(&[(0, Role::Repeats)], |_| {});
    assert!(play.poll().is_none());
    play.passes(millis(30));
    assert!(matches!(play.sends().1, What::Attempt { .. }));
}

#[test]
fn a_pause_takes_half_of_the_time_left_and_none_is_begun_that_would_leave_no_time_for_a_send() {
    for (left, pause) in [(400, Some(200)), (302, Some(151)), (300, None)] {
        let mut play = Play::new(|_| {});
        play.takes_ticket(105);
        play.left = millis(left);
        play.attempt_in_line(1, 105, 4);
        if let Some(pause) = pause {
            assert_eq!(play.tells(), Told::Look(vec![0]));
            play.reads(&[0]);
            assert!(play.poll().is_none());
            assert_eq!(play.change.wake_at(), Some(play.at + millis(pause)));
        } else {
            assert_eq!(play.tells(), Told::Failed(Fault::Contention { attempts: 1 }));
            assert!(play.poll().is_none(), "what was told is no longer sent");
        }
    }
}

/// Read as a row, a lease that is held would not be known as held any more.
#[test]
fn a_look_leaves_out_a_required_lease() {
    let mut play = Play::new(|_| {});
    play.loses(1);
    let role = play.writes(2, 1);
    play.plan(&[(0, role), (1, Role::Requires(7))], |plan| plan.is_transaction = true);
    assert_eq!(play.tells(), Told::Look(vec![0]));
}

#[test]
fn a_ticket_is_taken_where_others_wait_and_its_turn_is_waited_for() {
    let mut play = Play::new(|_| {});
    play.takes_ticket(9);
    play.attempt_in_line(2, 9, 3);
    assert_eq!(play.tells(), Told::Look(vec![0]));
    play.reads(&[0]);
    assert!(play.poll().is_none());
    assert_eq!(play.change.wake_at(), Some(play.at + millis(45)), "five turns of 11 ms, less one round trip");
    play.passes(millis(45));
    let (leave, _) = play.sends();
    play.answer(&leave, read(&[0]));
    play.tells();
    play.attempt_in_line(3, 9, 8);
    let (leave, what) = play.sends();
    assert_eq!(what, What::Attempt { serve: Some(9), token: None }, "its turn has come");
    play.answer(&leave, refused(4));
    play.tells();
    play.change.lost_race();
    play.attempt_in_line(4, 9, 12);
    assert!(matches!(play.sends().1, What::Attempt { serve: Some(12), .. }), "what is served never falls");
}

#[test]
fn without_a_ticket_an_attempt_pauses_as_if_there_were_no_line() {
    for outcome in [Outcome::Refused, Outcome::Rejected] {
        let mut play = Play::new(|_| {});
        play.loses(1);
        play.attempt_in_line(2, 5, 4);
        let (leave, _) = play.sends();
        play.answer(&leave, Answer::of(outcome, true));
        assert_eq!(play.tells(), Told::Look(vec![0]), "no answer has shown the row");
        play.reads(&[0]);
        let (leave, _) = play.sends();
        play.passes(millis(10));
        play.answer(&leave, read(&[0]));
        assert_eq!(play.tells(), Told::Read);
        play.attempt_in_line(2, 5, 4);
        assert_eq!(play.tells(), Told::Look(vec![0]), "{outcome:?}");
        play.reads(&[0]);
        play.passes(millis(30));
        let (leave, _) = play.sends();
        play.answer(&leave, read(&[0]));
        play.tells();
        play.attempt_in_line(2, 5, 4);
        assert_eq!(play.sends().1, What::Attempt { serve: None, token: None }, "{outcome:?}");
    }
}

#[test]
fn rows_that_a_batch_leaves_out_are_asked_for_again_while_there_is_time() {
    let mut play = Play::new(|_| {});
    play.reads(&[0, 1, 2]);
    let (leave, what) = play.sends();
    assert_eq!(what, What::Read(vec![0, 1, 2]));
    assert!(!play.change.asks_for_fates(), "nothing was sent yet");
    play.answer(&leave, read(&[1]));
    for (pause, left) in [(20, 10_000), (40, 10_000)] {
        assert!(play.poll().is_none(), "it pauses");
        let due = play.change.wake_at().expect("a pause");
        assert!(due > play.at + millis(pause - 1) && due <= play.at + millis(pause), "{due:?}");
        (play.at, play.left) = (due, millis(left));
        let (leave, what) = play.sends();
        assert_eq!(what, What::Read(vec![0, 2]));
        play.answer(&leave, read(&[]));
    }
    play.at = play.change.wake_at().expect("a pause");
    let (leave, _) = play.sends();
    play.left = millis(150); // Less than the next pause and a send.
    play.answer(&leave, read(&[0]));
    let Told::Failed(Fault::Unavailable(Cause::Said(said))) = play.tells() else { panic!("it is not whole") };
    assert!(said.starts_with("some rows were not read"), "{said}");
}

#[test]
fn a_send_in_flight_is_waited_for_until_its_hedge_is_due_and_after_the_longest_time_none_is() {
    for hedge_after in [RetryPolicy::default().hedge_after, Duration::MAX] {
        let mut play = Play::new(|policy| policy.hedge_after = hedge_after);
        play.attempt(1);
        let (first, _) = play.sends();
        assert_eq!(play.change.wake_at(), None, "a client without an answer is probably connecting");
        play.answer(&first, refused(2));
        play.tells();
        play.attempt(2);
        play.sends();
        assert_eq!(play.change.wake_at(), Some(play.at.saturating_add(hedge_after)));
        if hedge_after == millis(150) {
            play.passes(hedge_after);
            assert_eq!(play.sends().0.why, Why::Hedge);
            assert_eq!(play.change.wake_at(), None, "two at most are in flight");
        }
    }
}

#[test]
fn a_burn_that_cannot_be_made_is_not_counted() {
    let mut play = Play::new(|_| {});
    play.attempt(1);
    let leave = play.loses_an_answer();
    play.change.take_cost();
    play.answer(&leave, refused(1));
    let (burn, what) = play.sends();
    assert!(matches!(what, What::Burn { row: 0, .. }), "{what:?}");
    let now = play.now();
    play.change.cannot_be_made(burn.id, now, &mut || 0);
    assert_eq!((play.change.rounds(), play.change.take_cost()), (1, Cost::default()));
    assert!(matches!(play.tells(), Told::Failed(Fault::Unknown(Cause::Send(_)))));
}

#[test]
fn a_send_is_not_awaited_any_more_when_another_one_has_proved_the_outcome() {
    let mut play = Play::new(|_| {});
    play.attempt(1);
    let (first, _) = play.sends();
    play.answer(&first, refused(2));
    play.tells();
    play.attempt(2);
    let (late, _) = play.sends();
    play.passes(millis(150));
    let (hedge, _) = play.sends();
    assert!(play.change.awaits(late.id) && play.change.awaits(hedge.id));
    play.answer(&hedge, refused(2));
    let (burn, what) = play.sends();
    assert!(matches!(what, What::Burn { .. }), "{what:?}");
    assert!(play.change.awaits(burn.id) && !play.change.awaits(late.id));
}

#[test]
fn a_signature_that_is_refused_is_made_again_once() {
    let mut play = Play::new(|_| {});
    play.attempt(1);
    let (first, _) = play.sends();
    play.answer(&first, Answer::of(Outcome::Expired, true));
    play.passes(millis(20));
    let (again, _) = play.sends();
    assert_eq!(again.why, Why::After(Outcome::Expired));
    play.answer(&again, Answer::of(Outcome::Expired, true));
    assert_eq!(play.tells(), Told::Failed(Fault::Rejected(again.id)));
}

#[test]
fn an_attempt_is_burned_where_the_stored_data_rejected_it_beginning_with_a_row_that_was_no_reason() {
    for (depends_on_data, burned) in [(true, Some(1)), (false, None)] {
        let mut play = Play::new(|_| {});
        play.random = 5;
        let role = play.writes(1, 2);
        play.plan(&[(0, role), (1, role)], |plan| plan.is_transaction = true);
        let (leave, what) = play.sends();
        assert_eq!(what, What::Attempt { serve: None, token: Some([5, 5]) });
        play.answer(&leave, rejected(depends_on_data, &[Reason::Rejected, Reason::None]));
        match burned {
            Some(row) => assert!(matches!(play.sends().1, What::Burn { row: of, .. } if of == row)),
            None => assert_eq!(play.tells(), Told::Failed(Fault::Rejected(leave.id))),
        }
    }
}

/// A send without time for its answer would turn "not applied" into "unknown", unless it is unknown already.
#[test]
fn a_write_leaves_with_time_for_its_answer_or_after_a_lost_one_and_never_after_its_window_on_either_clock() {
    for (left, leaves) in [(150, true), (149, false)] {
        let mut play = Play::new(|_| {});
        play.left = millis(left);
        play.attempt(1);
        assert_eq!(matches!(play.poll(), Some(Action::Send(..))), leaves, "{left} ms");
    }
    let window = Duration::from_mins(4);
    let (none, early) = (Duration::ZERO, millis(239_999));
    for (left, at, wall, leaves) in [
        (1, none, none, true),
        (0, none, none, false),
        (9999, early, early, true),
        (9999, window, none, false),
        (9999, none, window, false),
    ] {
        let mut play = Play::new(|_| {});
        play.random = 0;
        play.attempt(1);
        let (leave, _) = play.sends();
        play.answer(&leave, Answer::of(Outcome::Unknown, false));
        let now = Now { at: play.at + at, wall: play.now().wall + wall, left: millis(left) };
        let action = play.change.poll(now, &mut play.client, &mut || 0);
        let gives_up = matches!(action, Some(Action::Tell(Told::Failed(Fault::Unknown(_)))));
        assert_eq!((matches!(action, Some(Action::Send(..))), gives_up), (leaves, !leaves), "{now:?}: {action:?}");
    }
}

#[test]
fn a_throttled_request_is_sent_again_a_hundred_times_for_which_its_client_pays() {
    let throttled = || Answer::of(Outcome::NotApplied { throttled: Some(Duration::ZERO) }, true);
    for is_read in [false, true] {
        let mut play = Play::new(|_| {});
        play.random = 0;
        if is_read {
            play.reads(&[0]);
        } else {
            play.attempt(1);
        }
        for _ in 0..=100 {
            let (leave, _) = play.sends();
            play.answer(&leave, throttled());
        }
        assert!(matches!(play.tells(), Told::Failed(Fault::Unavailable(_))), "{is_read}");
        for _ in 0..5 {
            play.reads(&[0]);
            let (leave, _) = play.sends();
            play.answer(&leave, read(&[0]));
            assert_eq!(play.tells(), Told::Read);
        }
        play.reads(&[0]);
        for _ in 0..2 {
            let (leave, _) = play.sends();
            play.answer(&leave, throttled());
        }
        assert!(matches!(play.tells(), Told::Failed(Fault::Unavailable(_))), "five answers pay for one resend");
    }
}

#[test]
fn after_a_lost_answer_a_write_pauses_for_half_of_the_time_left_at_most() {
    for (left, pause) in [(10_000, 20), (20, 10)] {
        let mut play = Play::new(|_| {});
        play.attempt(1);
        let (leave, _) = play.sends();
        play.left = millis(left);
        play.answer(&leave, Answer::of(Outcome::Unknown, false));
        let due = play.change.wake_at().expect("a pause");
        assert!(due > play.at + millis(pause - 1) && due <= play.at + millis(pause), "{due:?}");
    }
}

#[test]
fn before_an_attempt_elsewhere_an_open_one_is_burned_and_the_burn_tells_what_became_of_it() {
    let not_applied = || Told::NotApplied { unseen: Vec::new(), burned: Some(0) };
    for ending in [
        Ending::Burned,
        Ending::Shows(2, false),
        Ending::Shows(2, true),
        Ending::Shows(LATE, false),
        Ending::Rejected,
        Ending::OutOfTime,
        Ending::Impossible,
    ] {
        let (mut play, id) = Play::with_an_open_attempt();
        let role = play.writes(1, 1);
        play.plan(&[(1, role)], |_| {});
        let burn = play.ends_burn(ending);
        let Some(Action::Tell(told)) = play.poll() else { panic!("{ending:?} tells nothing") };
        let said = |said| Told::Failed(Fault::Unknown(Cause::Said(said)));
        let expected = match ending {
            Ending::Burned | Ending::Shows(_, false) if !matches!(ending, Ending::Shows(LATE, _)) => not_applied(),
            Ending::Shows(_, true) => Told::Earlier { id, at: row_at(2).at() },
            Ending::Impossible => said("an earlier attempt may still be applied"),
            Ending::Rejected | Ending::OutOfTime => Told::Failed(Fault::Unknown(Cause::Send(burn))),
            _ => said("the burn of an earlier attempt proved nothing"),
        };
        assert_eq!(told, expected, "{ending:?}");
    }
}

/// Without a change, the open attempt would be the only one, as after an answer without a step.
#[test]
fn a_check_elsewhere_is_sent_although_an_open_attempt_cannot_be_burned_which_stays_open() {
    let (mut play, id) = Play::with_an_open_attempt();
    play.plan(&[(1, Role::Checks(Base::NoRow(version(1))))], |_| {});
    play.ends_burn(Ending::Impossible);
    assert!(matches!(play.sends().1, What::Attempt { .. }));
    assert!(play.change.attempts().is_open(id));
}

#[test]
fn a_change_that_gives_up_burns_its_open_attempts_and_is_doubtful_unless_none_can_be_applied() {
    for (ending, is_doubtful) in [
        (Ending::Burned, false),
        (Ending::Shows(2, false), false),
        (Ending::Shows(2, true), true),
        (Ending::Shows(LATE, false), true),
        (Ending::Impossible, true),
    ] {
        let (mut play, _) = Play::with_an_open_attempt();
        let now = play.now();
        play.change.give_up(now, &mut || 3);
        play.ends_burn(ending);
        assert_eq!(play.tells(), Told::GivenUp { is_doubtful }, "{ending:?}");
    }
}

#[test]
fn a_row_that_is_read_tells_what_became_of_an_open_attempt_or_that_nobody_can_know() {
    for (at, is_remembered) in [(2, true), (LATE, false), (2, false)] {
        let (mut play, id) = Play::with_an_open_attempt();
        play.reads(&[0]);
        let (leave, _) = play.sends();
        assert!(play.change.asks_for_fates());
        let mut answer = read(&[0]);
        answer.rows = vec![(0, Some(if is_remembered { remembers(at, id) } else { row_at(at) }))];
        play.answer(&leave, answer);
        let told = play.tells();
        match (at, is_remembered) {
            (_, true) => assert_eq!(told, Told::Earlier { id, at: row_at(2).at() }),
            (LATE, false) => assert!(matches!(told, Told::Failed(Fault::Unknown(Cause::Said(_)))), "{told:?}"),
            _ => assert_eq!((told, play.change.attempts().is_doubtful()), (Told::Read, false)),
        }
        if !is_remembered {
            let now = play.now();
            play.change.give_up(now, &mut || 3);
            assert_eq!(play.tells(), Told::GivenUp { is_doubtful: at == LATE }, "without another burn");
        }
    }
}

#[test]
fn a_rejected_attempt_gives_way_and_stays_open_if_other_data_would_let_a_copy_of_it_pass() {
    for depends_on_data in [true, false] {
        let mut play = Play::new(|_| {});
        let (role, id) = (play.writes(1, 2), play.change.attempts().id);
        play.plan(&[(0, role)], |plan| plan.gives_way = true);
        let (leave, _) = play.sends();
        play.random = 2;
        play.answer(&leave, rejected(depends_on_data, &[Reason::Rejected]));
        assert_eq!((play.tells(), play.change.attempts().is_open(id)), (Told::GaveWay, depends_on_data));
    }
}

#[test]
fn the_burn_of_a_rejected_attempt_tells_whether_a_copy_of_it_was_applied() {
    for ending in [Ending::Burned, Ending::Shows(2, true), Ending::Shows(LATE, false), Ending::Impossible] {
        let mut play = Play::new(|_| {});
        let (role, id) = (play.writes(1, 1), play.change.attempts().id);
        play.plan(&[(0, role)], |_| {});
        let (leave, _) = play.sends();
        play.answer(&leave, rejected(true, &[Reason::Rejected]));
        play.ends_burn(ending);
        let expected = match ending {
            Ending::Burned => Told::Failed(Fault::Rejected(leave.id)),
            Ending::Shows(_, true) => Told::Applied { id, at: Some(row_at(2).at()) },
            _ => Told::Failed(Fault::Unknown(Cause::Send(leave.id))),
        };
        assert_eq!(play.tells(), expected, "{ending:?}");
    }
}

#[test]
fn a_change_without_time_tells_its_last_error_or_that_it_met_others() {
    let not_now = Outcome::NotApplied { throttled: None };
    for outcomes in [[not_now, Outcome::Unknown], [Outcome::Unknown, not_now]] {
        let mut play = Play::new(|_| {});
        play.random = 0;
        play.reads(&[0]);
        let (first, _) = play.sends();
        play.answer(&first, Answer::of(outcomes[0], true));
        let (last, _) = play.sends();
        play.left = Duration::ZERO;
        play.answer(&last, Answer::of(outcomes[1], true));
        assert_eq!(play.tells(), Told::Failed(Fault::Unavailable(Cause::Send(last.id))), "{outcomes:?}");
    }
    for is_met in [true, false] {
        let mut play = Play::new(|_| {});
        if is_met {
            play.loses(1);
        }
        play.random = 0; // At once.
        play.attempt(2);
        play.left = millis(149);
        let Some(Action::Tell(told)) = play.poll() else { panic!("it waits") };
        let is_contention = told == Told::Failed(Fault::Contention { attempts: 2 });
        let said = Told::Failed(Fault::Unavailable(Cause::Said("no time was left to send the write")));
        assert!(if is_met { is_contention } else { told == said }, "{told:?}");
    }
}

#[test]
fn a_mistaken_token_is_counted_and_a_proof_about_one_send_does_not_drop_another_write() {
    let mut play = Play::new(|_| {});
    play.random = 0;
    play.attempt(1);
    for mismatches in 0..3 {
        let (leave, _) = play.sends();
        assert_eq!(leave.mismatches, mismatches);
        play.answer(&leave, Answer::of(Outcome::Mismatch, true));
    }
    for is_read in [false, true] {
        let mut play = Play::new(|_| {});
        play.loses(1);
        play.random = 0;
        if is_read {
            play.change = Change::new(
                Terms { policy: RetryPolicy::default(), relies_on_token: false },
                WriteId::from_random(1),
                play.now(),
            );
            play.reads(&[0]);
        } else {
            play.attempt(2);
        }
        let (first, _) = play.sends();
        play.passes(millis(150));
        let (hedge, _) = play.sends();
        play.answer(&hedge, Answer::of(Outcome::Rejected, true));
        assert_eq!(play.change.awaits(first.id), !is_read, "a rejected read is useless, a write may be applied");
    }
}

#[test]
fn a_read_is_sent_again_after_its_pause_while_there_is_time_for_its_answer() {
    for (random, left, due) in [(0, 150, Some(0)), (0, 149, None), (u64::MAX, 10_000, Some(20))] {
        let mut play = Play::new(|_| {});
        play.random = random;
        play.reads(&[0]);
        let (leave, _) = play.sends();
        play.left = millis(left);
        play.answer(&leave, Answer::of(Outcome::Unknown, false));
        match due {
            Some(due) => {
                let at = play.change.wake_at().expect("a pause");
                assert!(at <= play.at + millis(due) && at + millis(1) > play.at + millis(due), "{at:?}");
            }
            None => assert!(matches!(play.tells(), Told::Failed(Fault::Unavailable(_)))),
        }
    }
}

/// The version that shows a change of several steps may be that of any of its rows.
#[test]
fn only_a_change_of_one_step_tells_the_state_that_it_left() {
    for (rows, is_refused) in [(1, false), (2, false), (1, true), (2, true)] {
        let mut play = Play::new(|_| {});
        let (role, id) = (play.writes(1, 1), play.change.attempts().id);
        let steps: Vec<_> = (0..rows).map(|row| (row, role)).collect();
        play.plan(&steps, |_| {});
        let (leave, _) = play.sends();
        let mut answer = Answer::of(Outcome::Applied, true);
        if is_refused {
            answer = refused_by_memory(2, id);
            answer.reasons.resize(rows, Reason::None);
        }
        play.answer(&leave, answer);
        assert_eq!(play.tells(), Told::Applied { id, at: (rows == 1).then(|| row_at(2).at()) }, "{rows}, {is_refused}");
    }
}

#[test]
fn the_burn_of_a_later_attempt_may_show_that_an_earlier_one_was_applied() {
    let (mut play, id) = Play::with_an_open_attempt();
    play.attempt(1);
    let leave = play.loses_an_answer();
    play.answer(&leave, refused(1));
    let (burn, what) = play.sends();
    assert!(matches!(what, What::Burn { row: 0, .. }), "{what:?}");
    play.answer(&burn, refused_by_memory(2, id));
    assert_eq!(play.tells(), Told::Earlier { id, at: row_at(2).at() });
}

/// No copy can be applied without the lease, so the rows of the writes tell, each its own.
#[test]
fn after_a_lost_lease_the_row_of_each_write_is_asked() {
    for at in [1, 2] {
        let mut play = Play::new(|_| {});
        let (role, id) = (play.writes(1, 1), play.change.attempts().id);
        play.plan(&[(0, Role::Requires(7)), (at, role)], |plan| plan.is_transaction = true);
        let leave = play.loses_an_answer();
        let mut answer = Answer::of(Outcome::Refused, true);
        answer.reasons = vec![Reason::Refused(Seen::Lease { is_lost: true }), Reason::None];
        play.answer(&leave, answer);
        let (look, what) = play.sends();
        assert_eq!(what, What::Read(vec![at]));
        assert!(play.change.asks_for_fates());
        let mut answer = read(&[at]);
        answer.rows = vec![(at, Some(remembers(2, id)))];
        play.answer(&look, answer);
        assert_eq!(play.tells(), Told::Applied { id, at: None });
    }
}

/// What becomes of an earlier send is worth more than the load on a throttled table.
#[test]
fn a_burn_and_the_look_after_a_lost_lease_are_sent_again_without_retry_tokens() {
    for is_lease in [false, true] {
        let mut play = Play::new(|_| {});
        let role = play.writes(1, 1);
        let steps = if is_lease { vec![(1, Role::Requires(7)), (0, role)] } else { vec![(0, role)] };
        play.plan(&steps, |_| {});
        let leave = play.loses_an_answer();
        let mut answer = refused(1);
        if is_lease {
            answer.reasons = vec![Reason::Refused(Seen::Lease { is_lost: true }), Reason::None];
        }
        play.answer(&leave, answer);
        play.random = 0;
        for _ in 0..200 {
            let (leave, what) = play.sends();
            assert_eq!(matches!(what, What::Read(_)), is_lease, "{what:?}");
            play.answer(&leave, Answer::of(Outcome::NotApplied { throttled: Some(Duration::ZERO) }, true));
        }
        assert!(play.poll().is_some_and(|action| matches!(action, Action::Send(..))), "the client pays for a hundred");
    }
}
