//! A key is never ignored: each changing route honours `Idempotency-Key` or refuses it, as it says.

use super::files::Complaints;
use crate::harness::events::sample;
use crate::harness::functions::Alone;
use crate::harness::world::World;
use functions::operation::IdempotencyKey;

#[tokio::test]
async fn each_changing_route_honours_an_idempotency_key_or_refuses_it() {
    let mut found = Complaints::default();
    for function in functions::ALL {
        Alone::is(function);
        for route in function.routes() {
            let expected = match route.key {
                IdempotencyKey::Honoured => "invalid_idempotency_key",
                IdempotencyKey::Refused => "idempotency_key_unsupported",
                IdempotencyKey::Ignored => {
                    found.unless(route.at.starts_with("GET "), || format!("{}: say what becomes of a key", route.at));
                    continue;
                }
            };
            // A malformed key: a route that honours keys reads it, and one that does not refuses any. No table is asked.
            let world = World::<Alone>::new();
            let answer = world.send(&sample(route.at, "192.0.2.1").header("idempotency-key", "two words")).await;
            assert_eq!(world.engine.take_counts(), (0, 0), "a refused key costs no request");
            let code = answer.code();
            found.unless(code == expected, || format!("{}: a key is answered `{code}`, not `{expected}`", route.at));
        }
    }
    found.report();
}
