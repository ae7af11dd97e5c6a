//! The functions on canned answers, as Lambda calls them.

use super::engine::Engine;
use allocation_counter::AllocationInfo;
use aws_lambda_events::sqs::SqsEvent;
use fencepost::Store;
use fencepost::lambda::{respond, respond_batch};
use fencepost_test::client_over;
use lambda_runtime::{Context, LambdaEvent};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// The function that an event is for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Function {
    DeviceState,
    Inventory,
    PlaceOrder,
    HostMapping,
    DeleteMapping,
    Lease,
    EnsureChild,
}

/// All functions on one engine.
pub struct Functions {
    pub engine: Engine,
    runtime: Runtime,
    devices: functions::device_state::App,
    inventory: functions::inventory::App,
    orders: functions::place_order::App,
    hosts: functions::host_mapping::App,
    deletes: functions::delete_mapping::App,
    leases: functions::lease::App,
    children: functions::ensure_child::App,
}

/// What an invocation took, and its answer.
pub struct Took {
    pub heap: AllocationInfo,
    /// The time of the processor, with the work of the canned answers. It is only printed.
    pub time: Duration,
    pub status: i64,
    pub answer: Vec<u8>,
}

impl Functions {
    pub fn new() -> Self {
        let engine = Engine::default();
        let store = Store::new(&client_over(engine.clone()));
        let (products, orders) = (store.clone(), store.clone());
        Functions {
            engine,
            runtime: Builder::new_current_thread().enable_time().build().expect("a runtime"),
            devices: functions::device_state::App::new(
                store.table("Devices"),
                store.idempotency("Records"),
                Duration::ZERO,
            ),
            inventory: functions::inventory::App::new(products.table("Products"), products.idempotency("Records")),
            orders: functions::place_order::App::new(orders.table("Orders"), orders.table("Products")),
            hosts: functions::host_mapping::App::new(store.lww_table("Mappings")),
            deletes: functions::delete_mapping::App::new(store.lww_table("Mappings")),
            leases: functions::lease::App::new(store.leases("Leases")),
            children: functions::ensure_child::App::new(store.table("Children"), store.leases("Leases")),
        }
    }

    /// Answers one event: from the bytes that the runtime receives to the bytes that it sends.
    pub fn answer(&self, function: Function, event: &str) -> Took {
        let mut told = (0, Vec::new());
        let began = processor_time();
        let heap = allocation_counter::measure(|| told = self.runtime.block_on(self.told(function, event)));
        Took { heap, time: processor_time().saturating_sub(began), status: told.0, answer: told.1 }
    }

    async fn told(&self, function: Function, event: &str) -> (i64, Vec<u8>) {
        let response = match function {
            Function::DeleteMapping => {
                let batch = read::<SqsEvent>(event);
                let answer = Box::pin(respond_batch(&self.deletes, &functions::delete_mapping::handle, batch)).await;
                return (200, serde_json::to_vec(&answer.expect("each message has an id")).expect("JSON"));
            }
            Function::DeviceState => {
                Box::pin(respond(&self.devices, &functions::device_state::handle, read(event))).await
            }
            Function::Inventory => Box::pin(respond(&self.inventory, &functions::inventory::handle, read(event))).await,
            Function::PlaceOrder => Box::pin(respond(&self.orders, &functions::place_order::handle, read(event))).await,
            Function::HostMapping => {
                Box::pin(respond(&self.hosts, &functions::host_mapping::handle, read(event))).await
            }
            Function::Lease => Box::pin(respond(&self.leases, &functions::lease::handle, read(event))).await,
            Function::EnsureChild => {
                Box::pin(respond(&self.children, &functions::ensure_child::handle, read(event))).await
            }
        };
        (response.status_code, serde_json::to_vec(&response).expect("JSON"))
    }
}

/// The time that this thread has had a processor. Zero where the system does not say.
fn processor_time() -> Duration {
    let said = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(said.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or_default())
}

/// Reads an event as the runtime and then `serve` do.
fn read<T: DeserializeOwned>(event: &str) -> LambdaEvent<T> {
    let bytes = event.as_bytes().to_vec();
    let raw: Box<RawValue> = serde_json::from_slice(&bytes).expect("JSON");
    drop(bytes);
    LambdaEvent::new(serde_json::from_str(raw.get()).expect("an event"), Context::default())
}
