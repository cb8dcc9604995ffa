//! Budget and usage of a plan: tokens, money, time and tool calls. Both are small values without references
//! to a plan, so that a share of a budget can be given to a subplan. Money is an integer number of
//! micro-dollars (millionths of a US dollar); fractions are never used.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{counted, duration};

/// The resources that a plan may use. `None` means unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Tokens of the models behind the agents.
    pub tokens: Option<u64>,
    /// Money, in millionths of a US dollar.
    pub cost_micros: Option<u64>,
    /// Wall-clock time of the plan's runs, in milliseconds.
    pub wall_ms: Option<u64>,
    /// Tool calls by the agents.
    pub tool_calls: Option<u64>,
}

/// Resources that were used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceUsage {
    /// Tokens of the models behind the agents.
    pub tokens: u64,
    /// Money, in millionths of a US dollar.
    pub cost_micros: u64,
    /// Wall-clock time of runs, in milliseconds.
    pub wall_ms: u64,
    /// Tool calls by the agents.
    pub tool_calls: u64,
}

impl Budget {
    /// A budget without limits.
    pub const UNLIMITED: Budget = Budget { tokens: None, cost_micros: None, wall_ms: None, tool_calls: None };

    /// Returns true if no resource is limited.
    pub fn is_unlimited(&self) -> bool {
        *self == Budget::UNLIMITED
    }

    /// Returns the budget whose limits are the smaller of both, per resource.
    #[must_use]
    pub fn smallest(self, other: Budget) -> Budget {
        let less = |one: Option<u64>, two: Option<u64>| match (one, two) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
        self.with(other, less)
    }

    /// Returns the rest of the budget after this usage; never below zero.
    #[must_use]
    pub fn left(self, spent: ResourceUsage) -> Budget {
        self.without(spent.into())
    }

    /// Returns the budget reduced by `part`; never below zero. Unlimited resources stay unlimited.
    #[must_use]
    pub fn without(self, part: Budget) -> Budget {
        self.with(part, |whole, part| Some(whole?.saturating_sub(part.unwrap_or(0))))
    }

    /// Returns the part of a subplan's usage that counts against this budget: resources that are limited now,
    /// or that were limited when the share was given (`handed`).
    #[must_use]
    pub fn counts(self, handed: ResourceUsage, used: ResourceUsage) -> ResourceUsage {
        let part = |limit: Option<u64>, handed: u64, used: u64| match limit {
            None if handed == 0 => 0,
            None | Some(_) => used,
        };
        ResourceUsage {
            tokens: part(self.tokens, handed.tokens, used.tokens),
            cost_micros: part(self.cost_micros, handed.cost_micros, used.cost_micros),
            wall_ms: part(self.wall_ms, handed.wall_ms, used.wall_ms),
            tool_calls: part(self.tool_calls, handed.tool_calls, used.tool_calls),
        }
    }

    /// Returns true if every limit can be split into this many shares of at least one unit.
    pub fn suffices_for(self, parts: u64) -> bool {
        let enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= parts);
        [self.tokens, self.cost_micros, self.wall_ms, self.tool_calls].into_iter().all(enough)
    }

    /// Returns one of `parts` equal shares, for a subplan.
    #[must_use]
    pub fn share(self, parts: NonZeroU32) -> Budget {
        self.with(Budget::UNLIMITED, |whole, _| Some(whole? / u64::from(parts.get())))
    }

    /// Returns the budget with exhausted limits raised. Each limit with less than `least` left is set to the
    /// usage plus `by`, so that at least `least` is left afterwards.
    #[must_use]
    pub fn raised(self, by: Budget, spent: ResourceUsage, least: u64) -> Budget {
        let spent = Budget::from(spent);
        let more = |limit: Option<u64>, used: Option<u64>, by: Option<u64>| {
            let (limit, used) = (limit?, used.unwrap_or(0));
            let suffices = limit.saturating_sub(used) >= least.max(1);
            Some(if suffices { limit } else { used.saturating_add(by.unwrap_or(limit).max(least).max(1)) })
        };
        Budget {
            tokens: more(self.tokens, spent.tokens, by.tokens),
            cost_micros: more(self.cost_micros, spent.cost_micros, by.cost_micros),
            wall_ms: more(self.wall_ms, spent.wall_ms, by.wall_ms),
            tool_calls: more(self.tool_calls, spent.tool_calls, by.tool_calls),
        }
    }

    /// Returns each exhausted resource as text with usage and limit.
    pub fn used_up(self, spent: ResourceUsage) -> Vec<String> {
        let over = |limit: Option<u64>, used: u64, said: &dyn Fn(u64) -> String| {
            let limit = limit.filter(|limit| used >= *limit)?;
            Some(format!("{} of {}", said(used), said(limit)))
        };
        [
            over(self.tokens, spent.tokens, &|number| counted(number, "token")),
            over(self.cost_micros, spent.cost_micros, &|micros| format!("{} USD", dollars(micros))),
            over(self.wall_ms, spent.wall_ms, &|ms| span(ms)),
            over(self.tool_calls, spent.tool_calls, &|number| counted(number, "tool call")),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn with(self, other: Budget, join: impl Fn(Option<u64>, Option<u64>) -> Option<u64>) -> Budget {
        Budget {
            tokens: join(self.tokens, other.tokens),
            cost_micros: join(self.cost_micros, other.cost_micros),
            wall_ms: join(self.wall_ms, other.wall_ms),
            tool_calls: join(self.tool_calls, other.tool_calls),
        }
    }

    /// Sets one limit from user input.
    fn set(&mut self, name: &str, text: &str) -> Result<(), BudgetError> {
        let wrong = |how: &str| BudgetError(format!("budget: {name}={text}: {how}"));
        let (place, value) = match name {
            "tokens" => (&mut self.tokens, count(text)),
            "tool_calls" => (&mut self.tool_calls, count(text)),
            "cost" => (&mut self.cost_micros, micros(text)),
            "wall" => (&mut self.wall_ms, span_ms(text)),
            _ => return Err(wrong("unknown limit; use tokens, cost, wall or tool_calls")),
        };
        let how = match name {
            "cost" => "write US dollars, such as 1.50",
            "wall" => "write a number and a unit, such as 90s, 30m or 2h",
            _ => "write a whole number, such as 50, 200k or 2M",
        };
        match value {
            Some(0) => Err(wrong("must be greater than 0; leave it out to set no limit")),
            Some(_) if place.is_some() => Err(wrong("given twice")),
            Some(value) => {
                *place = Some(value);
                Ok(())
            }
            None => Err(wrong(how)),
        }
    }
}

/// A budget as written in a configuration file: `{ tokens = 200000, cost = "1.50", wall = "30m", tool_calls =
/// 50 }`. All keys are optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct RawBudget(BTreeMap<String, Amount>);

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "a budget value is a whole number, or a string such as \"1.50\" or \"30m\"")]
enum Amount {
    Number(u64),
    Text(String),
}

impl RawBudget {
    /// Parses the budget, or returns the first invalid entry as an error.
    pub fn read(&self) -> Result<Budget, BudgetError> {
        let mut budget = Budget::default();
        for (name, amount) in &self.0 {
            match amount {
                Amount::Number(number) => budget.set(name, &number.to_string())?,
                Amount::Text(text) => budget.set(name, text)?,
            }
        }
        Ok(budget)
    }
}

/// Returned when a budget cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BudgetError(String);

impl FromStr for Budget {
    type Err = BudgetError;

    /// Parses `tokens=200k,cost=1.50,wall=30m,tool_calls=50`. All keys are optional.
    fn from_str(text: &str) -> Result<Budget, BudgetError> {
        let mut budget = Budget::default();
        for part in text.split(',').map(str::trim) {
            let Some((name, value)) = part.split_once('=') else {
                let how = "write limits as tokens=200k,cost=1.50,wall=30m,tool_calls=50; each is optional";
                return Err(BudgetError(format!("budget: {part:?}: {how}")));
            };
            budget.set(name.trim(), value.trim())?;
        }
        Ok(budget)
    }
}

impl ResourceUsage {
    /// Returns the sum of both usages.
    #[must_use]
    pub fn plus(self, other: ResourceUsage) -> ResourceUsage {
        ResourceUsage {
            tokens: self.tokens.saturating_add(other.tokens),
            cost_micros: self.cost_micros.saturating_add(other.cost_micros),
            wall_ms: self.wall_ms.saturating_add(other.wall_ms),
            tool_calls: self.tool_calls.saturating_add(other.tool_calls),
        }
    }

    /// Returns the difference of both usages; never below zero.
    #[must_use]
    pub fn minus(self, other: ResourceUsage) -> ResourceUsage {
        ResourceUsage {
            tokens: self.tokens.saturating_sub(other.tokens),
            cost_micros: self.cost_micros.saturating_sub(other.cost_micros),
            wall_ms: self.wall_ms.saturating_sub(other.wall_ms),
            tool_calls: self.tool_calls.saturating_sub(other.tool_calls),
        }
    }

    /// Returns the maximum of each resource. Used to combine two reports of the same run, one of which may be
    /// older.
    #[must_use]
    pub fn at_least(self, other: ResourceUsage) -> ResourceUsage {
        ResourceUsage {
            tokens: self.tokens.max(other.tokens),
            cost_micros: self.cost_micros.max(other.cost_micros),
            wall_ms: self.wall_ms.max(other.wall_ms),
            tool_calls: self.tool_calls.max(other.tool_calls),
        }
    }
}

impl From<ResourceUsage> for Budget {
    fn from(spent: ResourceUsage) -> Budget {
        Budget {
            tokens: Some(spent.tokens),
            cost_micros: Some(spent.cost_micros),
            wall_ms: Some(spent.wall_ms),
            tool_calls: Some(spent.tool_calls),
        }
    }
}

/// Formats the limited resources only, in the syntax that `FromStr` accepts.
impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            self.tokens.map(|tokens| format!("tokens={tokens}")),
            self.cost_micros.map(|micros| format!("cost={}", dollars(micros))),
            self.wall_ms.map(|ms| format!("wall={}", span(ms))),
            self.tool_calls.map(|calls| format!("tool_calls={calls}")),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(","))
    }
}

/// Formats an amount of money in dollars, with at least two decimal places.
pub fn dollars(micros: u64) -> String {
    let (whole, part) = (micros / 1_000_000, format!("{:06}", micros % 1_000_000));
    let shown = part.trim_end_matches('0').len().max(2);
    format!("{whole}.{}", &part[..shown])
}

/// Parses an amount of money in dollars, exactly. Returns `None` for invalid input or more than six decimal
/// places.
pub fn micros(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > 6 || !digits(whole) || !digits(part) {
        return None;
    }
    let part: u64 = format!("{part:0<6}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(part)
}

fn count(text: &str) -> Option<u64> {
    let (digits, unit) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1_000),
        None => text.strip_suffix('M').map_or((text, 1), |digits| (digits, 1_000_000)),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

fn span_ms(text: &str) -> Option<u64> {
    u64::try_from(duration(text)?.as_millis()).ok()
}

/// Formats a time span in the largest unit that is exact, or in seconds.
fn span(ms: u64) -> String {
    match ms {
        ms if ms > 0 && ms % 3_600_000 == 0 => format!("{}h", ms / 3_600_000),
        ms if ms > 0 && ms % 60_000 == 0 => format!("{}m", ms / 60_000),
        ms if ms >= 1_000 => format!("{}s", ms / 1_000),
        ms => format!("{ms}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{ProptestConfig, Strategy, any, prop};
    use proptest::{prop_assert, prop_assert_eq, proptest};

    fn budget(text: &str) -> Budget {
        text.parse().unwrap()
    }

    #[test]
    fn a_budget_is_read_as_people_write_it() {
        let read = budget("tokens=200k, cost=1.5,wall=30m,tool_calls=50");
        let full = Budget {
            tokens: Some(200_000),
            cost_micros: Some(1_500_000),
            wall_ms: Some(1_800_000),
            tool_calls: Some(50),
        };
        assert_eq!(read, full);
        assert_eq!(read.to_string(), "tokens=200000,cost=1.50,wall=30m,tool_calls=50");
        assert_eq!(budget("wall=1m 30s").wall_ms, Some(90_000));
        for (text, reason) in [
            ("", "write limits as"),
            ("tokens", "write limits as"),
            ("tokens=", "whole number"),
            ("tokens=-1", "whole number"),
            ("tokens=1.5", "whole number"),
            ("tokens=0", "greater than 0"),
            ("tokens=99999999999999999999", "whole number"),
            ("cost=1,5", "write limits as"),
            ("cost=0.0000001", "US dollars"),
            ("cost=1e3", "US dollars"),
            ("cost=$5", "US dollars"),
            ("wall=5", "a unit"),
            ("wall=0s", "greater than 0"),
            ("wall=soon", "a unit"),
            ("tokens=1,tokens=2", "twice"),
            ("patience=3", "use tokens"),
        ] {
            let refused = text.parse::<Budget>().expect_err(text).to_string();
            assert!(refused.contains(reason), "{text}: {refused}");
        }
    }

    #[test]
    fn money_is_exact() {
        for (text, amount) in [
            ("0.12", 120_000),
            ("0.000001", 1),
            ("3", 3_000_000),
            ("12.345678", 12_345_678),
            ("0.10", 100_000),
        ] {
            assert_eq!(micros(text), Some(amount), "{text}");
        }
        assert_eq!(
            (dollars(120_000), dollars(1), dollars(3_000_000)),
            ("0.12".into(), "0.000001".into(), "3.00".into())
        );
        for text in ["", ".", ".5", "-1", "1.2.3", "0.1234567", "99999999999999999999"] {
            assert_eq!(micros(text), None, "{text}");
        }
    }

    #[test]
    fn reaching_a_limit_uses_it_up_and_raising_it_leaves_as_much_again() {
        let first = budget("tokens=100,tool_calls=5");
        let spent = ResourceUsage { tokens: 250, tool_calls: 4, ..ResourceUsage::default() };
        assert_eq!(first.used_up(spent), ["250 tokens of 100 tokens"]);
        assert_eq!(
            first.used_up(ResourceUsage { tool_calls: 5, ..ResourceUsage::default() }),
            ["5 tool calls of 5 tool calls"]
        );
        let raised = first.raised(first, spent, 1);
        assert_eq!(raised, budget("tokens=350,tool_calls=5"));
        assert_eq!(raised.left(spent).tokens, Some(100));
        assert!(Budget::UNLIMITED.used_up(spent).is_empty());
    }

    fn budgets() -> impl Strategy<Value = Budget> {
        let part = || prop::option::of(any::<u64>());
        (part(), part(), part(), part()).prop_map(|(tokens, cost_micros, wall_ms, tool_calls)| Budget {
            tokens,
            cost_micros,
            wall_ms,
            tool_calls,
        })
    }

    fn amounts() -> impl Strategy<Value = ResourceUsage> {
        any::<[u64; 4]>().prop_map(|[tokens, cost_micros, wall_ms, tool_calls]| ResourceUsage {
            tokens,
            cost_micros,
            wall_ms,
            tool_calls,
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Fails if the shares add up to more than the rest of the budget, or if a limit is lost.
        #[test]
        fn shares_together_are_never_more_than_what_is_left(whole in budgets(), spent in amounts(), parts in 1_u32..50) {
            let parts = NonZeroU32::new(parts).unwrap();
            let (share, left) = (whole.left(spent).share(parts), whole.left(spent));
            for (share, left, whole) in [
                (share.tokens, left.tokens, whole.tokens),
                (share.cost_micros, left.cost_micros, whole.cost_micros),
                (share.wall_ms, left.wall_ms, whole.wall_ms),
                (share.tool_calls, left.tool_calls, whole.tool_calls),
            ] {
                prop_assert_eq!(share.is_some(), whole.is_some());
                let all = u128::from(share.unwrap_or(0)) * u128::from(parts.get());
                prop_assert!(all <= u128::from(left.unwrap_or(u64::MAX)));
                prop_assert!(left <= whole);
            }
        }

        /// Fails if the smaller of two budgets allows more than one of them.
        #[test]
        fn the_smallest_lets_pass_what_both_do(one in budgets(), two in budgets(), spent in amounts()) {
            let both = one.used_up(spent).is_empty() && two.used_up(spent).is_empty();
            prop_assert_eq!(one.smallest(two).used_up(spent).is_empty(), both);
            prop_assert_eq!(one.smallest(two), two.smallest(one));
            prop_assert_eq!(one.smallest(Budget::UNLIMITED), one);
        }

        /// Fails if a raised budget is still exhausted.
        #[test]
        fn a_raised_budget_has_something_left(limit in budgets(), used in any::<[u32; 4]>()) {
            let [tokens, cost_micros, wall_ms, tool_calls] = used.map(u64::from);
            let spent = ResourceUsage { tokens, cost_micros, wall_ms, tool_calls };
            prop_assert!(limit.raised(limit, spent, 1).used_up(spent).is_empty());
        }
    }
}
