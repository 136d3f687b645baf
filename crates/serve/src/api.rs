//! What the page of the history asks for, as JSON. The guard of all routes has let the request in before any of this.
//!
//! ```text
//! GET /api/runs     the list, a part of it at a time       label= op= target= validity= since= until= skip=
//! GET /api/pivot    rows= columns= figure=                 and the same filters
//! GET /api/compare  a= b=                                  runs of both sides
//! GET /api/trend    figure= line=                          and the same filters
//! ```

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Serialize;

use crate::history::{BadQuery, History, HistoryQuery, HistoryState, compare, list, pivot, trend};
use crate::list;
use crate::routes::{page, reading, refuse};
use crate::server::ServeState;

/// What is waited for before the answer is that it is being read; the page asks again.
const PATIENCE: Duration = Duration::from_secs(5);
/// Nobody looks at an empty window for longer.
const FIRST_PAINT: Duration = Duration::from_millis(800);

pub fn routes() -> Router<Arc<ServeState>> {
    Router::new()
        .route("/", get(history_page))
        .route("/api/runs", get(|s, uri| answer(s, uri, |h, q| Ok(list(h, q)))))
        .route("/api/pivot", get(|s, uri| answer(s, uri, |h, q| Ok(pivot(h, q)))))
        .route("/api/compare", get(|s, uri| answer(s, uri, compare)))
        .route("/api/trend", get(|s, uri| answer(s, uri, |h, q| Ok(trend(h, q)))))
}

fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let text = serde_json::to_string(value).expect("answers are plain data");
    (status, [(CONTENT_TYPE, "application/json")], text).into_response()
}

fn refused(status: StatusCode, why: &str) -> Response {
    json(status, &serde_json::json!({ "error": why }))
}

async fn answer<T: Serialize + 'static>(
    State(s): State<Arc<ServeState>>,
    uri: Uri,
    make: fn(&History, &HistoryQuery) -> Result<T, BadQuery>,
) -> Response {
    let query = match HistoryQuery::of(&uri) {
        Ok(query) => query,
        Err(BadQuery(why)) => return refused(StatusCode::BAD_REQUEST, &why),
    };
    reading(move || match s.history.look(PATIENCE) {
        HistoryState::Read(history) => match make(&history, &query) {
            Ok(found) => json(StatusCode::OK, &found),
            Err(BadQuery(why)) => refused(StatusCode::BAD_REQUEST, &why),
        },
        HistoryState::Reading => {
            let mut wait =
                refused(StatusCode::SERVICE_UNAVAILABLE, "The runs are being read for the first time.");
            wait.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            wait
        }
        HistoryState::Failed(why) => {
            refused(StatusCode::INTERNAL_SERVER_ERROR, &format!("The runs cannot be read: {why}."))
        }
    })
    .await
}

async fn history_page(State(s): State<Arc<ServeState>>, uri: Uri) -> Response {
    let query = match HistoryQuery::of(&uri) {
        Ok(query) => query,
        Err(BadQuery(why)) => return refuse(StatusCode::BAD_REQUEST, &why),
    };
    reading(move || {
        let found = match s.history.look(FIRST_PAINT) {
            HistoryState::Read(history) => Ok(list(&history, &query)),
            other => Err(other),
        };
        page(list::page(&s.root.display().to_string(), uri.query().unwrap_or_default(), &found))
    })
    .await
}
