//! The files of the page.

use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use axum::response::{IntoResponse, Response};

/// The page may load from its own address only. No other page may frame it.
const POLICY: &str = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

const INDEX: &str = include_str!("../page/index.html");

/// Stands in `index.html` where the token belongs.
const TOKEN: &str = "{{token}}";

macro_rules! files {
    ($($name:literal),* $(,)?) => { &[$(($name, include_str!(concat!("../page/", $name)))),*] };
}

/// Every other file of the page.
const FILES: &[(&str, &str)] = files!(
    "console.css",
    "dom.js",
    "history.js",
    "main.js",
    "mark.svg",
    "marks.js",
    "run.js",
    "side.js",
    "stories.css",
    "stream.js",
    "timeline.js",
);

/// The page with its token.
pub fn index(token: &str) -> Response {
    respond("text/html; charset=utf-8", INDEX.replacen(TOKEN, token, 1))
}

/// A file that the page loads.
pub fn file(name: &str) -> Response {
    let Some((_, text)) = FILES.iter().find(|(own, _)| *own == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let kind = match name.rsplit_once('.') {
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "js")) => "text/javascript; charset=utf-8",
        Some((_, "svg")) => "image/svg+xml",
        _ => "text/plain; charset=utf-8",
    };
    respond(kind, (*text).to_owned())
}

fn respond(kind: &'static str, text: String) -> Response {
    let headers = [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"), // the next build has other files
    ];
    (headers, text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_page_is_served() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/page");
        let files = std::fs::read_dir(folder).expect("the folder").map(|file| file.expect("a file").file_name());
        let files = files.map(|name| name.into_string().expect("a name in UTF-8")).filter(|name| name != "index.html");
        for name in files {
            assert_eq!(file(&name).status(), StatusCode::OK, "{name}: add it to FILES");
        }
        assert_eq!(INDEX.matches(TOKEN).count(), 1);
    }
}
