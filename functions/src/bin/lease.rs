//! The Lambda function `lease`: wiring only.

use fencepost::lambda::{Error, serve};
use functions::lease::{App, handle};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    serve(App::from_env, handle).await
}
