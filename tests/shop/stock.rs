//! The rule that two functions have in common without knowing each other.

use fencepost::Record;
use serde_json::json;

const MOST: i64 = 1_000_000_000_000_000;

#[test]
fn inventory_and_place_order_give_the_same_stock_the_same_status() {
    assert_eq!(functions::inventory::product::MAX_STOCK, MOST);
    assert_eq!(functions::place_order::stock::MAX_STOCK, MOST);
    let numbers = [0, 1, 2, 9, 10, 11, MOST - 1, MOST];
    for (stock, low_stock_at) in numbers.iter().flat_map(|stock| numbers.map(|low| (*stock, low))) {
        let one = functions::inventory::product::status_of(stock, low_stock_at);
        let other = functions::place_order::stock::status_of(stock, low_stock_at);
        assert_eq!(json!(one), json!(other), "{stock} of {low_stock_at}");
    }
}

#[test]
fn inventory_and_place_order_remember_the_same_number_of_writes_of_a_product() {
    type One = functions::inventory::product::Product;
    type Other = functions::place_order::stock::Product;
    assert_eq!(One::REMEMBERED_WRITES, Other::REMEMBERED_WRITES);
    assert_eq!(One::ADD_WINDOW, Other::ADD_WINDOW);
}
