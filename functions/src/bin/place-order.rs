//! The Lambda function `place-order`: wiring only.

use fencepost::Source;
use fencepost::lambda::serve;
use functions::function::PROCESS;
use functions::place_order;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Source> {
    serve(|store| place_order::App::router(store, PROCESS)).await
}
