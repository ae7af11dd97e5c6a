//! The items in the indexes of a table, and reads of them.

use super::messages::{
    Authored, ByAuthor, ByNumber, ByRank, Headline, Headlines, Keys, RankByNumber, all, all_numbers, engine, fill, key,
    message, place, table,
};
use fencepost::Sort;
use std::convert::Infallible;

#[tokio::test]
async fn an_index_shows_its_partition_in_its_own_order() {
    let engine = engine();
    let table = table(&engine);
    for (room, number, author, rank) in
        [("a", 1, "ann", 30), ("b", 1, "ann", 10), ("a", 2, "bob", 20), ("a", 3, "ann", 20)]
    {
        table.create(&key(room, number), &message(author, rank)).await.expect("a free key");
    }
    let places =
        |pages: Vec<fencepost::Page<_>>| pages.iter().flat_map(|page| page.items.iter().map(place)).collect::<Vec<_>>();
    let of_ann = all(table.query_index(ByAuthor, "ann").limit(2)).await.expect("pages");
    assert_eq!(places(of_ann), [("b".to_owned(), 1), ("a".to_owned(), 3), ("a".to_owned(), 1)]);
    let of_ann = all(table.query_index(ByAuthor, "ann").sort(Sort::between(15, 25))).await.expect("pages");
    assert_eq!(places(of_ann), [("a".to_owned(), 3)]);
    assert_eq!(all_numbers(table.query_index(ByRank, "a").descending()).await, [1, 2, 3].map(|n| [1, 3, 2][n - 1]));
}

#[tokio::test]
async fn only_a_global_index_is_read_eventually_consistent() {
    let engine = engine();
    let table = table(&engine);
    engine.take_log();
    all(table.query("a")).await.expect("pages");
    all(table.query_index(ByRank, "a")).await.expect("pages");
    all(table.query_index(ByAuthor, "a")).await.expect("pages");
    all(table.query_index(ByNumber, 1)).await.expect("pages");
    let log = engine.take_log();
    let consistent: Vec<_> = log.iter().map(|asked| asked.body["ConsistentRead"] == true).collect();
    assert_eq!(consistent, [true, true, false, false]);
}

#[tokio::test]
async fn an_index_without_all_attributes_shows_a_smaller_record() {
    let engine = engine();
    let table = table(&engine);
    fill(&table, "a", [1]).await;
    table
        .update_with_retry(&key("a", 1), |now| {
            Ok::<_, Infallible>(Some(super::messages::Message { rank: 7, ..now.clone() }))
        })
        .await
        .expect("it is there");
    let page = all(table.query_index(Headlines, "ann")).await.expect("pages").remove(0);
    let current = table.get(&key("a", 1)).await.expect("an answer").expect("a message");
    assert_eq!(page.items[0].value, Headline { author: "ann".to_owned(), rank: 7 });
    assert_eq!(page.items[0].at, Some(current.at), "the index has the version and the incarnation");
    let page = all(table.query_index(Keys, "ann")).await.expect("pages").remove(0);
    assert_eq!(page.items[0].value, Authored { author: "ann".to_owned() });
    assert_eq!((page.items[0].at, place(&page.items[0])), (None, ("a".to_owned(), 1)));
}

#[tokio::test]
async fn a_deleted_item_leaves_every_index() {
    let engine = engine();
    let table = table(&engine);
    fill(&table, "a", [1, 2, 3]).await;
    fill(&table, "b", [2]).await;
    table.delete(&key("a", 2)).await.expect("it was there");
    assert_eq!(all_numbers(table.query_index(ByRank, "a")).await, [3, 1]);
    assert_eq!(all_numbers(table.query_index(ByAuthor, "ann")).await, [3, 2, 1], "the 2 of another room");
    assert_eq!(all_numbers(table.query_index(Keys, "ann")).await, [1, 2, 3]);
    assert_eq!(all_numbers(table.query_index(Headlines, "ann")).await.len(), 3);
    let of_number = all(table.query_index(ByNumber, 2)).await.expect("pages");
    let rooms: Vec<_> = of_number.iter().flat_map(|page| page.items.iter().map(|item| place(item).0)).collect();
    assert_eq!(rooms, ["b"], "the tombstone is in the index and is not shown");
    let ranked = all(table.query_index(RankByNumber, 2)).await.expect("pages").remove(0);
    let [item] = &ranked.items[..] else { panic!("one item, not {ranked:?}") };
    assert_eq!((place(item).0.as_str(), item.value.rank, item.at), ("b", 98, None));
}
