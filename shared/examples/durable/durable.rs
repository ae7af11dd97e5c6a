//! **A durable step that counts once.** A durable function of Lambda runs each step at least once. If it ends between
//! the effect and the stored result, the step runs again and a plain `ADD` counts twice. With `AtMostOncePerRetry`, the
//! retry of the interrupted attempt does the same. Here, the key of the change is the ARN of the execution with the
//! name of the step, without the number of the attempt. Its record counts for 33 days: take more than the
//! `ExecutionTimeout`. Each step needs a name of its own. `cargo test` in its folder runs it.
use aws_config::BehaviorVersion;
use aws_durable_execution_sdk::{BoxError, DurableContext, run};
use aws_sdk_dynamodb::Client;
use fencepost::{Error, IdempotencyClaim, Reads, Record, Store};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Record)]
#[record(key = "memberId")]
struct Member {
    points: u64,
}

/// The effect of a step. After an error, the SDK runs the step again: the same key finds an earlier effect.
async fn reward(store: &Store, execution: &str, step: &str, member: &str) -> Result<(), BoxError> {
    let mut reads = Reads::new();
    let item = reads.item("member", &store.table::<Member>("Members"), member);
    let claim = IdempotencyClaim::new(&[execution, step], &[member])?.lasting(32 * IdempotencyClaim::RETENTION)?;
    let steps = store.idempotency("Steps");
    let rewarded = steps.change(&claim, reads, |attempt| {
        attempt.edit(item, &Member::FIELDS.points.add(1, ..))?;
        Ok::<_, Error>(())
    });
    Ok(rewarded.await.map(drop)?)
}

async fn handler(store: Store, order: u64, ctx: DurableContext) -> Result<(), BoxError> {
    let (execution, name) = (ctx.execution_arn().to_owned(), format!("reward for order {order}"));
    let step = name.clone();
    Ok(ctx.step(move |_| async move { reward(&store, &execution, &step, "ann").await }).name(name).await?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let store = Store::new(&Client::new(&aws_config::load_defaults(BehaviorVersion::latest()).await));
    run(move |order, ctx| handler(store.clone(), order, ctx)).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_durable_execution_sdk::test_util::LocalRunner;
    use aws_sdk_dynamodb::types::AttributeValue;
    use fencepost_test::Dynamo;

    async fn bare(client: Client, order: u64, ctx: DurableContext) -> Result<(), BoxError> {
        let step = ctx.step(move |_| async move {
            let add = client.update_item().table_name("Members").key("memberId", AttributeValue::S("bob".to_owned()));
            let add = add.update_expression("ADD points :one");
            add.expression_attribute_values(":one", AttributeValue::N("1".to_owned())).send().await?;
            Ok(())
        });
        Ok(step.name(format!("reward for order {order}")).await?)
    }

    /// The local runner gives all executions one ARN. So the name of the step has the number of the order.
    #[tokio::test(start_paused = true)]
    async fn of_1_000_interrupted_steps_each_counts_once_and_each_bare_one_twice() {
        let db = Dynamo::new();
        db.create_table("Members", "memberId");
        db.create_table("Steps", "recordId");
        let store = Store::new(&db.client());
        store.table("Members").create("ann", &Member { points: 0 }).await.expect("a free key");
        db.engine().take_counts();
        // The start of each step is stored. Its result is not: the invocation fails and the next one runs the step again.
        let interrupted = || LocalRunner::new().fail_checkpoints_after_retryable(1, 1);
        for order in 0..1_000 {
            let (store, client) = (store.clone(), db.client());
            let ours = interrupted().run(move |order, ctx| handler(store.clone(), order, ctx), order).await;
            let plain = interrupted().run(move |order, ctx| bare(client.clone(), order, ctx), order).await;
            assert!([ours, plain].iter().all(|ran| ran.is_success() && ran.invocation_count() == 2));
        }
        assert_eq!((db.number("Members", "ann", "points"), db.number("Members", "bob", "points")), (1_000, 2_000));
        assert_eq!(db.engine().take_counts(), (2_000, 3_000), "two reads and a write for each of ours, two plain adds");
    }
}
