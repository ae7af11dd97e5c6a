use super::*;
use crate::{args, dynamodb::DynamoDb, tables};
use std::net::SocketAddr;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// The events of `events/` that have a route.
fn samples() -> Vec<(String, Value)> {
    let folder = std::fs::read_dir(crate::workspace().join("events")).expect("a folder");
    let files = folder.map(|file| file.expect("a file").path());
    let events = files.map(|file| {
        let text = std::fs::read_to_string(&file).expect("a text");
        (file.display().to_string(), serde_json::from_str::<Value>(&text).expect("JSON"))
    });
    events.filter(|(_, event)| event["routeKey"].is_string()).collect()
}

#[test]
fn a_request_becomes_the_event_that_api_gateway_makes_of_it() {
    let samples = samples();
    assert!(samples.len() > 10, "{}", samples.len());
    for (file, sample) in samples {
        let text = |name: &str| sample[name].as_str().unwrap_or_default();
        let pairs = |name: &str| -> Vec<(String, String)> {
            let members = sample[name].as_object().into_iter().flatten();
            members.map(|(name, value)| (name.clone(), value.as_str().expect("a text").to_owned())).collect()
        };
        let (method, at) = text("routeKey").split_once(' ').expect("a method and a path");
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let headers = pairs("headers").into_iter().map(|(name, value)| {
            (HeaderName::try_from(name).expect("a name"), HeaderValue::try_from(value).expect("a value"))
        });
        let sent = Sent {
            method: &method,
            path: text("rawPath"),
            parameters: pairs("pathParameters").into_iter().collect(),
            raw_query: text("rawQueryString"),
            query: pairs("queryStringParameters"),
            headers: &headers.collect(),
            body: text("body").as_bytes(),
        };
        let event = event(at, sent);
        for member in [
            "version",
            "routeKey",
            "rawPath",
            "rawQueryString",
            "headers",
            "queryStringParameters",
            "pathParameters",
            "body",
            "isBase64Encoded",
        ] {
            assert_eq!(event.get(member), sample.get(member), "{file}: {member}");
        }
        for member in ["method", "path"] {
            let (ours, theirs) = (&event["requestContext"]["http"][member], &sample["requestContext"]["http"][member]);
            assert_eq!(ours, theirs, "{file}: {member}");
        }
    }
}

#[test]
fn a_body_that_is_no_text_comes_in_base64_and_headers_of_one_name_are_a_list() {
    let event_of = |kind: &'static str, body: &[u8]| {
        let mut headers = HeaderMap::new();
        headers.append(CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.append("if-match", HeaderValue::from_static("\"1\""));
        headers.append("if-match", HeaderValue::from_static("\"2\""));
        headers.append(COOKIE, HeaderValue::from_static("a=1; b=2"));
        let (method, query) = (&Method::PUT, vec![("a".to_owned(), "1".to_owned()), ("a".to_owned(), "2".to_owned())]);
        let parameters = BTreeMap::new();
        event("/", Sent { method, path: "/", parameters, raw_query: "a=1&a=2", query, headers: &headers, body })
    };
    let told = |event: &Value| (event["isBase64Encoded"].clone(), event["body"].clone());
    for kind in ["application/json", "application/merge-patch+json; charset=utf-8", "text/plain", "Application/JSON"] {
        assert_eq!(told(&event_of(kind, b"{}")), (json!(false), json!("{}")), "{kind}");
    }
    for (kind, body) in [("application/x-www-form-urlencoded", b"{}".as_slice()), ("application/json", b"\xff{")] {
        assert_eq!(told(&event_of(kind, body)), (json!(true), json!(BASE64_STANDARD.encode(body))), "{kind}");
    }
    let event = event_of("text/plain", b"");
    assert_eq!((&event["headers"]["if-match"], event.get("body")), (&json!("\"1\",\"2\""), None));
    assert_eq!(event["queryStringParameters"], json!({"a": "1,2"}));
    assert_eq!((&event["cookies"], event["headers"].get("cookie")), (&json!(["a=1", "b=2"]), None));
}

#[tokio::test]
async fn an_answer_may_set_cookies_and_have_a_body_that_is_no_text() {
    let answered = |answer: Value| respond(serde_json::from_value(answer).expect("an answer"));
    let cookies = json!(["a=1", "b=2"]);
    let headers = json!({"vary": "accept"});
    let answer = answered(
        json!({"statusCode": 201, "headers": headers, "cookies": cookies, "body": "//4=", "isBase64Encoded": true}),
    );
    let texts =
        |name: &str| answer.headers().get_all(name).iter().filter_map(|text| text.to_str().ok()).collect::<Vec<_>>();
    assert_eq!(answer.status(), StatusCode::CREATED);
    assert_eq!((texts("set-cookie"), texts("vary")), (vec!["a=1", "b=2"], vec!["accept"]));
    let body = axum::body::to_bytes(answer.into_body(), MAX_BODY).await.expect("a body");
    assert_eq!(&body[..], b"\xff\xfe");
    for broken in [json!({"statusCode": 200, "body": "?", "isBase64Encoded": true}), json!({"statusCode": 1})] {
        assert_eq!(answered(broken.clone()).status(), StatusCode::INTERNAL_SERVER_ERROR, "{broken}");
    }
}

/// The functions of the template behind this gateway, on an engine in memory.
async fn serving() -> SocketAddr {
    let template = Template::load(crate::workspace()).expect("template.yaml");
    let free = TcpListener::bind((LOCALHOST, 0)).await.expect("a port").local_addr().expect("its address").port();
    let engine = args::Engine { port: free, ..args::Engine::default() };
    let dynamodb = DynamoDb::start(&engine).await.expect("an engine");
    tables::create(&dynamodb, &template.tables).await.expect("tables");
    let functions = Functions::start(&template, &dynamodb.client_of_functions(), |_| ()).expect("functions");
    let listener = TcpListener::bind((LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("its address");
    let routes = routes(&template, &functions);
    tokio::spawn(async move { axum::serve(listener, routes).await });
    address
}

async fn send(to: SocketAddr, request: &str, body: &str) -> String {
    send_with(to, request, &format!("host: {to}\r\ncontent-type: application/json\r\n"), body).await
}

async fn send_with(to: SocketAddr, request: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(to).await.expect("it listens");
    let request =
        format!("{request} HTTP/1.1\r\n{headers}connection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

/// A page of another site can make a browser send a POST as `text/plain`, without asking first.
#[tokio::test]
async fn another_site_drives_no_function_and_reads_nothing() {
    let gateway = serving().await;
    let device = r#"{"state":{}}"#;
    assert!(send(gateway, "PUT /devices/lamp-1", device).await.starts_with("HTTP/1.1 201"));
    let delete = json!({"version": "2.0", "routeKey": "DELETE /devices/{deviceId}", "rawPath": "/devices/lamp-1",
        "pathParameters": {"deviceId": "lamp-1"}, "headers": {"if-match": "*"},
        "requestContext": {"http": {"method": "DELETE", "path": "/devices/lamp-1"}}});
    let invoke = "POST /2015-03-31/functions/device-state/invocations";
    let host = format!("host: {gateway}\r\n");
    for from in [
        format!("{host}origin: http://evil.example\r\n"),
        format!("{host}origin: null\r\n"),
        format!("{host}origin: http://127.0.0.1:1\r\n"),
        format!("{host}origin: https://{gateway}\r\n"),
        format!("{host}sec-fetch-site: cross-site\r\n"),
        format!("{host}sec-fetch-site: same-site\r\n"),
        "host: evil.example:9000\r\n".to_owned(),
    ] {
        let from = format!("{from}content-type: text/plain\r\n");
        for (request, body) in [(invoke, delete.to_string()), ("GET /devices/lamp-1", String::new())] {
            let answer = send_with(gateway, request, &from, &body).await;
            assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("cross_site"), "{from}{request}: {answer}");
        }
        assert!(send(gateway, "GET /devices/lamp-1", "").await.starts_with("HTTP/1.1 200"), "{from}");
    }
    for own in [
        "origin: http://",
        "sec-fetch-site: same-origin\r\nx-own: ",
        "sec-fetch-site: cross-site\r\nsec-fetch-mode: navigate\r\nx-own: ",
    ] {
        let answer = send_with(gateway, "GET /devices/lamp-1", &format!("{host}{own}{gateway}\r\n"), "").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{own}: {answer}");
    }
    let form = format!("{host}origin: null\r\nsec-fetch-mode: navigate\r\n");
    assert!(send_with(gateway, invoke, &form, &delete.to_string()).await.starts_with("HTTP/1.1 403"));
    assert!(send(gateway, invoke, &delete.to_string()).await.contains(r#""statusCode":204"#));
}
