//! The Lambda function `host-mapping`: wiring only.

use fencepost::lambda::{Error, serve};
use functions::host_mapping::{App, handle};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    serve(App::from_env, handle).await
}
