//! Deletes that leave no tombstone.

use super::world::{SharedRemoved, account, accounts, engine, key, number, row};
use fencepost::{ItemVersion, VersionError};
use serde_json::Value;

#[tokio::test]
async fn a_physical_delete_is_one_request_on_version_and_incarnation() {
    let engine = engine();
    let table = accounts::<SharedRemoved>(&engine);
    let at = table.create(&key(), &account(50)).await.expect("a free key").at;
    engine.take_log();
    let incarnation = row(&engine)["_incarnation"].clone();
    let wrong = ItemVersion { version: at.version.next(), ..at };
    let refused = table.delete_at_version(&key(), wrong).await.expect_err("another version");
    assert!(matches!(refused, VersionError::Conflict(now) if now.at == at));
    table.delete_at_version(&key(), at).await.expect("that version");
    let asked = engine.take_log();
    assert_eq!((asked.len(), asked[1].operation.as_str(), row(&engine)), (2, "DeleteItem", Value::Null));
    let values = &asked[1].body["ExpressionAttributeValues"];
    assert!(values[":at"] == number(1) && values[":incarnation"] == incarnation, "{values}");

    let anew = table.create(&key(), &account(7)).await.expect("a free key");
    assert_eq!((anew.at.version.get(), engine.take_counts()), (1, (0, 1)), "versions begin again");
    assert_ne!(anew.at.incarnation, at.incarnation);
    // A late copy of the first delete finds another row at the same version.
    let (status, answer) = engine.answer("DeleteItem", asked[1].body.to_string().as_bytes());
    assert!(status == 400 && answer.contains("ConditionalCheckFailed"), "{answer}");
    assert!(matches!(table.delete_at_version(&key(), at).await, Err(VersionError::Conflict(_))));
    engine.take_log();
    table.delete(&key()).await.expect("an account");
    assert_eq!(engine.take_counts(), (1, 1));
}
