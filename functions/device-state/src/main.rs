//! The Lambda function `device-state`: wiring only.

use device_state::{App, handle};
use fencepost::lambda::{Error, serve};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    serve(App::from_env, handle).await
}
