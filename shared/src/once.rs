//! [`Once`]: a request with an idempotency key has one effect, and each repeat gets the first answer.

use crate::call::Call;
use crate::error::Failure;
use crate::error::TransactError;
use crate::http::{Problem, Response};
use crate::idempotency::{Claim, Earlier, Stored};
use crate::request::Request;
use crate::table::Table;
use crate::transact::{Attempt, Plan, Reads, Transactions};
use serde_json::Value;

/// The door to changes that count once, also when they are asked for again hours later.
#[derive(Debug)]
pub struct Once {
    transactions: Transactions,
    records: Table<Stored>,
}

impl Once {
    /// Changes by these transactions, remembered in this table.
    #[must_use]
    pub fn new(transactions: Transactions, records: Table<Stored>) -> Self {
        Once { transactions, records }
    }

    /// Answers with what this caller's request with this `key` on this `route` was answered first; where there is no
    /// such answer, changes what `decide` says and remembers its answer.
    ///
    /// The record is read together with `reads`, and looked up before `decide` is asked, on every attempt. Then
    ///
    /// - `Commit(answer)` commits the steps and the record in one transaction;
    /// - `Keep(answer)` commits the record alone, on the condition that every item is still as it was seen: without it,
    ///   a late repeat could change what was right before;
    /// - `Refuse(problem)` is not remembered: the key stays open, and the same request may succeed later. It costs one
    ///   more read of the record.
    ///
    /// `payload` is what the request says once it is parsed, defaults filled in; route and path are added to it here.
    /// Numbers in it are in their one notation ([`crate::json::parse`]), members are sorted, so equal requests are equal
    /// text.
    ///
    /// # Errors
    /// `idempotency_key_reused` where the key was used for another payload; what `decide` refuses; `too_large`, before
    /// anything is written, where the answer does not fit into a record; and every [`Failure`], where an unknown
    /// outcome is found out by repeating the request.
    #[expect(clippy::too_many_arguments, reason = "who, what and how: a struct would only name them again")]
    pub async fn change(
        &self,
        request: &Request,
        route: &str,
        key: &str,
        payload: &Value,
        mut reads: Reads,
        call: &Call,
        decide: impl Fn(&mut Attempt) -> Result<Plan<Response, Problem>, Failure>,
    ) -> Result<Response, Problem> {
        let claim = Claim::new(&[&request.caller, route, key], &[route, &request.path, &payload.to_string()]);
        let record = reads.item("idempotency record", &self.records, &claim.key());
        let decide_once = |attempt: &mut Attempt| {
            let now = self.transactions.ambient().now();
            match claim.look_up(attempt, record, now)? {
                Earlier::Nothing => {}
                Earlier::Replay(answer) => return Ok(Plan::Keep(Response::from_stored(&answer)?.replayed())),
                Earlier::Reused => return Ok(Plan::Refuse(Problem::key_reused())),
            }
            let plan = decide(attempt)?;
            if let Plan::Commit(answer) | Plan::Keep(answer) = &plan {
                claim.record(attempt, record, answer.to_stored(), now)?;
            }
            Ok(match plan {
                Plan::Keep(answer) => {
                    attempt.check_rest()?;
                    Plan::Commit(answer)
                }
                Plan::Commit(_) | Plan::Refuse(_) => plan,
            })
        };
        match self.transactions.transact_with_retry(reads, call, decide_once).await {
            Ok(answer) => Ok(answer),
            Err(TransactError::Failed(failure)) => Err(Problem::of_keyed(failure)),
            Err(TransactError::Refused(problem)) => self.unless_answered(&claim, problem, call).await,
        }
    }

    /// Gives a refusal only if there is still no answer to the same request.
    ///
    /// The items that were decided on were not read in one moment: the record may have been read just before the same
    /// request, sent twice at once, was applied, and the others just after. What is refused then, as already done or no
    /// longer possible, is refused because of itself. The record, read after them, shows it.
    async fn unless_answered(&self, claim: &Claim, problem: Problem, call: &Call) -> Result<Response, Problem> {
        let stored = self.records.get(&claim.key(), call).await?;
        match claim.earlier(stored, self.transactions.ambient().now()) {
            Earlier::Replay(answer) => Ok(Response::from_stored(&answer)?.replayed()),
            Earlier::Reused => Err(Problem::key_reused()),
            Earlier::Nothing => Err(problem),
        }
    }
}
