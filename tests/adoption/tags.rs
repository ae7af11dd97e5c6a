//! Tags of rows of other programs: each refuses after an unknown change.

use super::adopting::VERSIONS;
use super::world::{
    Account, Setup, Shared, accounts, deposit, foreign_save, foreign_update, get, key, row, set, update, with_foreign,
};
use crate::harness::engine::Engine;
use fencepost::http::{ChangeRequest, DeleteRequest, IfMatch, IfNoneMatch, Items, Preconditions, Problem, Validator};
use fencepost::{ItemVersion, Table, VersionError};
use serde_json::json;

/// The ways in which another program changes the row.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Foreign {
    Updates,
    Saves,
    /// It replaces the value, and keeps the version.
    ChangesTheContent,
}

impl Foreign {
    fn does(self, engine: &Engine) {
        match self {
            Foreign::Updates => foreign_update(engine, 10),
            Foreign::Saves => foreign_save(engine, 10),
            Foreign::ChangesTheContent => {
                set(engine, &[("note", json!({"S": "of another program"}))]);
            }
        }
    }
}

async fn tag<S: Setup>(table: &Table<Account<S>>) -> ItemVersion {
    get(table).await.expect("an account").at
}

/// A change and a delete at an old tag are conflicts with the current item, and cost no write more than allowed.
async fn is_refused<S: Setup>(engine: &Engine, table: &Table<Account<S>>, old: ItemVersion) {
    let (before, current) = (row(engine), get(table).await.expect("an account"));
    engine.take_log();
    let changed = table.update_at_version(&key(), old, deposit(1)).await.expect_err("an old tag");
    assert!(matches!(changed, VersionError::Conflict(now) if *now == current));
    assert_eq!(engine.take_counts(), (1, 0));
    let deleted = table.delete_at_version(&key(), old).await.expect_err("an old tag");
    assert!(matches!(deleted, VersionError::Conflict(now) if *now == current));
    assert_eq!(engine.take_counts(), if old.incarnation.is_foreign() { (1, 0) } else { (0, 1) });
    assert_eq!(row(engine), before);
}

#[tokio::test]
async fn a_tag_of_a_foreign_row_refuses_after_each_change_of_another_program() {
    for at in VERSIONS {
        for change in [Foreign::Updates, Foreign::Saves, Foreign::ChangesTheContent] {
            let engine = with_foreign(at);
            let table = accounts::<Shared>(&engine);
            let old = tag(&table).await;
            change.does(&engine);
            is_refused(&engine, &table, old).await;
        }
    }
}

fn at(tag: ItemVersion) -> ChangeRequest {
    ChangeRequest { if_match: IfMatch::Tag(tag), claim: None }
}

fn status(answer: Result<fencepost::http::Response, Problem>) -> u16 {
    answer.unwrap_or_else(Problem::into_response).status()
}

/// Over HTTP: the tag of an answer is good for one change, and for none after a change of another program.
#[tokio::test]
async fn if_match_answers_412_after_a_change_of_another_program_and_200_before_it() {
    for change in [Foreign::Updates, Foreign::Saves, Foreign::ChangesTheContent] {
        for is_adopted in [false, true] {
            // At the same version, only the tag of a foreign row tells another content.
            if is_adopted && change == Foreign::ChangesTheContent {
                continue;
            }
            let engine = with_foreign(Some(7));
            let items = Items::new(accounts::<Shared>(&engine));
            if is_adopted {
                update(items.table(), 0).await.expect("an account");
            }
            let deposit = |account: &Account<Shared>| deposit(1)(account).map_err(Problem::from);
            let preconditions = Preconditions { if_match: IfMatch::None, if_none_match: IfNoneMatch::None };
            let shown = items.get("a-1", &preconditions).await.expect("an account");
            let etag = shown.headers().iter().find(|(name, _)| name.eq_ignore_ascii_case("etag")).expect("a tag");
            let tag = ItemVersion::from_etag(&etag.1).expect("a tag of this crate");
            assert_eq!(tag.incarnation.is_foreign(), !is_adopted);

            change.does(&engine);
            assert_eq!(status(items.change("a-1", &at(tag), deposit).await), 412);
            let delete = DeleteRequest { if_match: IfMatch::Tag(tag) };
            assert_eq!(status(items.delete("a-1", delete).await), 412);
            let current = self::tag(items.table()).await;
            assert_eq!(status(items.change("a-1", &at(current), deposit).await), 200);
            assert_eq!(status(items.change("a-1", &at(current), deposit).await), 412);
        }
    }
}
