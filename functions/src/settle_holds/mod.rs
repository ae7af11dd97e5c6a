//! The function `settle-holds`: gives back stock that is held for orders which never came.
//!
//! A hold is settled by the next order that needs what it holds. This function does it for products that nobody orders.

use crate::function::{Environment, Event, Function, task};
use crate::order::ORDERS_TABLE;
use crate::product::{PRODUCTS_TABLE, Product, products_in};
use fencepost::lambda::{Done, Outcome};
use fencepost::{Call, Source, Store, Table};

/// The function.
pub const FUNCTION: Function = Function {
    name: "settle-holds",
    event: Event::Schedule {
        work: "Gives back stock that is held for orders which never came, of products that nobody orders.",
        start: |store, environment| {
            Ok(task(App::from_env(store, environment)?, |app, call| Box::pin(settle(app, call))))
        },
    },
    variables: &[PRODUCTS_TABLE, ORDERS_TABLE],
};

/// The state of the function between its runs.
#[derive(Debug)]
pub struct App {
    products: Table<Product>,
}

impl App {
    /// Creates the function from its environment.
    pub fn from_env(store: &Store, environment: &Environment) -> Result<Self, Source> {
        Ok(App { products: products_in(store, environment)? })
    }
}

/// Settles the holds of all products. What it leaves, for example because a table is throttled, is there for the next run.
pub async fn settle(app: &App, call: &Call) -> Outcome {
    let swept = app.products.in_call(call).settle_all().await?;
    let key = format!("{} products settled, {} left", swept.settled, swept.left);
    Ok(Done { key, outcome: if swept.left == 0 { "settled" } else { "left" } })
}
