//! A Lambda function without the SDK that answers each event with itself. Its cost is the least that any function has.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    lambda_runtime::run(service_fn(async |event: LambdaEvent<Value>| Ok::<_, Error>(event.payload))).await
}
