//! Finds the route of a request.

use super::id::Id;
use super::message::Request;
use super::values::Ip;
use crate::http::problem::Problem;
use std::collections::BTreeMap;

/// The routes of a function: `"PATCH /devices/{deviceId}/state"` with the function's own name for it.
pub type Routes<R> = [(&'static str, R)];

/// The route of a request, and the values of its path parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MatchedRoute {
    template: &'static str,
    values: BTreeMap<String, String>,
}

impl MatchedRoute {
    /// The id in the path parameter `name`.
    ///
    /// # Errors
    /// `invalid_id`, with the field `path:<name>`.
    pub fn id(&self, name: &str) -> Result<Id, Problem> {
        Id::parse(self.text(name), &format!("path:{name}"))
    }

    /// The address in the path parameter `name`.
    ///
    /// # Errors
    /// `invalid_ip`, with the field `path:<name>`.
    pub fn ip(&self, name: &str) -> Result<Ip, Problem> {
        Ip::parse(self.text(name), &format!("path:{name}"))
    }

    /// The route as it is in the function's table of routes, like `GET /devices/{deviceId}`.
    #[must_use]
    pub fn template(&self) -> &'static str {
        self.template
    }

    /// The names and values, ordered by name.
    pub(super) fn values(&self) -> impl Iterator<Item = &str> {
        self.values.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()])
    }

    fn text(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }
}

impl Request {
    /// Finds the route of the request, and its path parameters.
    ///
    /// If the gateway has matched one of `routes`, that match counts. Otherwise (with `$default` or a development
    /// server), compares method and path with the templates.
    ///
    /// # Errors
    /// `no_such_route`; `method_not_allowed` if the path exists with other methods.
    pub fn route<R: Copy>(&self, routes: &Routes<R>) -> Result<(R, MatchedRoute), Problem> {
        let found = self.route_of_gateway(routes).map_or_else(|| self.route_of_path(routes), Ok);
        if let Ok((_, matched)) = &found {
            // A second search finds the same route.
            let _ = self.matched_route.set(matched.template);
        }
        found
    }

    fn route_of_path<R: Copy>(&self, routes: &Routes<R>) -> Result<(R, MatchedRoute), Problem> {
        let mut allowed = Vec::new();
        for (template, route) in routes {
            let Some((method, path)) = template.split_once(' ') else { continue };
            let Some(values) = match_path(path, &self.path) else { continue };
            if method == self.method {
                return Ok((*route, MatchedRoute { template, values }));
            }
            allowed.push(method);
        }
        if allowed.is_empty() {
            Err(Problem::no_such_route())
        } else {
            Err(Problem::method_not_allowed(allowed.join(", ")))
        }
    }

    fn route_of_gateway<R: Copy>(&self, routes: &Routes<R>) -> Option<(R, MatchedRoute)> {
        let key = self.route_key.as_deref()?;
        let (template, route) = routes.iter().find(|(template, _)| *template == key)?;
        let complete = names(template).all(|name| self.path_parameters.contains_key(name));
        complete.then(|| (*route, MatchedRoute { template, values: self.path_parameters.clone() }))
    }
}

/// The names of the path parameters of a template.
fn names(template: &str) -> impl Iterator<Item = &str> {
    template.split('/').filter_map(place)
}

/// The name of the path parameter in this segment, if it is one.
fn place(segment: &str) -> Option<&str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}

/// The values of the path parameters, if the path matches the template. Decodes nothing, because ids have no `%`.
fn match_path(template: &str, path: &str) -> Option<BTreeMap<String, String>> {
    let mut values = BTreeMap::new();
    let mut segments = path.split('/');
    for part in template.split('/') {
        let segment = segments.next()?;
        match place(part) {
            Some(name) => {
                values.insert(name.to_owned(), segment.to_owned());
            }
            None if part == segment => {}
            None => return None,
        }
    }
    segments.next().is_none().then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTES: &Routes<u8> =
        &[("PUT /devices/{deviceId}", 1), ("GET /devices/{deviceId}", 2), ("PATCH /devices/{deviceId}/state", 3)];

    fn route(method: &str, path: &str) -> Result<(u8, String), &'static str> {
        let request = Request { method: method.to_owned(), path: path.to_owned(), ..Request::default() };
        let (route, parameters) = request.route(ROUTES).map_err(|problem| problem.code())?;
        Ok((route, parameters.id("deviceId").map_err(|problem| problem.code())?.to_string()))
    }

    #[test]
    fn method_and_path_find_the_route_and_its_id() {
        assert_eq!(route("GET", "/devices/lamp-1"), Ok((2, "lamp-1".to_owned())));
        assert_eq!(route("PATCH", "/devices/lamp-1/state"), Ok((3, "lamp-1".to_owned())));
    }

    #[test]
    fn other_paths_and_methods_are_told_apart() {
        for path in ["/", "/devices", "/devices/a/b", "/devices/a/state/", "/Devices/a", "/devices/a/", ""] {
            assert_eq!(route("GET", path), Err("no_such_route"), "{path}");
        }
        assert_eq!(route("GET", "/devices/a/state"), Err("method_not_allowed"));
        let request = Request { method: "POST".to_owned(), path: "/devices/a".to_owned(), ..Request::default() };
        let response = request.route(ROUTES).expect_err("refused").into_response();
        assert!(response.headers().contains(&("allow".into(), "PUT, GET".to_owned())));
    }

    #[test]
    fn an_id_is_not_decoded_and_not_empty() {
        assert_eq!(route("GET", "/devices/"), Err("invalid_id"));
        assert_eq!(route("GET", "/devices/a%2Fb"), Err("invalid_id"));
        assert_eq!(route("PATCH", "/devices/../state"), Err("invalid_id"));
    }

    #[test]
    fn the_gateways_match_counts_where_it_names_a_route() {
        let mut request = Request {
            method: "GET".to_owned(),
            path: "/a-stage/devices/lamp-1".to_owned(),
            route_key: Some("GET /devices/{deviceId}".to_owned()),
            path_parameters: BTreeMap::from([("deviceId".to_owned(), "lamp-1".to_owned())]),
            ..Request::default()
        };
        assert_eq!(request.route(ROUTES).map(|(route, _)| route).ok(), Some(2));
        request.route_key = Some("$default".to_owned());
        assert!(request.route(ROUTES).is_err());
    }

    #[test]
    fn the_log_learns_which_route_was_found() {
        let mut request = Request {
            method: "PATCH".to_owned(),
            path: "/devices/lamp-1/state".to_owned(),
            route_key: Some("$default".to_owned()),
            ..Request::default()
        };
        assert!(request.route(ROUTES).is_ok());
        assert_eq!(request.matched_route.get(), Some(&"PATCH /devices/{deviceId}/state"));
        request = Request { path: "/elsewhere".to_owned(), ..Request::default() };
        assert!(request.route(ROUTES).is_err());
        assert_eq!(request.matched_route.get(), None);
    }
}
