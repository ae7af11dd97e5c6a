//! The real functions in processes of their own, over real sockets: what one has done, a new one does not do again.

use super::exactly_once::Deed;
use super::world::TABLES;
use crate::harness::functions::{ORDERS, PRODUCTS, RECORDS};
use crate::harness::runtime_api::FunctionProcess;
use crate::harness::server::Server;
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_processes_at_once_and_then_six_new_ones_one_after_another_do_it_once() {
    for deed in Deed::ALL {
        let server = Server::start(TABLES).await;
        let event = deed.prepare(&server.engine).await;
        let endpoint = server.endpoint();
        let environment = [
            ("AWS_ENDPOINT_URL_DYNAMODB", endpoint.as_str()),
            ("PRODUCTS_TABLE", PRODUCTS),
            ("ORDERS_TABLE", ORDERS),
            ("IDEMPOTENCY_RECORDS_TABLE", RECORDS),
        ];
        let function = if matches!(deed, Deed::Adjustment) { "inventory" } else { "place-order" };
        let mut racing = JoinSet::new();
        for _ in 0..4 {
            let process = FunctionProcess::start(function, &environment).await;
            let event = event.clone();
            racing.spawn(async move { process.answer(&event).await });
        }
        let mut answers = racing.join_all().await;
        for _ in 0..6 {
            let process = FunctionProcess::start(function, &environment).await;
            answers.push(process.answer(&event).await);
        }
        deed.assert_once(&server.engine, &answers);
    }
}
