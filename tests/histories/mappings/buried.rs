//! Tombstones from a month before, which TTL removes in the middle of a history.

use super::plan::Plan;
use super::scene::{EPOCH, Scene, TTL};
use crate::harness::engine::{Step, store};
use crate::harness::faults::{Applied, Network, Touched};
use crate::harness::functions::MAPPINGS;
use fencepost::lww::{LwwTable, OrderKey};
use functions::mapping::Mapping;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep};

/// Deletes them, each a month before its tombstone is to end.
pub async fn bury(plan: &Plan, network: &Network) {
    for (address, buried) in plan.addresses.iter().zip(&plan.buried) {
        let Some(buried) = buried else { continue };
        let then = (EPOCH + buried.ends_after).saturating_sub(LwwTable::<Mapping>::TOMBSTONE_RETENTION);
        let store = store(&network.engine.client(), move || SystemTime::UNIX_EPOCH + then, || 7);
        let instance = OrderKey { order: buried.who.moment, name: buried.who.instance().map(ToOwned::to_owned) };
        let key = address.kept.as_str();
        store.lww_table::<Mapping>(MAPPINGS).delete(key, &instance).await.expect("no fault");
    }
}

/// TTL: removes tombstones some time after they have ended.
pub async fn remove_what_has_ended(scene: Arc<Scene>, network: Arc<Network>, mut rng: fastrand::Rng) {
    let start = Instant::now();
    loop {
        sleep(Duration::from_millis(rng.u64(0..60_000))).await;
        let now = (EPOCH + start.elapsed()).as_secs();
        for address in &scene.plan.addresses {
            let id = address.kept.clone();
            let key = json!({"hostIp": {"S": id}});
            let end = network.engine.row_at(MAPPINGS, &key)["_purgeAt"]["N"].take();
            if end.as_str().and_then(|end| end.parse::<u64>().ok()).is_some_and(|end| end < now) {
                network.engine.raw("DeleteItem", &json!({"TableName": MAPPINGS, "Key": key}));
                let step = Step { action: "DeleteItem", table: MAPPINGS.to_owned(), id, key };
                let rows = vec![Touched { step, row: Value::Null }];
                let purged = Applied { op: TTL, time: Instant::now(), rows, is_copy_of_refused: false };
                network.applied().push(purged);
            }
        }
    }
}
