//! The Lambda function `place-order`: wiring only.

use fencepost::lambda::{Error, serve};
use functions::function::PROCESS;
use functions::place_order;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    serve(|store| Ok(place_order::App::from_env(store, PROCESS)?.into_router())).await
}
