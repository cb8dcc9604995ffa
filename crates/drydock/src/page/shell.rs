//! The frame of every page: head, navigation, the connection state, and the data that the script needs.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use drydock_api::DecisionQuery;
use maud::{DOCTYPE, Markup, html};

use super::ask::PageClient;
use super::asset;
use super::mark::icon;
use super::trouble::PageError;
use crate::http::PageAccess;

/// The data shown on every page. It is read first, so that no event is missed between it and the view.
pub(super) struct Frame {
    after: i64,
    /// The number of open questions.
    pub(super) open: u64,
    offer: PageAccess,
}

/// The entry of the navigation that is current.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NavItem {
    Board,
    Plans,
    Questions,
    Locks,
    Backups,
    Health,
    New,
}

/// Which events make a page outdated.
#[derive(Debug, Clone, Copy)]
pub(super) enum RefreshOn<'a> {
    /// Any event of plans and decisions.
    Plans,
    /// Every event of this plan.
    Plan(&'a str),
    /// No event: the script refreshes the page from time to time.
    Clock,
    /// None: the page is never refreshed.
    Nothing,
}

/// A rendered page.
pub(super) struct Html(Markup);

impl IntoResponse for Html {
    fn into_response(self) -> Response {
        // The server sets the security headers on every response.
        let headers = [(CONTENT_TYPE, "text/html; charset=utf-8"), (CACHE_CONTROL, "no-store")];
        (headers, self.0.into_string()).into_response()
    }
}

impl Frame {
    /// Reads the data that every page shows.
    pub(super) async fn read(ask: &PageClient) -> Result<Self, PageError> {
        let client = ask.client();
        let after = client.feed_last().await?;
        let query = DecisionQuery { open: Some(true), limit: Some(1), ..DecisionQuery::default() };
        let open = client.decisions(&query).await?.total.unwrap_or_default();
        Ok(Frame { after, open, offer: ask.offer() })
    }

    fn count(&self) -> Option<String> {
        (self.open > 0).then(|| self.open.to_string())
    }
}

/// Returns a whole page around its main part.
pub(super) fn document(
    frame: &Frame,
    title: &str,
    place: NavItem,
    watch: RefreshOn<'_>,
    main: Markup,
) -> Html {
    let count = frame.count();
    let shown = match &count {
        Some(count) => format!("({count}) {title} · Drydock"),
        None => format!("{title} · Drydock"),
    };
    Html(html! {
        (DOCTYPE)
        html lang="en" {
            (head(&shown))
            body data-after=(frame.after) data-may=[offered(frame.offer)] data-watch=[watched(watch)] data-plan=[plan_of(watch)] {
                a.skip href="#main" { "Skip to the content" }
                (sidebar(place, count.as_deref()))
                main id="main" tabindex="-1" { (main) }
                (keys())
                div id="said" role="status" aria-live="polite" {}
            }
        }
    })
}

/// Returns a page without navigation, for a user without access.
pub(super) fn bare(title: &str, body: Markup) -> Html {
    Html(html! {
        (DOCTYPE)
        html lang="en" {
            (head(&format!("{title} · Drydock")))
            body.bare {
                main id="main" tabindex="-1" {
                    a.brand href="/" { img src=(asset::mark()) alt="" width="28" height="28"; "Drydock" }
                    (body)
                }
            }
        }
    })
}

/// The content that an empty page loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opens {
    /// The view at its own URL.
    View,
    /// The session for the link in its URL.
    Link,
}

/// Returns an empty page for the script to fill.
pub(super) fn opening(opens: Opens) -> Html {
    let opens = match opens {
        Opens::View => "view",
        Opens::Link => "link",
    };
    Html(html! {
        (DOCTYPE)
        html lang="en" {
            (head("Drydock"))
            body.bare data-opens=(opens) {
                main id="main" tabindex="-1" {
                    h1.opening { "Opening…" }
                    p.hint id="waits" role="status" {}
                    noscript {
                        p { "With sign-in, this page needs JavaScript. Without JavaScript, use the command line. To sign in, run" }
                        pre.command { code { "drydock token link" } }
                        p.hint { "on the server, and open the printed link in a browser with JavaScript." }
                    }
                }
            }
        }
    })
}

/// Returns a part of a page, for the script to insert.
pub(super) fn part(body: Markup) -> Html {
    Html(body)
}

fn head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) }
            link rel="icon" type="image/svg+xml" href=(asset::mark());
            link rel="stylesheet" href=(asset::style());
            script type="module" src=(asset::script()) {}
        }
    }
}

fn sidebar(place: NavItem, count: Option<&str>) -> Markup {
    let entry = |to: NavItem, href: &str, shape: &str, name: &str, key: &str, badge: Option<&str>| {
        let here = (to == place).then_some("page");
        html! {
            li {
                a href=(href) aria-current=[here] data-key=(key) {
                    (icon(shape)) span { (name) }
                    @if let Some(badge) = badge { span.badge { (badge) span.unseen { " open" } } }
                }
            }
        }
    };
    html! {
        header.side {
            a.brand href="/" { img src=(asset::mark()) alt="" width="22" height="22"; "Drydock" }
            nav aria-label="Views" {
                ul {
                    (entry(NavItem::Board, "/", "board", "Board", "b", None))
                    (entry(NavItem::Questions, "/questions", "waiting", "Questions", "q", count))
                    (entry(NavItem::Plans, "/plans", "list", "Plans", "p", None))
                    (entry(NavItem::Locks, "/locks", "lock", "Locks", "l", None))
                    (entry(NavItem::Backups, "/backups", "backup", "Backups", "u", None))
                    (entry(NavItem::Health, "/health", "health", "Health", "h", None))
                }
            }
            a.button.primary.new href="/new" data-key="n" aria-current=[(place == NavItem::New).then_some("page")] {
                (icon("plus")) span { "New plan" }
            }
            div.foot {
                p id="line" data-line="off" { span.dot {} span.line-word { "not live" } }
                button.plain.script type="button" data-dialog="keys" data-key="?" {
                    (icon("keys")) span { "Keys" } kbd { "?" }
                }
            }
        }
    }
}

/// Returns the list of keyboard shortcuts.
fn keys() -> Markup {
    let rows = [
        ("j / k", "next and previous item"),
        ("Enter", "open the item"),
        ("g then b, q, p, l, u, h", "board, questions, plans, locks, backups, health"),
        ("n", "new plan"),
        ("/", "search"),
        ("o, d, e", "on a plan: overview, changes, log"),
        ("Esc", "close, or leave a field"),
        ("?", "this list"),
    ];
    html! {
        dialog id="keys" aria-labelledby="keys-title" {
            h2 id="keys-title" { "Keys" }
            dl.keys {
                @for (key, does) in rows { div { dt { kbd { (key) } } dd { (does) } } }
            }
            label.check.script { input type="checkbox" id="use-keys"; "Use these keys in this browser" }
            form method="dialog" { button.button { "Close" } }
        }
    }
}

/// Returns the restriction of a user without all rights; the style sheet hides the other actions.
fn offered(offer: PageAccess) -> Option<&'static str> {
    match offer {
        PageAccess::Everything => None,
        PageAccess::Operating => Some("operate"),
        PageAccess::Looking => Some("look"),
    }
}

fn watched(watch: RefreshOn<'_>) -> Option<&'static str> {
    match watch {
        RefreshOn::Plans => Some("plans"),
        RefreshOn::Plan(_) => Some("plan"),
        RefreshOn::Clock => Some("clock"),
        RefreshOn::Nothing => None,
    }
}

fn plan_of(watch: RefreshOn<'_>) -> Option<&str> {
    match watch {
        RefreshOn::Plan(id) => Some(id),
        RefreshOn::Plans | RefreshOn::Clock | RefreshOn::Nothing => None,
    }
}
