//! What is at which address.
//!
//! ```text
//! GET  /                 the history: list, pivot, comparison, trend (see api.rs)
//! GET  /runs/ID          the report of a run; of one that goes on, its live page
//! GET  /runs/ID/events   server-sent events of a run (web/src/feed.ts); Last-Event-ID, or ?after=, goes on from there
//! POST /runs/ID/stop     ends the run of this process, as Ctrl-C does
//! GET  /net/ID           the page of a network test
//! GET  /metrics          Prometheus text
//! ```

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, SET_COOKIE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::stream::unfold;
use plimsoll_report::{Layout, LivePlace, html, html_live, read, read_as_judged};
use plimsoll_store::{RunDir, net};

use crate::access::{Admission, query};
use crate::feed::FeedPlace;
use crate::follow::RunFollower;
use crate::metrics::{RunMetrics, text};
use crate::server::{ServeState, is_name};

/// Pages that follow runs at once: each is a connection.
const MOST_PAGES: usize = 256;
static PAGES: AtomicUsize = AtomicUsize::new(0);
/// A run that has just begun is looked at for the first time.
const FIRST_LOOK: Duration = Duration::from_secs(10);
/// Runs whose last result is in the metrics.
const RESULTS_GIVEN: usize = 10;

pub fn routes(state: Arc<ServeState>) -> Router {
    Router::new()
        .merge(crate::api::routes())
        .route("/net/{id}", get(network_test))
        .route("/runs/{id}", get(run))
        .route("/runs/{id}/events", get(events))
        .route("/runs/{id}/stop", post(stop))
        .route("/metrics", get(metrics))
        .fallback(|| async { refuse(StatusCode::NOT_FOUND, "There is no such page.") })
        .layer(from_fn_with_state(Arc::clone(&state), guard))
        .with_state(state)
}

pub fn refuse(status: StatusCode, why: &str) -> Response {
    (status, [(CONTENT_TYPE, "text/plain; charset=utf-8")], format!("{why}\n")).into_response()
}

pub fn page(html: String) -> Response {
    ([(CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response()
}

/// Nothing of a request is looked at before this has let it in; and each answer says what a browser may make of it.
async fn guard(State(s): State<Arc<ServeState>>, request: Request, next: Next) -> Response {
    let admission = s.access.admit(request.method(), request.uri(), request.headers());
    let mut response = match admission {
        Admission::Go => next.run(request).await,
        Admission::Refuse(status, why) => {
            // Who may not ask keeps no place of those who may: there are only so many connections.
            let mut refused = refuse(status, why);
            refused.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            refused
        }
        Admission::Welcome { location } => {
            let cookie = format!(
                "{}={}; Path=/; HttpOnly; Secure; SameSite=Strict",
                s.access.cookie_name(),
                s.access.session
            );
            (StatusCode::SEE_OTHER, [(LOCATION, location), (SET_COOKIE, cookie)]).into_response()
        }
    };
    let headers = response.headers_mut();
    if let Ok(policy) = HeaderValue::from_str(&s.policy) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

/// Reads files: beside the threads that answer.
pub async fn reading(work: impl FnOnce() -> Response + Send + 'static) -> Response {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| {
        refuse(StatusCode::INTERNAL_SERVER_ERROR, "This is a bug in plimsoll: the page could not be made.")
    })
}

fn no_such_run() -> Response {
    refuse(StatusCode::NOT_FOUND, "There is no such run here.")
}

async fn run(State(s): State<Arc<ServeState>>, Path(id): Path<String>) -> Response {
    reading(move || {
        let Some(dir) = s.dir(&id) else { return no_such_run() };
        match s.is_live(&id, &dir) {
            true => live_page(&s, &id, dir),
            false => report(&dir),
        }
    })
    .await
}

async fn network_test(State(s): State<Arc<ServeState>>, Path(id): Path<String>) -> Response {
    reading(move || {
        let known = is_name(&id) && net::ids(&s.root).contains(&id);
        let found = known.then(|| net::find(&s.root, &id).and_then(|path| net::read(&path)));
        match found {
            Some(Ok(record)) => page(plimsoll_report::net_html(&record)),
            Some(Err(e)) => {
                refuse(StatusCode::INTERNAL_SERVER_ERROR, &format!("The test cannot be shown: {e}."))
            }
            None => refuse(StatusCode::NOT_FOUND, "There is no such network test here."),
        }
    })
    .await
}

fn report(dir: &RunDir) -> Response {
    let made = if crate::look::has_result(dir) {
        read(dir, 1)
    } else {
        crate::look::judged(dir).map(|(s, a)| read_as_judged(dir, dir, s, a)).map_err(Into::into)
    };
    match made.and_then(|r| html(std::slice::from_ref(&r), Layout::default())) {
        Ok(html) => page(html),
        // Its files are made one after the other, and its lock comes last: the browser asks again.
        Err(_) if is_young(dir) => {
            let mut wait = refuse(StatusCode::SERVICE_UNAVAILABLE, "The run is only just beginning.");
            wait.headers_mut().insert("refresh", HeaderValue::from_static("1"));
            wait
        }
        Err(e) => refuse(StatusCode::INTERNAL_SERVER_ERROR, &format!("The run cannot be shown: {e}.")),
    }
}

/// Whether something was made in it a moment ago.
fn is_young(dir: &RunDir) -> bool {
    let changed = dir.path().metadata().and_then(|m| m.modified());
    changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age < FIRST_LOOK))
}

fn live_page(s: &ServeState, id: &str, dir: RunDir) -> Response {
    let follower = match s.follow(id, dir) {
        Ok(follower) => follower,
        Err(e) => {
            return refuse(StatusCode::INTERNAL_SERVER_ERROR, &format!("The run cannot be followed: {e}."));
        }
    };
    let Some(state) = first_page(&follower) else {
        let why = follower.problem().unwrap_or_else(|| "it has not been read yet".into());
        return refuse(
            StatusCode::SERVICE_UNAVAILABLE,
            &format!("Nothing can be shown yet: {why}. Reload the page."),
        );
    };
    let path = format!("/runs/{id}");
    let stop_token = s.is_own(id).then_some(s.access.page_token.as_str());
    page(html_live(&state, &follower.title(), LivePlace { path: &path, stop_token }))
}

fn first_page(follower: &RunFollower) -> Option<serde_json::Value> {
    let begun = std::time::Instant::now();
    loop {
        let page = follower.feed().page();
        if page.is_some() || begun.elapsed() > FIRST_LOOK || follower.feed().is_over() {
            return page;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// One of the pages that follow a run.
struct Page;

impl Page {
    fn open() -> Option<Self> {
        let room =
            PAGES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < MOST_PAGES).then_some(n + 1));
        room.ok().map(|_| Self)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        PAGES.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn events(
    State(s): State<Arc<ServeState>>,
    Path(id): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let Some(open) = Page::open() else {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "Too many pages follow runs here. Close some.");
    };
    let Some(dir) = s.dir(&id) else { return no_such_run() };
    let follower = match s.follow(&id, dir) {
        Ok(follower) => follower,
        Err(e) => {
            return refuse(StatusCode::INTERNAL_SERVER_ERROR, &format!("The run cannot be followed: {e}."));
        }
    };
    let last = headers.get("last-event-id").and_then(|v| v.to_str().ok());
    let place = last.or(query(&uri, "after")).and_then(FeedPlace::parse);
    let watch = follower.feed().watch();
    let waiting = std::collections::VecDeque::new();
    let stream = unfold(
        (follower, watch, place, waiting, open),
        |(f, mut watch, mut place, mut waiting, open)| async move {
            loop {
                if let Some((at, text)) = waiting.pop_front() {
                    let at: FeedPlace = at;
                    let text: Arc<str> = text;
                    let event = Event::default()
                        .id(format!("{}:{}", at.feed, at.seq))
                        .retry(Duration::from_secs(1))
                        .data(&*text);
                    place = Some(at);
                    return Some((Ok::<_, Infallible>(event), (f, watch, place, waiting, open)));
                }
                watch.borrow_and_update();
                let is_over = f.feed().is_over();
                // Taken when there is room for it: a slow page is sent what there is by then.
                waiting.extend(f.feed().after(place.as_ref()));
                if waiting.is_empty() && (is_over || watch.changed().await.is_err()) {
                    return None;
                }
            }
        },
    );
    let quiet = KeepAlive::new().interval(Duration::from_secs(15));
    let mut response = Sse::new(stream).keep_alive(quiet).into_response();
    // A proxy that collects answers would hold the page back.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

async fn stop(State(s): State<Arc<ServeState>>, Path(id): Path<String>) -> Response {
    match s.stop(&id) {
        Some(true) => refuse(StatusCode::ACCEPTED, "The run ends: it writes its result and cleans up."),
        Some(false) => refuse(StatusCode::ACCEPTED, "The run is ending already."),
        None => refuse(
            StatusCode::NOT_FOUND,
            "This run is not of this process: stop it where it runs, with Ctrl-C.",
        ),
    }
}

async fn metrics(State(s): State<Arc<ServeState>>) -> Response {
    reading(move || {
        let mut all: Vec<RunMetrics> = Vec::new();
        let mut shown: Vec<String> = Vec::new();
        for (id, follower) in s.followed() {
            all.extend(follower.metrics());
            shown.push(id);
        }
        let newest = plimsoll_store::rundir::newest(&s.root, 0, RESULTS_GIVEN);
        for entry in newest.map_or_else(|_| Vec::new(), |(entries, _)| entries) {
            if shown.contains(&entry.id) {
                continue;
            }
            match entry.summary {
                Some(summary) if entry.state != plimsoll_store::RunState::Running => {
                    all.push(RunMetrics::of(&plimsoll_report::cleaned(summary), false, None));
                }
                // From the next time on it is followed.
                None if entry.state == plimsoll_store::RunState::Running => {
                    let follower = s.dir(&entry.id).and_then(|dir| s.follow(&entry.id, dir).ok());
                    if let Some(f) = follower {
                        first_page(&f);
                        all.extend(f.metrics());
                    }
                }
                _ => {}
            }
        }
        ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text(&all)).into_response()
    })
    .await
}
