//! The Lambda function `ensure-child`: wiring only.

use fencepost::Source;
use fencepost::lambda::serve;
use functions::ensure_child;
use functions::function::PROCESS;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Source> {
    serve(|store| ensure_child::App::router(store, PROCESS)).await
}
