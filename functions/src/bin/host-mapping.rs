//! The Lambda function `host-mapping`: wiring only.

use fencepost::Source;
use fencepost::lambda::serve;
use functions::function::PROCESS;
use functions::host_mapping;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Source> {
    serve(|store| Ok(host_mapping::App::from_env(store, PROCESS)?.into_router())).await
}
