//! The Lambda function `inventory`: wiring only.

use fencepost::Source;
use fencepost::lambda::serve;
use functions::function::PROCESS;
use functions::inventory;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Source> {
    serve(|store| inventory::App::router(store, PROCESS)).await
}
