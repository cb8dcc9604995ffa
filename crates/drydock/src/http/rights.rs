//! The rights of each role: one table with every route, and one match of every role against every right. A route that
//! is not in the table is for the role human only.

use axum::http::Method;
use drydock_domain::TokenRole;

use super::router::ROOT;

/// The right that a route requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Right {
    /// Public; no token is needed.
    Enter,
    /// Read metrics. No token is needed if only this machine can reach the server.
    Measure,
    Look,
    /// Read the plan in the path.
    LookAtPlan,
    /// Set up, run, steer and clean up.
    Operate,
    /// Answer a decision.
    Decide,
    /// Create, list and revoke tokens.
    Vouch,
}

/// Every route below `/api/v1`.
#[rustfmt::skip]
const TABLE: &[(Method, &str, Right)] = &[
    (Method::GET, "/openapi.json", Right::Enter),
    (Method::GET, "/projects", Right::Look),
    (Method::POST, "/projects", Right::Operate),
    (Method::GET, "/projects/{name}", Right::Look),
    (Method::DELETE, "/projects/{name}", Right::Operate),
    (Method::GET, "/actions", Right::Look),
    (Method::POST, "/actions", Right::Operate),
    (Method::GET, "/actions/{name}", Right::Look),
    (Method::DELETE, "/actions/{name}", Right::Operate),
    (Method::GET, "/invariants", Right::Look),
    (Method::POST, "/invariants", Right::Operate),
    (Method::DELETE, "/invariants/{name}", Right::Operate),
    (Method::GET, "/agents", Right::Look),
    (Method::POST, "/agents/{name}/check", Right::Operate),
    (Method::GET, "/plans", Right::Look),
    (Method::POST, "/plans", Right::Operate),
    (Method::GET, "/plans/{id}", Right::LookAtPlan),
    (Method::GET, "/plans/{id}/diff", Right::LookAtPlan),
    (Method::GET, "/plans/{id}/tree", Right::LookAtPlan),
    (Method::GET, "/plans/{id}/why", Right::LookAtPlan),
    (Method::GET, "/plans/{id}/explain", Right::LookAtPlan),
    (Method::GET, "/plans/{id}/checkpoints", Right::LookAtPlan),
    (Method::GET, "/plans/{id}/log", Right::Look),
    (Method::GET, "/plans/{id}/logs", Right::Look),
    (Method::POST, "/plans/{id}/strategize", Right::Operate),
    (Method::POST, "/plans/{id}/execute", Right::Operate),
    (Method::POST, "/plans/{id}/apply", Right::Operate),
    (Method::POST, "/plans/{id}/cancel", Right::Operate),
    (Method::POST, "/plans/{id}/retry", Right::Operate),
    (Method::POST, "/plans/{id}/accept", Right::Decide),
    (Method::POST, "/plans/{id}/revert", Right::Operate),
    (Method::POST, "/plans/{id}/prompt", Right::Operate),
    (Method::POST, "/plans/{id}/takeover", Right::Operate),
    (Method::POST, "/plans/{id}/rollback", Right::Operate),
    (Method::POST, "/plans/{id}/sync", Right::Operate),
    (Method::POST, "/plans/{id}/strategy/adopt", Right::Operate),
    (Method::GET, "/backups", Right::Look),
    (Method::POST, "/backups/prune", Right::Operate),
    (Method::GET, "/backups/{plan}/{number}", Right::Look),
    (Method::DELETE, "/backups/{plan}/{number}", Right::Operate),
    (Method::POST, "/backups/{plan}/{number}/restore", Right::Operate),
    (Method::GET, "/decisions", Right::Look),
    (Method::GET, "/decisions/{id}", Right::Look),
    (Method::POST, "/decisions/{id}/resolve", Right::Decide),
    (Method::GET, "/changesets", Right::Look),
    (Method::GET, "/changesets/{id}", Right::Look),
    (Method::GET, "/events", Right::Look),
    (Method::GET, "/events/last", Right::Look),
    (Method::GET, "/locks", Right::Look),
    (Method::POST, "/locks/{id}/break", Right::Operate),
    (Method::GET, "/tokens", Right::Vouch),
    (Method::POST, "/tokens", Right::Vouch),
    (Method::POST, "/tokens/link", Right::Vouch),
    (Method::POST, "/tokens/{id}/revoke", Right::Vouch),
    (Method::GET, "/doctor", Right::Look),
    (Method::POST, "/gc", Right::Operate),
];

/// Every other route, by its full path.
#[rustfmt::skip]
const OUTSIDE: &[(Method, &str, Right)] = &[
    (Method::GET, "/welcome", Right::Enter),
    (Method::POST, "/welcome", Right::Enter),
    (Method::GET, "/healthz", Right::Enter),
    (Method::GET, "/readyz", Right::Enter),
    (Method::GET, "/metrics", Right::Measure),
    (Method::GET, "/reference", Right::Enter),
    (Method::GET, "/reference.css", Right::Enter),
];

/// Returns the right that a route requires, or none if the route is in neither table.
pub(super) fn right(method: &Method, route: &str) -> Option<Right> {
    // HEAD requires the same right as GET.
    let method = if method == Method::HEAD { &Method::GET } else { method };
    let (table, route) = match route.strip_prefix(ROOT) {
        Some(route) => (TABLE, route),
        None => (OUTSIDE, route),
    };
    table.iter().find(|(one, path, _)| one == method && *path == route).map(|(_, _, right)| *right)
}

/// Returns true if a role has a right. `plan` is the plan in the path.
pub(super) fn may(role: &TokenRole, right: Option<Right>, plan: Option<&str>) -> bool {
    match (role, right) {
        (
            TokenRole::Human | TokenRole::Operator | TokenRole::Reader | TokenRole::Agent { .. },
            Some(Right::Enter | Right::Measure),
        ) => true,
        (
            TokenRole::Human,
            Some(Right::Look | Right::LookAtPlan | Right::Operate | Right::Decide | Right::Vouch) | None,
        ) => true,
        (TokenRole::Operator, Some(Right::Look | Right::LookAtPlan | Right::Operate)) => true,
        (TokenRole::Operator, Some(Right::Decide | Right::Vouch) | None) => false,
        (TokenRole::Reader, Some(Right::Look | Right::LookAtPlan)) => true,
        (TokenRole::Reader, Some(Right::Operate | Right::Decide | Right::Vouch) | None) => false,
        // Compared by the full id: a prefix could be completed from the answer.
        (TokenRole::Agent { plan: own, .. }, Some(Right::LookAtPlan)) => plan == Some(own.as_str()),
        (
            TokenRole::Agent { .. },
            Some(Right::Look | Right::Operate | Right::Decide | Right::Vouch) | None,
        ) => false,
    }
}

/// The actions that the page offers to its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageAccess {
    Everything,
    /// Everything but answers to decisions.
    Operating,
    Looking,
}

/// Returns the actions that the page offers to a role. A user without a token gets everything.
pub(crate) fn offer(role: Option<&TokenRole>) -> PageAccess {
    let has = |right| role.is_none_or(|role| may(role, Some(right), None));
    match (has(Right::Operate), has(Right::Decide)) {
        (true, true) => PageAccess::Everything,
        (true, false) => PageAccess::Operating,
        (false, _) => PageAccess::Looking,
    }
}

/// Returns why a role lacks a right, as a message for people.
pub(super) fn refusal(role: &TokenRole, right: Option<Right>) -> &'static str {
    match (role, right) {
        (TokenRole::Agent { .. }, Some(Right::Decide)) => "agents cannot answer decisions",
        (TokenRole::Operator | TokenRole::Reader, Some(Right::Decide)) => "only people can answer decisions",
        (TokenRole::Agent { .. } | TokenRole::Operator | TokenRole::Reader, Some(Right::Vouch)) => {
            "only people can manage tokens"
        }
        (TokenRole::Reader, Some(Right::Operate)) => "readers cannot change anything",
        (TokenRole::Agent { .. }, Some(Right::Look | Right::LookAtPlan)) => {
            "agents can only read their own plan, by its full id"
        }
        (TokenRole::Agent { .. }, Some(Right::Operate)) => "agents can only change their worktree",
        (TokenRole::Human | TokenRole::Operator | TokenRole::Agent { .. } | TokenRole::Reader, _) => {
            "only people can do this"
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::collections::BTreeSet;

    pub(in crate::http) fn routes() -> impl Iterator<Item = (&'static Method, &'static str)> {
        TABLE.iter().map(|(method, path, _)| (method, *path))
    }

    /// Parses the routes from the source of the router, which cannot list them at run time.
    fn written() -> BTreeSet<(String, String)> {
        let text = include_str!("router.rs");
        let text = text.split("#[cfg(test)]").next().unwrap();
        let mut found = BTreeSet::new();
        for route in text.split(".route(").skip(1) {
            let path = route.split('"').nth(1).unwrap();
            for method in ["get", "post", "delete", "put", "patch"] {
                let is_named = |before: &str| !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
                if route.match_indices(&format!("{method}(")).any(|(at, _)| is_named(&route[..at])) {
                    found.insert((method.to_uppercase(), path.to_owned()));
                }
            }
        }
        found
    }

    /// Breaks if a route is added without a right, or a removed route keeps its row.
    #[test]
    fn every_route_says_who_may_use_it() {
        let table: BTreeSet<_> =
            routes().map(|(method, path)| (method.to_string(), path.to_owned())).collect();
        assert_eq!(table.len(), TABLE.len(), "a route has two rows");
        assert_eq!(table, written());
    }
}
