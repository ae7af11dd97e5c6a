//! The Lambda function `device-state`: wiring only.

use fencepost::lambda::{Error, serve};
use functions::device_state::{App, handle};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    serve(App::from_env, handle).await
}
