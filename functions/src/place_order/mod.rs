//! The function `place-order`: places and cancels orders together with their stock exactly once, shows and lists them.
//!
//! Reading order: [`FUNCTION`], its routes, the handler of one, then its decision in [`placement`].

pub mod placement;
pub mod requests;

use crate::function::{Environment, Event, Function, Route, handled, listed, routed};
use crate::operation::{Conditions, Operation, RETRY_AFTER};
use crate::order::{Line, ORDERS_TABLE, Order, Status};
use crate::product::{HELD, PRODUCTS_TABLE, Product, SHORT_LINES, naming_held_stock, products_in};
use axum::Router;
use fencepost::http::{IfMatch, Items, Problem, Request, Resource, Response};
use fencepost::{
    Attempt, Call, Error, Failure, Item, ItemVersion, Reads, Source, Store, Table, Timestamp, Version, Versioned,
    derived_id,
};
use placement::{ByUser, Effect, ORDER, Placement, decide_cancel, decide_place};
use requests::{CANCELLATION, IDS, LISTING, PAGE, PLACEMENT, parse_cancellation, parse_listing, parse_placement};

/// The function.
pub const FUNCTION: Function = Function {
    name: "place-order",
    event: Event::Http {
        tag: ("orders", "Orders that take every line from stock, or none."),
        routes: || listed(ROUTES),
        start: App::router,
    },
    variables: &[ORDERS_TABLE, PRODUCTS_TABLE],
};

/// The state of the function between requests.
#[derive(Debug)]
pub struct App {
    orders: Items<Order>,
    products: Table<Product>,
}

impl App {
    /// Creates the function on these tables, which must belong to one store. If the products are not
    /// [held for](Table::held_for) the orders, each order is a transaction.
    #[must_use]
    pub fn new(orders: Table<Order>, products: Table<Product>) -> Self {
        App { orders: Items::new(orders), products: products.remembering_items() }
    }

    /// The router of the function, which reads this environment.
    pub fn router(store: &Store, environment: &Environment) -> Result<Router, Source> {
        let orders = store.table(ORDERS_TABLE.required(environment)?);
        Ok(routed(App::new(orders, products_in(store, environment)?), ROUTES))
    }

    fn now(&self) -> Timestamp {
        self.products.store().now()
    }

    async fn order(&self, id: &str, call: &Call) -> Result<Option<Versioned<Order>>, Failure> {
        self.orders.table().in_call(call).get(id).await
    }

    /// Adds the products of these lines to the reads, in the order of the lines.
    fn products_of(&self, lines: &[Line], reads: &mut Reads) -> Vec<Item<Product>> {
        let product = |(index, line): (usize, &Line)| {
            reads.remembered(format!("product {index}"), &self.products, line.product_id.as_str())
        };
        lines.iter().enumerate().map(product).collect()
    }
}

const ROUTES: &[Route<App>] = &[
    handled!(
        place_order,
        Operation::changes_once("POST /orders", "Takes every line from stock, or none.")
            .described(
                "The order id is derived from the caller, `userId` and the key, so an order's key never expires. A repeat \
                 is answered with the first body, also after a cancellation."
            )
            .conditions(Conditions::CreateByKey)
            .takes(PLACEMENT)
            .creates(ORDER)
            .refuses(
                &["insufficient_stock", "product_not_found", HELD.0],
                "some lines are short (`lines` names all of them), some products are missing (`products`), or some stock is \
                 held for orders that are not decided yet",
                &[("lines?", SHORT_LINES), ("products?", IDS), RETRY_AFTER]
            )
    ),
    handled!(
        list_orders,
        Operation::reads("GET /orders", "Lists the orders of a user, newest first.")
            .described(
                "An index answers, and it may lag behind the orders by some seconds. A page may have fewer orders than \
                 `limit`, or none, although another one follows: only a page without `cursor` is the last one."
            )
            .conditions(Conditions::None)
            .parameters(LISTING)
            .shows(PAGE)
    ),
    handled!(
        get_order,
        Operation::reads("GET /orders/{orderId}", "Shows an order.").shows(ORDER).missing(Order::NOT_FOUND)
    ),
    handled!(
        cancel_order,
        Operation::changes(
            "POST /orders/{orderId}/cancellation",
            "Cancels an order and puts its stock back once. It can be repeated."
        )
        .conditions(Conditions::Change)
        .takes(CANCELLATION)
        .shows(ORDER)
        .missing(Order::NOT_FOUND)
        .refuses(
            &["product_not_found", "stock_limit_reached"],
            "a product is gone, or its stock would pass 10^15; nothing was changed",
            &[("products?", IDS)]
        )
    ),
];

/// Places an order.
pub async fn place_order(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    let key = request.required_idempotency_key()?;
    request.if_absent()?; // `*` has no effect: a repeat of the key gets its first answer
    let placement = parse_placement(request)?;
    // The id is derived from caller, user and key. So a second order of the same request collides with the first.
    let id = derived_id(&["order", request.known_caller()?, &placement.user_id, key]);
    place(app, &id, &placement, call).await
}

/// Lists the orders of a user, newest first. The index may lag behind the orders by some seconds.
pub async fn list_orders(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    let listing = parse_listing(request)?;
    let orders = app.orders.table().in_call(call).query_index(ByUser, listing.user_id.as_str());
    let query = orders.descending().limit(listing.limit).after(listing.cursor.as_deref());
    Items::list("orders", query).await
}

/// Shows an order.
pub async fn get_order(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    app.orders.in_call(call).get(&request.id("orderId")?, &request.read_preconditions()?).await
}

/// Cancels an order. A second cancellation changes nothing.
pub async fn cancel_order(app: &App, request: &Request, call: &Call) -> Result<Response, Problem> {
    let id = request.id("orderId")?;
    request.refuse_idempotency_key()?;
    let if_match = request.if_match()?;
    parse_cancellation(request)?;
    cancel(app, id.as_str(), if_match, call).await
}

/// Places the order with this id. A repeat gets the order in the state in which it was placed.
async fn place(app: &App, id: &str, placement: &Placement, call: &Call) -> Result<Response, Problem> {
    let mut reads = Reads::new();
    let order = reads.later("order", app.orders.table(), id);
    let products = app.products_of(&placement.lines, &mut reads);
    let store = app.products.store().in_call(call);
    let placed = store.transact_with_retry(reads, |attempt| {
        if let Some(stored) = attempt.get(order)? {
            return answer_again(id, &stored, placement).map_err(Error::Refused);
        }
        let decided = decide_place(placement, &values(attempt, &products)?, app.now());
        let effect = decided.map_err(|refusal| Error::Refused(refusal.into()))?;
        add_all(attempt, &products, &effect.products)?;
        let version = attempt.version_after_put(order)?;
        let placed_version = (version != FIRST).then_some(version.get());
        let value = Order { placed_version, ..effect.order };
        let at = attempt.put_if_absent(order, &value)?;
        Ok(Items::created(id, &Versioned { value, at }))
    });
    match placed.await {
        Ok(response) => Ok(response),
        // The order was not read. A copy of this request may have placed it before the stock was read. If there is no
        // order now, there was none then.
        Err(Error::Refused(problem)) => match app.order(id, call).await.map_err(Problem::from_keyed)? {
            Some(stored) => answer_again(id, &stored, placement),
            None => Err(problem),
        },
        Err(Error::Failed(failure)) => Err(naming_held_stock(Problem::from_keyed(failure))),
    }
}

/// The version of an order on a key that was free. If an attempt to place it was burned before, its version is higher.
const FIRST: Version = Version::ABSENT.next();

/// Returns the first answer again, even after the order has changed.
fn answer_again(id: &str, stored: &Versioned<Order>, placement: &Placement) -> Result<Response, Problem> {
    if !stored.value.is_of(placement) {
        return Err(Problem::key_reused());
    }
    let version = stored.value.placed_version.and_then(Version::new).unwrap_or(FIRST);
    let at = ItemVersion { version, incarnation: stored.at.incarnation };
    Ok(Items::created(id, &Versioned { value: stored.value.as_placed(), at }).replayed())
}

/// Cancels the order and puts its stock back. An order that is already cancelled stays as it is.
async fn cancel(app: &App, id: &str, if_match: IfMatch, call: &Call) -> Result<Response, Problem> {
    let seen = app.order(id, call).await?.ok_or_else(Order::not_found)?;
    if let Some(response) = cancelled_already(id, &seen, if_match)? {
        return Ok(response);
    }
    let mut reads = Reads::new();
    let order = reads.item("order", app.orders.table(), id);
    let products = app.products_of(&seen.value.lines, &mut reads);
    let store = app.products.store().in_call(call);
    let cancelled = store.transact_with_retry(reads, |attempt| {
        let current = attempt.get(order)?.ok_or_else(|| Error::Refused(Order::not_found()))?;
        if_match.check(current.at).map_err(Error::Refused)?;
        let decided = decide_cancel(&current.value, &values(attempt, &products)?, app.now());
        let decided = decided.map_err(|refusal| Error::Refused(refusal.into()))?;
        let Some(Effect { order: next, products: changed }) = decided else { return Ok(Items::ok(id, &current)) };
        add_all(attempt, &products, &changed)?;
        let at = attempt.update_at(order, &next)?;
        Ok(Items::ok(id, &Versioned { value: next, at }))
    });
    match cancelled.await {
        Ok(response) => Ok(response),
        // As in `place`, another cancellation may have come between the reads.
        Err(Error::Refused(problem)) => {
            let now = app.order(id, call).await?.ok_or_else(Order::not_found)?;
            cancelled_already(id, &now, if_match)?.ok_or(problem)
        }
        Err(Error::Failed(failure)) => Err(failure.into()),
    }
}

/// The response for a cancelled order, because a cancellation is final. `None` if the order is not cancelled.
fn cancelled_already(id: &str, order: &Versioned<Order>, if_match: IfMatch) -> Result<Option<Response>, Problem> {
    if_match.check(order.at)?;
    Ok((order.value.status == Status::Cancelled).then(|| Items::ok(id, order)))
}

/// The observed values of these products.
fn values(attempt: &Attempt, products: &[Item<Product>]) -> Result<Vec<Option<Product>>, Failure> {
    products.iter().map(|item| Ok(attempt.get(*item)?.map(|product| product.value))).collect()
}

/// Adds a step for each product, from its observed stock to its new one. The amount is that of the order, whatever the stock
/// was. So the step demands no version, even of a product that is only remembered.
fn add_all(attempt: &mut Attempt, items: &[Item<Product>], products: &[Product]) -> Result<(), Failure> {
    for (item, next) in items.iter().zip(products) {
        if let Some(current) = attempt.get(*item)? {
            let by = next.stock - current.value.stock;
            attempt.edit_blind(*item, &current.value.edit(by, next.updated_at))?;
        }
    }
    Ok(())
}
