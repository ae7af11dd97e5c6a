//! Tags of rows of other programs: each refuses after an unknown change.

use super::adopting::VERSIONS;
use super::world::{
    Account, Shared, accounts, deposit, foreign_save, foreign_update, get, row, set, update, with_foreign,
};
use crate::harness::engine::Engine;
use fencepost::ItemVersion;
use fencepost::http::{
    ChangeRequest, DeleteRequest, IfMatch, IfNoneMatch, Items, Preconditions, Problem, Response, Validator,
};
use serde_json::json;

fn at(tag: ItemVersion) -> ChangeRequest {
    ChangeRequest { if_match: IfMatch::Tag(tag), claim: None }
}

/// The status of an answer, and its tag.
fn told(answer: Result<Response, Problem>) -> (u16, Option<String>) {
    let answer = answer.unwrap_or_else(Problem::into_response);
    let etag = answer.headers().iter().find(|(name, _)| name.eq_ignore_ascii_case("etag"));
    (answer.status(), etag.map(|(_, tag)| tag.clone()))
}

/// Over HTTP: the tag of an answer is good for one change, and for none after a change of another program.
async fn if_match_is_good_until(change: fn(&Engine), version: Option<u64>, is_adopted: bool) {
    let engine = with_foreign(version);
    let items = Items::new(accounts::<Shared>(&engine));
    if is_adopted {
        update(items.table(), 0).await.expect("an account");
    }
    let deposit = |account: &Account<Shared>| deposit(1)(account).map_err(Problem::from);
    let preconditions = Preconditions { if_match: IfMatch::None, if_none_match: IfNoneMatch::None };
    let shown = told(items.get("a-1", &preconditions).await).1.expect("a tag");
    let tag = ItemVersion::from_etag(&shown).expect("a tag of this crate");
    assert_eq!(tag.incarnation.is_foreign(), !is_adopted);

    change(&engine);
    let (before, current) = (row(&engine), get(items.table()).await.expect("an account").at);
    engine.take_log();
    let stale = (412, Some(current.etag()));
    assert_eq!(told(items.change("a-1", &at(tag), deposit).await), stale);
    assert_eq!(told(items.delete("a-1", DeleteRequest { if_match: IfMatch::Tag(tag) }).await), stale);
    assert!(row(&engine) == before && (is_adopted || engine.take_counts() == (2, 0)), "nothing was written");
    assert_eq!(told(items.change("a-1", &at(current), deposit).await).0, 200);
    assert_eq!(told(items.change("a-1", &at(current), deposit).await).0, 412);
}

#[tokio::test]
async fn if_match_answers_412_after_a_change_of_another_program_and_200_before_it() {
    for version in VERSIONS {
        for is_adopted in [false, true] {
            if_match_is_good_until(|engine| foreign_update(engine, 10), version, is_adopted).await;
            if_match_is_good_until(|engine| foreign_save(engine, 10), version, is_adopted).await;
        }
        // At the same version, only the tag of a foreign row tells another content.
        let changes_the_content = |engine: &Engine| set(engine, &[("note", json!({"S": "of another program"}))]);
        if_match_is_good_until(changes_the_content, version, false).await;
    }
}
