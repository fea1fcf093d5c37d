//! Every answer that these tests get is held against the OpenAPI document and the table of codes.

use crate::sync::{Arc, Mutex, lock};
use axum::body::{Body, to_bytes};
use axum::extract::{MatchedPath, Request};
use axum::http::header::CONTENT_TYPE;
use axum::middleware::Next;
use axum::response::Response;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::LazyLock;
use weir_api::codes;

static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(weir_api::OPENAPI).unwrap());
static VALIDATORS: LazyLock<Mutex<HashMap<String, Arc<jsonschema::Validator>>>> =
    LazyLock::new(Mutex::default);

/// Breaks the connection where an answer is not what the document says.
pub(in super::super) async fn checked(request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let method = request.method().as_str().to_lowercase();
    let (parts, body) = next.run(request).await.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.unwrap();
    let media = parts.headers.get(CONTENT_TYPE).map(|media| media.to_str().unwrap().to_owned());
    let told = describes(path.as_deref(), &method, parts.status.as_u16(), media.as_deref(), &bytes);
    if let Err(what) = told {
        panic!("{method} {path:?} {}: {what}", parts.status);
    }
    Response::from_parts(parts, Body::from(bytes))
}

fn describes(
    path: Option<&str>,
    method: &str,
    status: u16,
    media: Option<&str>,
    body: &[u8],
) -> Result<(), String> {
    if status >= 400 && media == Some("application/json") {
        let error: weir_api::ApiError =
            serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let code = codes::find(&error.code).ok_or(format!("{} is no code", error.code))?;
        if !code.statuses.contains(&status) {
            return Err(format!("the table of codes doesn't have this status for {}", error.code));
        }
    }
    let operation = path.map(|path| &DOCUMENT["paths"][path][method]).filter(|one| one.is_object());
    let Some(operation) = operation else {
        return if status >= 400 { Ok(()) } else { Err("it is not described".to_owned()) };
    };
    let responses = &operation["responses"];
    let range = format!("{}XX", status / 100);
    let mut response = responses.get(status.to_string()).or(responses.get(&range)).cloned();
    if let Some(name) = response.as_ref().and_then(|one| one["$ref"].as_str()) {
        response = DOCUMENT.pointer(name.trim_start_matches('#')).cloned();
    }
    let content =
        response.map(|one| one["content"].clone()).ok_or("the status is not described")?;
    let media = media.unwrap_or_default().split(';').next().unwrap();
    let described = content.get(media).ok_or(format!("{media} is not described"))?;
    let Some(schema) = described.get("schema") else { return Ok(()) };
    let value: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    validator(schema).validate(&value).map_err(|error| format!("{error} in {value}"))
}

fn validator(schema: &Value) -> Arc<jsonschema::Validator> {
    let mut validators = lock(&VALIDATORS);
    let made = || {
        let mut whole = schema.clone();
        whole["components"] = json!({ "schemas": DOCUMENT["components"]["schemas"] });
        Arc::new(jsonschema::draft202012::new(&whole).unwrap())
    };
    Arc::clone(validators.entry(schema.to_string()).or_insert_with(made))
}

#[test]
fn an_answer_that_is_not_described_is_found() {
    let path = Some("/v1/health");
    let media = Some("application/json");
    let good = json!({ "ready": true, "volumes_served": 1, "unserved": [] }).to_string();
    assert_eq!(describes(path, "get", 200, media, good.as_bytes()), Ok(()));
    let wrong = json!({ "ready": true, "volumes_served": "one", "unserved": [] }).to_string();
    assert!(describes(path, "get", 200, media, wrong.as_bytes()).is_err());
    assert!(describes(path, "get", 201, media, good.as_bytes()).is_err());
    assert!(describes(path, "get", 200, Some("text/plain"), good.as_bytes()).is_err());
    assert!(describes(Some("/v1/nothing"), "get", 200, media, good.as_bytes()).is_err());
    let odd = json!({ "code": "odd", "message": "" }).to_string();
    assert!(describes(path, "get", 400, media, odd.as_bytes()).is_err());
    let gone = json!({ "code": "no_such_pool", "message": "" }).to_string();
    assert_eq!(describes(path, "get", 404, media, gone.as_bytes()), Ok(()));
    assert!(describes(path, "get", 409, media, gone.as_bytes()).is_err());
}

#[test]
fn every_code_of_the_catalogue_is_in_the_table_and_every_one_there_is_somewhere() {
    let whole = include_str!("../../../../catalog/src/error.rs");
    let about_users = include_str!("../../../../catalog/src/error/identity.rs");
    let about_clusters = include_str!("../../../../catalog/src/error/cluster.rs");
    let about_contracts = include_str!("../../../../catalog/src/error/infeasible.rs");
    let mut told: Vec<&str> = Vec::new();
    for (source, function) in [
        (whole, "pub const fn code("),
        (whole, "const fn no_such("),
        (about_users, "pub(super) const fn code("),
        (about_clusters, "pub(super) const fn code("),
        (about_contracts, "pub(super) const fn code("),
    ] {
        let from = source.find(function).unwrap();
        let body = &source[from..from + source[from..].find("\n    }").unwrap()];
        told.extend(body.split('"').skip(1).step_by(2));
    }
    assert!(told.len() > 60);
    for word in &told {
        assert!(codes::find(word).is_some(), "{word} is not in crates/api/src/codes.rs");
    }
    let mut ours = String::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/http");
    for folder in ["", "/audit", "/others"].map(|part| format!("{folder}{part}")) {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.path().extension().is_some_and(|it| it == "rs") {
                ours += &std::fs::read_to_string(entry.path()).unwrap();
            }
        }
    }
    for code in codes::CODES {
        let used = told.contains(&code.word) || ours.contains(&format!("\"{}\"", code.word));
        assert!(used, "{} is nobody's", code.word);
    }
}
