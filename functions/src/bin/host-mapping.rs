//! The Lambda function `host-mapping`: wiring only.

use fencepost::Source;
use fencepost::lambda::serve;
use functions::function::PROCESS;
use functions::host_mapping;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Source> {
    serve(|store| host_mapping::App::router(store, PROCESS)).await
}
