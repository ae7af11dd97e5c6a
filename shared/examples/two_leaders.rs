//! Two leaders, one child. Both leaders are alive in the same second. The story is told in three ways.
//!
//! Run it with `cargo run -p fencepost --example two_leaders`. It needs nothing else.
//!
//! Ann leads. She checks whether the parent has its child, and finds none. Before she creates it, she makes a slow
//! call. While she waits for the answer, her process is told to stop. It gives the lease back too early, because she is
//! not done. Bob acquires the lease. Then Ann gets her answer and creates the child, and Bob, who is the leader now,
//! creates it as well.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]
#![expect(clippy::disallowed_methods, reason = "one of the three ways is the usual one, on the bare SDK")]

use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_dynamodb::{Client, Config};
use fencepost::lease::{Lease, LeaseTerms, Leases};
use fencepost::{Error, Exists, Failure, FencingToken, Key, Reads, Record, Source, Store, Table, derived_id};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::HashSet;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

const LEASES: &str = "Leases";
const CHILDREN: &str = "Children";
/// The name of the parent and its uid among parents of that name.
const PARENT: [&str; 2] = ["cluster-1", "first"];

/// The way in which a leader keeps the children at one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// The leader remembers the parents that it has served. The child has a random id.
    Memory,
    /// The id of the child is derived from the parent. The create demands that the key is free.
    DerivedKey,
    /// Like `DerivedKey`; the create also demands the lease.
    DerivedKeyAndFence,
}

#[derive(Clone, Serialize, Deserialize, Record)]
#[record(key = "childId")]
#[serde(rename_all = "camelCase")]
struct Child {
    parent_id: String,
    made_by: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Source> {
    for (way, name) in [
        (Way::Memory, "each remembers what it has made"),
        (Way::DerivedKey, "the child's key follows from its parent"),
        (Way::DerivedKeyAndFence, "and the create requires the lease"),
    ] {
        let told = tell(way).await?;
        println!("{name}: {} ({})", counted(told.children.len()), told.children.join(" and "));
        println!("    Ann: {}\n    Bob: {}", told.ann, told.bob);
    }
    Ok(())
}

/// The result of the story.
struct Told {
    /// The maker of each child in the table at the end.
    children: Vec<String>,
    /// The answer to Ann, who was replaced.
    ann: String,
    /// The answer to Bob, who led.
    bob: String,
}

/// Tells the story, on an engine of its own.
async fn tell(way: Way) -> Result<Told, Source> {
    let client = engine().await?;
    let leases = Store::new(&client).leases(LEASES);
    let mut ann = Leader::new("ann", way, &client);
    let mut bob = Leader::new("bob", way, &client);

    let anns_lease = acquire(&leases, "ann").await?;
    let anns_token = anns_lease.token().clone();
    let (answer, slow_call) = oneshot::channel();
    let (done, ann_is_done) = oneshot::channel();
    let anns = async {
        let heard = ann.ensure_child(&anns_token, slow_call).await;
        let _ = done.send(());
        heard
    };
    let bobs = async {
        leases.release(anns_lease).await.map_err(|error| format!("{error:?}"))?;
        let lease = acquire(&leases, "bob").await?;
        let _ = answer.send(());
        bob.ensure_child(lease.token(), ann_is_done).await
    };
    let (ann, bob) = tokio::join!(anns, bobs);
    Ok(Told { ann: ann?, bob: bob?, children: children(&client).await? })
}

/// A process that believes it leads.
struct Leader {
    name: &'static str,
    way: Way,
    client: Client,
    children: Table<Child>,
    /// The parents that this leader has served. The way `Memory` relies on it.
    served: HashSet<String>,
}

impl Leader {
    fn new(name: &'static str, way: Way, client: &Client) -> Self {
        let store = Store::new(client);
        Leader { name, way, client: client.clone(), children: store.table(CHILDREN), served: HashSet::new() }
    }

    /// Makes the child of the parent, if the leader believes that there is none. It waits for `slow_call` in between.
    async fn ensure_child(&mut self, token: &FencingToken, slow_call: oneshot::Receiver<()>) -> Result<String, Source> {
        if self.way == Way::Memory && !self.served.insert(PARENT.join("/")) {
            return Ok("I have made it before".to_owned());
        }
        slow_call.await?;
        match self.way {
            Way::Memory => self.put().await,
            Way::DerivedKey => self.create().await,
            Way::DerivedKeyAndFence => self.create_under(token).await,
        }
    }

    /// Creates the child under a random id. The memory that was asked before belongs to this process only.
    async fn put(&self) -> Result<String, Source> {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let id = format!("{:016x}", getrandom::u64()?);
        let put = self.client.put_item().table_name(CHILDREN).item("childId", text(&id));
        put.item("parentId", text(PARENT[0])).item("madeBy", text(self.name)).send().await?;
        Ok("made".to_owned())
    }

    /// Creates the child if its key is free. The second leader meets the child of the first.
    async fn create(&self) -> Result<String, Source> {
        match self.children.create(&Self::key(), &self.child()).await {
            Ok(_) => Ok("made".to_owned()),
            Err(Error::Refused(Exists(there))) => Ok(format!("it is there, made by {}", there.value.made_by)),
            Err(Error::Failed(failure)) => Err(failure.into()),
        }
    }

    /// Creates the child if its key is free and the lease is held under this token. An existing child answers before
    /// the fence does.
    async fn create_under(&self, token: &FencingToken) -> Result<String, Source> {
        let mut reads = Reads::new();
        let child = reads.item("child", &self.children, Self::key());
        let lease = reads.lease("lease", token);
        let ensured = self.children.store().transact_with_retry(reads, |attempt| {
            if let Some(there) = attempt.get(child)? {
                return Ok(format!("it is there, made by {}", there.value.made_by));
            }
            attempt.require(lease)?;
            attempt.put_if_absent(child, &self.child())?;
            Ok("made".to_owned())
        });
        match ensured.await.map_err(Failure::from) {
            Err(Failure::Fenced) => Ok("refused, for somebody else leads".to_owned()),
            heard => Ok(heard?),
        }
    }

    fn key() -> Key {
        Key::from(derived_id(&["child", PARENT[0], PARENT[1]]).as_str())
    }

    fn child(&self) -> Child {
        Child { parent_id: PARENT[0].to_owned(), made_by: self.name.to_owned() }
    }
}

async fn acquire(leases: &Leases, holder: &str) -> Result<Lease, Source> {
    let acquired = leases.acquire("controller", holder, LeaseTerms::default()).await;
    acquired.map_err(|error| format!("{error:?}").into())
}

/// The maker of each child in the table.
async fn children(client: &Client) -> Result<Vec<String>, Source> {
    let rows = client.scan().table_name(CHILDREN).consistent_read(true).send().await?;
    let made_by = |row: &fencepost::Attributes| row.get("madeBy")?.as_s().ok().cloned();
    let mut children: Vec<_> = rows.items().iter().filter_map(made_by).collect();
    children.sort();
    Ok(children)
}

/// Starts an embedded engine with both tables on the runtime of this program. Returns a client for it.
async fn engine() -> Result<Client, Source> {
    let database = dynoxide::Database::memory()?;
    for (table, key) in [(LEASES, "leaseKey"), (CHILDREN, "childId")] {
        let wanted = json!({
            "TableName": table,
            "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
        });
        database.create_table(serde_json::from_value(wanted)?)?;
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let endpoint = format!("http://{}", listener.local_addr()?);
    tokio::spawn(dynoxide::server::serve_on(listener, database));
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-west-1"))
        .credentials_provider(Credentials::new("example", "example", None, None, "example"))
        .endpoint_url(endpoint)
        .http_client(aws_smithy_http_client::Builder::new().build_http());
    Ok(Client::from_conf(config.build()))
}

fn counted(children: usize) -> String {
    if children == 1 { "1 child".to_owned() } else { format!("{children} children") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn with_a_guard_in_memory_two_leaders_make_two_children() {
        let told = tell(Way::Memory).await.expect("told");
        assert_eq!(told.children, ["ann", "bob"]);
    }

    #[tokio::test]
    async fn with_a_derived_key_they_make_one() {
        let told = tell(Way::DerivedKey).await.expect("told");
        assert_eq!(told.children, ["ann"]);
        assert_eq!((told.ann.as_str(), told.bob.as_str()), ("made", "it is there, made by ann"));
    }

    #[tokio::test]
    async fn with_the_fence_it_is_made_by_the_one_who_leads() {
        let told = tell(Way::DerivedKeyAndFence).await.expect("told");
        assert_eq!(told.children, ["bob"]);
        assert_eq!((told.ann.as_str(), told.bob.as_str()), ("refused, for somebody else leads", "made"));
    }
}
