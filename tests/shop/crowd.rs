//! One product takes hundreds of orders a second, where transactions allow some dozens.

use crowds::orders::{Outcome, Scene, Way, dollars, play, quiet};

const CLIENTS: usize = 20;

/// Orders of one product with the capacity of DynamoDB: a row takes 1,000 write units a second, and a transaction 20 ms.
fn orders(way: Way, each: usize) -> Outcome {
    let scene = Scene { clients: CLIENTS, orders: each, newcomers: false, losses: false };
    let outcome = play(way, scene, 1);
    let wanted = (CLIENTS * each) as u64;
    assert_eq!((outcome.acknowledged, outcome.held), (wanted, wanted), "{way:?}");
    assert_eq!(outcome.taken, i64::try_from(wanted).expect("few"), "{way:?}");
    outcome
}

/// Time is virtual, so a busy machine changes nothing.
#[test]
fn one_product_takes_ten_times_as_many_orders_as_by_transactions_for_less_than_half_the_price() {
    let (holds, transactions) = (orders(Way::Holds, 60), orders(Way::Transactions, 10));
    let pace = |outcome: &Outcome| f64::from(u32::try_from(outcome.held).expect("few")) / outcome.time.as_secs_f64();
    let units = |outcome: &Outcome| {
        let written: f64 = outcome.units.iter().map(|units| units.write).sum();
        written / f64::from(u32::try_from(outcome.held).expect("few"))
    };
    let [(fast, cheap), (slow, dear)] = [&holds, &transactions].map(|outcome| (pace(outcome), units(outcome)));
    println!("{fast:.0} orders a second for {cheap:.2} write units each, by transactions {slow:.0} for {dear:.2}");
    assert!(fast >= 10.0 * slow && fast >= 300.0, "{fast:.0} and {slow:.0} orders a second");
    assert!(cheap <= 3.2 && cheap <= dear / 2.0, "{cheap:.2} and {dear:.2} write units each");
}

/// An order of products that nobody else wants pays later for what it holds, when `settle-holds` comes by.
#[test]
fn an_order_of_quiet_products_costs_at_most_a_tenth_more_than_its_transaction_and_is_as_fast() {
    for lines in [1, 3, 20] {
        let [holds, transaction] = [Way::Holds, Way::Transactions].map(|way| quiet(way, lines));
        let [cheap, dear] = [("holds", &holds), ("transaction", &transaction)].map(|(way, outcome)| {
            let Outcome { requests, units: [products, orders], time, .. } = outcome;
            let (write, read) = (products.write + orders.write, products.read + orders.read);
            let dollars = dollars(write + 1.0, read); // The index takes one write of each order.
            println!("{lines} lines, {way}: {requests} requests, {write} + {read} units, ${dollars:.2}, {time:?}");
            dollars
        });
        assert!(cheap <= 1.1 * dear, "{lines} lines");
        assert!(holds.time <= transaction.time, "{lines} lines");
    }
}
