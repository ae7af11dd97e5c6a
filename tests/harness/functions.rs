//! The functions as the tests set them up, their routes, and their permissions in template.yaml compared with their
//! actions. Functions with a table in common stand together.

use super::clock::{Clock, TEN_O_CLOCK};
use super::engine::{TEMPLATE, Use};
use aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use axum::Router;
use fencepost::Store;
use fencepost::lambda::respond;
use fencepost::lease::Leases;
use functions::function::{Environment, Event, Function};
use functions::operation::Operation;
use lambda_runtime::LambdaEvent;
use std::cell::Cell;
use std::collections::BTreeSet;
use tokio::time::Instant;

/// An event of API Gateway with Lambda's context of the invocation.
pub type Invocation = LambdaEvent<ApiGatewayV2httpRequest>;

/// Functions with tables in common.
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

    /// Those of them that have routes.
    fn together(&self) -> &Together;

    /// The answer of the function with the path of the event.
    fn answer(&self, event: Invocation) -> impl Future<Output = ApiGatewayV2httpResponse> {
        self.together().answer(event)
    }
}

pub const DEVICES: &str = "Devices";
pub const RECORDS: &str = "IdempotencyRecords";
pub const PRODUCTS: &str = "Products";
pub const ORDERS: &str = "Orders";
pub const MAPPINGS: &str = "HostToCellMapping";
pub const LEASES: &str = "Leases";
pub const CHILDREN: &str = "Children";

/// Functions with routes, each with the environment of template.yaml.
pub struct Together(Vec<(&'static Function, Router)>);

impl Together {
    /// Those of these functions that have routes.
    fn of(names: &[&'static str], store_of: impl Fn(&'static str) -> Store) -> Self {
        let named = functions::ALL.iter().filter(|function| names.contains(&function.name));
        let start = |function: &'static Function| {
            let Event::Http { start, .. } = &function.event else { return None };
            let started = start(&store_of(function.name), &environment_of(function.name));
            Some((function, started.expect("what template.yaml sets is what it reads")))
        };
        Together(named.filter_map(start).collect())
    }

    /// The answer of the function that has the beginning of the event's path. The last one has all others.
    async fn answer(&self, event: Invocation) -> ApiGatewayV2httpResponse {
        let begin = |path: &str| path.split('/').nth(1).unwrap_or_default().to_owned();
        let path = begin(event.payload.raw_path.as_deref().unwrap_or_default());
        let begins_so = |function: &Function| {
            let paths = function.routes().into_iter().filter_map(|route| route.at.split_once(' '));
            paths.into_iter().any(|(_, own)| begin(own) == path)
        };
        let meant = self.0.iter().find(|(function, _)| begins_so(function)).or(self.0.last());
        Box::pin(respond(&meant.expect("a function").1, event)).await
    }
}

/// The environment of a function in template.yaml.
pub fn environment_of(function: &'static str) -> Box<Environment> {
    let declared = TEMPLATE.functions.iter().find(|declared| declared.name == function);
    let variables = &declared.unwrap_or_else(|| panic!("template.yaml has no {function}")).environment;
    Box::new(|name| variables.get(name).cloned())
}

/// `device-state`. A config may change every 300 s.
pub struct Devices(Together);

impl Functions for Devices {
    const NAMES: &'static [&'static str] = &["device-state"];
    const TABLES: &'static [(&'static str, &'static str)] = &[(DEVICES, "deviceId"), (RECORDS, "recordId")];

    fn on(store_of: impl Fn(&'static str) -> Store) -> Self {
        Devices(Together::of(Self::NAMES, store_of))
    }

    fn together(&self) -> &Together {
        &self.0
    }
}

/// `inventory` and `place-order`, and `settle-holds`, which has a schedule instead of a path.
pub struct Shop {
    shop: Together,
    pub holds: functions::settle_holds::App,
}

impl Functions for Shop {
    const NAMES: &'static [&'static str] = &["inventory", "place-order", "settle-holds"];
    const TABLES: &'static [(&'static str, &'static str)] =
        &[(PRODUCTS, "productId"), (ORDERS, "orderId"), (RECORDS, "recordId")];

    fn on(store_of: impl Fn(&'static str) -> Store) -> Self {
        let holds = functions::settle_holds::App::from_env(&store_of("settle-holds"), &environment_of("settle-holds"));
        let holds = holds.expect("what template.yaml sets is what it reads");
        Shop { shop: Together::of(Self::NAMES, store_of), holds }
    }

    fn clock() -> Clock {
        Clock::ticking(TEN_O_CLOCK + fastrand::u64(..1_000_000))
    }

    fn together(&self) -> &Together {
        &self.shop
    }
}

/// `host-mapping` and `delete-mapping`, which has a queue instead of a path.
pub struct Mappings {
    hosts: Together,
    pub deletes: functions::delete_mapping::App,
}

impl Functions for Mappings {
    const NAMES: &'static [&'static str] = &["host-mapping", "delete-mapping"];
    const TABLES: &'static [(&'static str, &'static str)] = &[(MAPPINGS, "hostIp")];

    fn on(store_of: impl Fn(&'static str) -> Store) -> Self {
        let deletes = functions::delete_mapping::App::new(store_of("delete-mapping").lww_table(MAPPINGS));
        Mappings { hosts: Together::of(Self::NAMES, store_of), deletes }
    }

    /// 11:00.
    fn clock() -> Clock {
        Clock::standing(TEN_O_CLOCK + 3_600_000)
    }

    fn together(&self) -> &Together {
        &self.hosts
    }
}

/// `lease` and `ensure-child`. They need paused time.
pub struct Leasing {
    functions: Together,
    /// The same table of leases, for tests without a route.
    pub leases: Leases,
}

impl Functions for Leasing {
    const NAMES: &'static [&'static str] = &["lease", "ensure-child"];
    const TABLES: &'static [(&'static str, &'static str)] = &[(LEASES, "leaseKey"), (CHILDREN, "childId")];

    fn on(store_of: impl Fn(&'static str) -> Store) -> Self {
        let leases = store_of("lease").leases(LEASES);
        Leasing { functions: Together::of(Self::NAMES, store_of), leases }
    }

    fn clock() -> Clock {
        Clock::running_since(Instant::now())
    }

    fn together(&self) -> &Together {
        &self.functions
    }
}

/// One function with routes by itself.
pub struct Alone(Together);

thread_local! {
    static ALONE: Cell<Option<&'static Function>> = const { Cell::new(None) };
}

impl Alone {
    /// The function meant by `Alone` on this thread from now on.
    pub fn is(function: &'static Function) {
        ALONE.set(Some(function));
    }

    fn function() -> &'static Function {
        ALONE.get().expect("Alone::is was called")
    }
}

/// The functions that are in no other group of this file.
pub fn alone() -> impl Iterator<Item = &'static Function> {
    let grouped = [Devices::NAMES, Shop::NAMES, Mappings::NAMES, Leasing::NAMES].concat();
    functions::ALL.iter().filter(move |function| !grouped.contains(&function.name))
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
        Alone(Together::of(Self::names(), store_of))
    }

    fn together(&self) -> &Together {
        &self.0
    }
}

/// The operations allowed to a function by the template. Outside AWS a table is called by its logical id.
pub fn allowed(name: &str) -> BTreeSet<Use> {
    let allowed_to = |function: &dev::template::Function| {
        let of_dynamodb = function.permissions.iter().filter_map(|permission| {
            let operation = permission.action.strip_prefix("dynamodb:")?.to_owned();
            Some(Use { operation, table: permission.resource.clone() })
        });
        of_dynamodb.collect::<BTreeSet<_>>()
    };
    TEMPLATE.functions.iter().filter(|function| function.name == name).flat_map(allowed_to).collect()
}

/// Each action that was taken without permission.
pub fn missing(name: &str, allowed: &BTreeSet<Use>, used: &BTreeSet<Use>) -> Vec<String> {
    used.difference(allowed)
        .map(|Use { operation, table }| {
            format!("template.yaml: {name} does dynamodb:{operation} on {table}, which its role does not allow")
        })
        .collect()
}

/// Each permission that was never used.
pub fn unused(name: &str, allowed: &BTreeSet<Use>, used: &BTreeSet<Use>) -> Vec<String> {
    allowed
        .difference(used)
        .map(|Use { operation, table }| {
            format!(
                "template.yaml: {name} was never seen to do dynamodb:{operation} on {table}; drive the state that needs it \
                 (a key's repeat, its expired record, a keyed change that changes nothing), or take it out of its role"
            )
        })
        .collect()
}

/// Fails on an action that the template allows to none of these functions.
pub fn assert_allowed(names: &[&str], used: &BTreeSet<Use>) {
    let allowed = names.iter().flat_map(|name| allowed(name)).collect();
    let complaints = missing(&names.join(" or "), &allowed, used);
    assert!(complaints.is_empty(), "{complaints:#?}");
}

/// Every route of every function.
pub fn all_routes() -> impl Iterator<Item = Operation> {
    functions::ALL.iter().flat_map(functions::function::Function::routes)
}
