//! `FUNCTION` of each function, against its binary, the template, the events and the pages. Each failure names the place and the
//! gap.

use super::files::{
    Complaints, binaries, events, files, folder_of, is_variable, read, relative, root, sources, strings, template,
};
use crate::harness::engine::Engine;
use crate::harness::functions::{all_routes, environment_of};
use dev::template::TIMEOUT_VARIABLE;
use fencepost::Store;
use functions::function::{Environment, Event};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

#[test]
fn every_function_is_listed_has_a_binary_and_is_in_the_template() {
    let template = template();
    let listed: BTreeSet<_> = functions::ALL.iter().map(|function| function.name.to_owned()).collect();
    let deployed: BTreeSet<_> = template.functions.iter().map(|function| function.name.clone()).collect();
    let mut missing = Complaints::default();
    missing.unless(deployed.len() == template.functions.len(), || {
        "template.yaml: two functions have one BuildProperties.Binary".to_owned()
    });
    for (there, source) in [(binaries(), "functions/src/bin"), (deployed, "template.yaml")] {
        missing
            .difference(&there, &listed, |name| format!("functions/src/lib.rs: {name} is in {source}, add it to ALL"));
        missing.difference(&listed, &there, |name| {
            format!("{source}: {name} is missing, which functions/src/lib.rs lists")
        });
    }
    missing.report();
}

#[test]
fn every_route_of_a_function_is_in_the_template_and_has_an_event() {
    let (template, events) = (template(), events());
    let mut missing = Complaints::default();
    for function in functions::ALL {
        let (name, folder) = (function.name, folder_of(function.name));
        let known = template.functions.iter().find(|known| known.name == name);
        let declared = known.into_iter().flat_map(|known| &known.routes);
        let declared: BTreeSet<_> = declared.map(|route| format!("{} {}", route.method, route.path)).collect();
        let has_queue = known.is_some_and(|known| !known.queues.is_empty());
        let has_schedule = known.is_some_and(|known| !known.schedules.is_empty());
        let routes: BTreeSet<_> = function.routes().iter().map(|route| route.at.to_owned()).collect();
        missing.unless(routes.is_empty() == (has_queue || has_schedule), || {
            format!("template.yaml: {name} needs events of type HttpApi for its routes, or one of type SQS or Schedule")
        });
        missing
            .difference(&routes, &declared, |route| format!("template.yaml: {name} has no HttpApi event for {route}"));
        missing.difference(&declared, &routes, |route| {
            format!("{folder}: template.yaml sends it {route}, which is not in its FUNCTION")
        });
        for route in &routes {
            let samples = events.iter().filter(|(_, event)| event["routeKey"] == route.as_str()).count();
            let has_no_body = ["GET ", "DELETE "].iter().any(|method| route.starts_with(method));
            missing.unless(samples == 1 || samples == 0 && has_no_body, || {
                format!("events/: {samples} events have the routeKey {route}; there must be one, named {name}-….json")
            });
        }
        let batch = format!("events/{name}-batch.json");
        missing.unless(!has_queue || events.contains_key(&batch), || {
            format!("{batch} is missing: `cargo dev` prints how to send it")
        });
    }
    let all: BTreeSet<_> = all_routes().map(|route| route.at).collect();
    for (file, event) in &events {
        let known = event["routeKey"].as_str().is_none_or(|route| all.contains(route));
        missing.unless(known, || format!("{file}: no function has the route {}", event["routeKey"]));
    }
    missing.report();
}

#[test]
fn a_function_reads_the_variables_that_it_declares_and_the_template_sets_them_and_tells_its_timeout() {
    let mut missing = Complaints::default();
    // The crate reads these on behalf of every function.
    let crates: String = sources("shared/src/lambda").iter().map(|source| source.code.clone()).collect();
    let of_all: BTreeSet<_> = strings(&crates).filter(|text| is_variable(text)).map(str::to_owned).collect();
    for function in functions::ALL {
        let folder = folder_of(function.name);
        let declared: BTreeSet<_> = function.variables.iter().map(|variable| variable.name.to_owned()).collect();
        let (read, environment) = (Rc::new(RefCell::new(BTreeSet::new())), environment_of(function.name));
        let noting: Box<Environment> = {
            let read = read.clone();
            Box::new(move |name| {
                read.borrow_mut().insert(name.to_owned());
                environment(name)
            })
        };
        let store = Store::new(&Engine::embedded(&[]).client());
        let started = match &function.event {
            Event::Http { start, .. } => start(&store, &noting).err(),
            Event::Sqs { start, .. } => start(&store, &noting).err(),
            Event::Schedule { start, .. } => start(&store, &noting).err(),
        };
        missing.unless(started.is_none(), || format!("template.yaml, {}: {started:?}", function.name));
        let read = read.take();
        missing.difference(&read, &declared, |variable| format!("{folder}: FUNCTION does not declare {variable}"));
        missing
            .difference(&declared, &read, |variable| format!("{folder}: it declares {variable} and does not read it"));
        let template = template();
        let of_template = template.functions.iter().find(|known| known.name == function.name);
        let told = of_template.and_then(|known| known.environment.get(TIMEOUT_VARIABLE));
        missing.unless(told == of_template.map(|known| known.timeout_seconds.to_string()).as_ref(), || {
            format!("template.yaml: set {TIMEOUT_VARIABLE} of {} to its Timeout", function.name)
        });
        let set: BTreeSet<_> = of_template.into_iter().flat_map(|known| known.environment.keys().cloned()).collect();
        missing.difference(&declared, &set, |variable| {
            format!("template.yaml: {} declares {variable}, which its Environment does not set", function.name)
        });
        missing.difference(&set, &declared.union(&of_all).cloned().collect(), |variable| {
            format!("{folder}: template.yaml sets {variable}, which FUNCTION does not declare")
        });
        for variable in function.variables.iter().filter(|variable| variable.default_seconds.is_none()) {
            let named = environment_of(function.name)(variable.name);
            missing.unless(template.tables.iter().any(|table| Some(&table.name) == named.as_ref()), || {
                format!("template.yaml: {} of {} must be `!Ref` of a table", variable.name, function.name)
            });
        }
    }
    missing.report();
}

#[test]
fn ttl_looks_where_the_crate_says_until_when_a_row_is_kept() {
    let template = template();
    let mut missing = Complaints::default();
    for table in &template.tables {
        // Leases keep the end of their rows in `purgeAt`, and values that expire by themselves in `expiresAt`.
        let expected = match table.name.as_str() {
            "Leases" => Some("purgeAt"),
            "IdempotencyRecords" => Some("expiresAt"),
            // They decide about the stock that is held for them.
            "Orders" => None,
            _ => Some("_purgeAt"),
        };
        missing.unless(table.ttl_attribute.as_deref() == expected, || {
            format!("template.yaml: the TTL attribute of {} has to be {expected:?}", table.name)
        });
    }
    missing.report();
}

#[test]
fn the_pages_name_only_files_that_exist() {
    let folders = [".ci/", ".github/", "deploy/", "dev/", "docs/", "events/", "functions/", "shared/", "tests/"];
    let mut missing = Complaints::default();
    for page in files(&root()).iter().filter(|path| path.extension().is_some_and(|extension| extension == "md")) {
        let page = relative(page);
        let text = read(&page);
        // Every second part of a text that is split at its backticks is code.
        for code in text.split('`').skip(1).step_by(2) {
            let is_path = folders.iter().any(|folder| code.starts_with(folder))
                && code.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte));
            let is_pattern = code.contains("NAME");
            missing.unless(!is_path || is_pattern || root().join(code).exists(), || {
                format!("{page}: it names {code}, which does not exist")
            });
        }
    }
    missing.report();
}
