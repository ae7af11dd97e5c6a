//! The Lambda function `device-state`: wiring only.

use fencepost::Source;
use fencepost::lambda::serve;
use functions::device_state;
use functions::function::PROCESS;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Source> {
    serve(|store| device_state::App::router(store, PROCESS)).await
}
