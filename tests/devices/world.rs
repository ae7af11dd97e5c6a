//! `device-state` on an engine of its own or in a process of its own, with its events.

use crate::harness::answers::Answer;
use crate::harness::events::{Event, load};
use crate::harness::functions::{DEVICES, Devices, Functions};
use crate::harness::runtime_api::FunctionProcess;
use crate::harness::server::Server;
use crate::harness::world;
use serde_json::{Value, json};

pub const KEY: &str = "deviceId";
/// The tables of the function, each with its key.
pub const TABLES: &[(&str, &str)] = Devices::TABLES;

/// The function, its engine, and a clock under the test's control.
pub type World = world::World<Devices>;

impl World {
    /// With the device `lamp-1` of events/device-state-create.json: online, brightness 50.
    pub async fn with_lamp() -> (Self, Answer) {
        let world = Self::new();
        let created = world.send(&Event::create()).await;
        assert_eq!(created.status, 201, "{created:?}");
        (world, created)
    }

    /// The same with this text as `state` instead.
    pub async fn with_state(state: &str) -> Self {
        let world = Self::new();
        let created = world.send(&Event::create().text(&format!(r#"{{"state":{state}}}"#))).await;
        assert_eq!(created.status, 201, "{created:?}");
        world
    }

    pub fn pass(&self, milliseconds: u64) {
        self.clock.set_forward(milliseconds);
    }

    /// The row of `lamp-1` as it is stored.
    pub fn row(&self) -> Value {
        self.engine.row(DEVICES, KEY, "lamp-1")
    }

    /// Puts a row past the function.
    pub fn plant(&self, item: &Value) {
        self.engine.raw("PutItem", &json!({"TableName": DEVICES, "Item": item}));
    }
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

impl Event {
    pub fn create() -> Self {
        load("device-state-create")
    }

    pub fn get() -> Self {
        load("device-state-get")
    }

    pub fn delete() -> Self {
        load("device-state-delete")
    }

    pub fn patch_state() -> Self {
        load("device-state-patch-state")
    }

    pub fn adjust() -> Self {
        load("device-state-adjust")
    }

    pub fn set_status() -> Self {
        load("device-state-set-status")
    }

    pub fn set_config() -> Self {
        load("device-state-set-config")
    }

    /// One event for each route that changes a present device. Each does change `lamp-1`.
    pub fn changes() -> [Self; 5] {
        let offline = Self::set_status().text(r#"{"status":"offline"}"#);
        [Self::patch_state(), Self::adjust(), offline, Self::set_config(), Self::delete()]
    }

    /// One event for each route.
    pub fn all() -> [Self; 7] {
        let [patch, adjust, status, config, delete] = Self::changes();
        [Self::create(), patch, adjust, status, config, Self::get(), delete]
    }

    /// The same for another device.
    pub fn device(self, id: &str) -> Self {
        self.of(KEY, id)
    }
}
