//! The Lambda function `place-order`: wiring only.

use fencepost::Source;
use fencepost::lambda::serve;
use functions::function::PROCESS;
use functions::place_order;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Source> {
    serve(|store| Ok(place_order::App::from_env(store, PROCESS)?.into_router())).await
}
