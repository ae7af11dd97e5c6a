//! What host-mapping and delete-mapping do: every route and every task, where it changes something and where not.

use crate::harness::engine::{Engine, Use};
use crate::mappings::world::{IP, T1, T2, T3, TABLES, World, batch_of, task};
use std::collections::BTreeSet;

/// What host-mapping and what delete-mapping use.
pub async fn used() -> (BTreeSet<Use>, BTreeSet<Use>) {
    let engine = Engine::with_tables(TABLES);
    let (of_hosts, of_deletes) = (engine.watched_apart(), engine.watched_apart());
    let (hosts, deletes) = (World::on(&of_hosts), World::on(&of_deletes));
    let mut succeeded = BTreeSet::new();
    for (status, route, answer) in [
        (404, "GET", hosts.get(IP).await),
        (201, "PUT", hosts.register(IP, "i-a", T1).await),
        (200, "PUT", hosts.register(IP, "i-a", T1).await),
        (200, "GET", hosts.get(IP).await),
        (204, "DELETE", hosts.remove(IP, T1, Some("i-a")).await),
        (204, "DELETE", hosts.remove(IP, T1, None).await),
        (409, "PUT", hosts.register(IP, "i-a", T1).await),
        (404, "GET", hosts.get(IP).await),
        (201, "PUT", hosts.register(IP, "i-b", T2).await),
        (204, "DELETE", hosts.remove(IP, T1, Some("i-a")).await),
    ] {
        assert_eq!(answer.status, status, "{answer:?}");
        if status < 300 {
            succeeded.insert(format!("{route} /mappings/{{hostIp}}"));
        }
    }
    let bodies = [task(IP, T1, None), task(IP, T2, Some("i-b")), task(IP, T3, None), "{}".to_owned()];
    for (body, failed) in bodies.iter().zip([0, 0, 0, 1]) {
        assert_eq!(deletes.batch(&batch_of(&[("m-1", body)])).await.len(), failed, "{body}");
    }
    let routes = host_mapping::ROUTES.iter().map(|(route, _)| (*route).to_owned()).collect();
    assert_eq!(succeeded, routes, "every route was seen to do its work");
    (of_hosts.uses(), of_deletes.uses())
}
