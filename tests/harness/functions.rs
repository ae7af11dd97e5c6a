//! The functions as the tests set them up: those that share tables stand together.

use super::clock::{Clock, TEN_O_CLOCK};
use super::permissions::TEMPLATE;
use aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use fencepost::lambda::respond;
use fencepost::{Leases, Store};
use functions::function::{Environment, Event, Function, Http};
use lambda_runtime::LambdaEvent;
use std::cell::Cell;
use std::time::Duration;
use tokio::time::Instant;

/// An event of API Gateway with what Lambda says of its invocation.
pub type Invocation = LambdaEvent<ApiGatewayV2httpRequest>;

/// Functions on tables that they share.
pub trait Functions: Sized {
    /// As template.yaml calls them.
    const NAMES: &'static [&'static str];
    /// Their tables, each with its partition key.
    const TABLES: &'static [(&'static str, &'static str)];

    fn names() -> &'static [&'static str] {
        Self::NAMES
    }

    fn tables() -> &'static [(&'static str, &'static str)] {
        Self::TABLES
    }

    /// Newly started, each on the store of its name.
    fn on(store_of: impl Fn(&'static str) -> Store) -> Self;

    /// The clock under which they start.
    fn clock() -> Clock {
        Clock::standing(TEN_O_CLOCK)
    }

    /// What the function that has the path answers.
    fn answer(&self, event: Invocation) -> impl Future<Output = ApiGatewayV2httpResponse>;
}

pub const DEVICES: &str = "Devices";
pub const RECORDS: &str = "IdempotencyRecords";
pub const PRODUCTS: &str = "Products";
pub const ORDERS: &str = "Orders";
pub const MAPPINGS: &str = "HostToCellMapping";
pub const LEASES: &str = "Leases";
pub const CHILDREN: &str = "Children";

fn path(event: &Invocation) -> &str {
    event.payload.raw_path.as_deref().unwrap_or_default()
}

/// `device-state`. A config may change every 300 s.
pub struct Devices(functions::device_state::App);

impl Functions for Devices {
    const NAMES: &'static [&'static str] = &["device-state"];
    const TABLES: &'static [(&'static str, &'static str)] = &[(DEVICES, "deviceId"), (RECORDS, "recordId")];

    fn on(store_of: impl Fn(&'static str) -> Store) -> Self {
        let store = store_of("device-state");
        Devices(functions::device_state::App::new(
            store.table(DEVICES),
            store.idempotency(RECORDS),
            Duration::from_mins(5),
        ))
    }

    async fn answer(&self, event: Invocation) -> ApiGatewayV2httpResponse {
        Box::pin(respond(&self.0, &functions::device_state::handle, event)).await
    }
}

/// `inventory` and `place-order`.
pub struct Shop {
    inventory: functions::inventory::App,
    orders: functions::place_order::App,
}

impl Functions for Shop {
    const NAMES: &'static [&'static str] = &["inventory", "place-order"];
    const TABLES: &'static [(&'static str, &'static str)] =
        &[(PRODUCTS, "productId"), (ORDERS, "orderId"), (RECORDS, "recordId")];

    fn on(store_of: impl Fn(&'static str) -> Store) -> Self {
        let (products, orders) = (store_of("inventory"), store_of("place-order"));
        Shop {
            inventory: functions::inventory::App::new(products.table(PRODUCTS), products.idempotency(RECORDS)),
            orders: functions::place_order::App::new(orders.table(ORDERS), orders.table(PRODUCTS)),
        }
    }

    fn clock() -> Clock {
        Clock::ticking(TEN_O_CLOCK + fastrand::u64(..1_000_000))
    }

    async fn answer(&self, event: Invocation) -> ApiGatewayV2httpResponse {
        if path(&event).starts_with("/products") {
            Box::pin(respond(&self.inventory, &functions::inventory::handle, event)).await
        } else {
            Box::pin(respond(&self.orders, &functions::place_order::handle, event)).await
        }
    }
}

/// `host-mapping` and `delete-mapping`, which has a queue instead of a path.
pub struct Mappings {
    hosts: functions::host_mapping::App,
    pub deletes: functions::delete_mapping::App,
}

impl Functions for Mappings {
    const NAMES: &'static [&'static str] = &["host-mapping", "delete-mapping"];
    const TABLES: &'static [(&'static str, &'static str)] = &[(MAPPINGS, "hostIp")];

    fn on(store_of: impl Fn(&'static str) -> Store) -> Self {
        let hosts = functions::host_mapping::App::new(store_of("host-mapping").lww_table(MAPPINGS));
        let deletes = functions::delete_mapping::App::new(store_of("delete-mapping").lww_table(MAPPINGS));
        Mappings { hosts, deletes }
    }

    /// 11:00.
    fn clock() -> Clock {
        Clock::standing(TEN_O_CLOCK + 3_600_000)
    }

    async fn answer(&self, event: Invocation) -> ApiGatewayV2httpResponse {
        Box::pin(respond(&self.hosts, &functions::host_mapping::handle, event)).await
    }
}

/// `lease` and `ensure-child`. They need paused time.
pub struct Leasing {
    lease: functions::lease::App,
    children: functions::ensure_child::App,
    /// The same table of leases, for what has no route.
    pub leases: Leases,
}

impl Functions for Leasing {
    const NAMES: &'static [&'static str] = &["lease", "ensure-child"];
    const TABLES: &'static [(&'static str, &'static str)] = &[(LEASES, "leaseKey"), (CHILDREN, "childId")];

    fn on(store_of: impl Fn(&'static str) -> Store) -> Self {
        let (leases, children) = (store_of("lease").leases(LEASES), store_of("ensure-child"));
        Leasing {
            lease: functions::lease::App::new(leases.clone()),
            children: functions::ensure_child::App::new(children.table(CHILDREN), children.leases(LEASES)),
            leases,
        }
    }

    fn clock() -> Clock {
        Clock::running_since(Instant::now())
    }

    async fn answer(&self, event: Invocation) -> ApiGatewayV2httpResponse {
        if path(&event).starts_with("/leases") {
            Box::pin(respond(&self.lease, &functions::lease::handle, event)).await
        } else {
            Box::pin(respond(&self.children, &functions::ensure_child::handle, event)).await
        }
    }
}

/// One function with routes, as it says itself that it starts, on the tables of template.yaml.
pub struct Alone(Box<dyn Http>);

thread_local! {
    static ALONE: Cell<Option<&'static Function>> = const { Cell::new(None) };
}

impl Alone {
    /// The function that this thread means by `Alone` from now on.
    pub fn is(function: &'static Function) {
        ALONE.set(Some(function));
    }

    fn function() -> &'static Function {
        ALONE.get().expect("Alone::is was called")
    }
}

/// Those that no other group of this file has.
pub fn alone() -> impl Iterator<Item = &'static Function> {
    let grouped = [Devices::NAMES, Shop::NAMES, Mappings::NAMES, Leasing::NAMES].concat();
    functions::ALL.iter().filter(move |function| !grouped.contains(&function.name))
}

/// The environment of a function in template.yaml.
pub fn environment_of(function: &'static str) -> Box<Environment> {
    let declared = TEMPLATE.functions.iter().find(|declared| declared.name == function);
    let variables = &declared.unwrap_or_else(|| panic!("template.yaml has no {function}")).environment;
    Box::new(|name| variables.get(name).cloned())
}

impl Functions for Alone {
    const NAMES: &'static [&'static str] = &[];
    const TABLES: &'static [(&'static str, &'static str)] = &[];

    fn names() -> &'static [&'static str] {
        std::slice::from_ref(&Self::function().name)
    }

    fn tables() -> &'static [(&'static str, &'static str)] {
        let environment = environment_of(Self::function().name);
        let named: Vec<_> =
            Self::function().variables.iter().filter_map(|variable| environment(variable.name)).collect();
        let tables = TEMPLATE.tables.iter().filter(|table| named.contains(&table.name));
        tables.map(|table| (table.name.as_str(), table.key[0].name.as_str())).collect::<Vec<_>>().leak()
    }

    fn on(store_of: impl Fn(&'static str) -> Store) -> Self {
        let function = Self::function();
        let Event::Http { start, .. } = &function.event else { panic!("{} has no routes", function.name) };
        Alone(start(&store_of(function.name), &environment_of(function.name)).expect("what template.yaml says of it"))
    }

    async fn answer(&self, event: Invocation) -> ApiGatewayV2httpResponse {
        let app: &dyn Http = &*self.0;
        respond(&app, &async |app: &&dyn Http, request, call| app.answer(request, call).await, event).await
    }
}
