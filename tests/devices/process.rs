//! `device-state` in a process of its own.

use super::world::World;
use crate::harness::events::Event;
use crate::harness::functions::{DEVICES, RECORDS};
use crate::harness::runtime_api::FunctionProcess;
use crate::harness::server::Server;

/// Starts it on the tables of this server, with these variables beside those of its tables.
pub async fn start(server: &Server, more: &[(&str, &str)]) -> FunctionProcess {
    let endpoint = server.endpoint();
    let mut environment = vec![
        ("AWS_ENDPOINT_URL_DYNAMODB", endpoint.as_str()),
        ("DEVICES_TABLE", DEVICES),
        ("IDEMPOTENCY_RECORDS_TABLE", RECORDS),
    ];
    environment.extend(more);
    FunctionProcess::start("device-state", &environment).await
}

/// Sends an event. Its write waits until another client has changed the device. Gives the status of the answer.
pub async fn overtaken(server: &Server, process: &FunctionProcess, event: Event) -> i64 {
    server.shut(DEVICES);
    let waited = server.waited();
    let rival = async {
        server.until("the write stands at the gate", |traffic| traffic.waited > waited).await;
        let rival = World::on(&server.engine).send(&Event::adjust()).await;
        assert_eq!(rival.status, 200, "{rival:?}");
        server.open();
    };
    let (answer, ()) = tokio::join!(process.answer(&event), rival);
    answer.status
}
