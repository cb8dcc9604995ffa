//! What a strategist tells by lines: nothing of it is lost when its run is cut short, and nothing vanishes that is wrong.

use drydock_testkit::wait;
use serde_json::{Value, json};

use crate::fanning::{answer, subplan, world};
use crate::world::{Kind, LIMIT, World, list, text};

/// Makes the strategist print these lines, another list in each run; the last list from then on.
fn tells(world: &World, runs: &[Vec<Value>]) {
    let count = world.place("runs");
    for (number, lines) in runs.iter().enumerate() {
        let lines: Vec<_> =
            lines.iter().map(|line| line.as_str().map_or_else(|| line.to_string(), str::to_owned)).collect();
        world.write(&format!("told-{}", number + 1), &(lines.join("\n") + "\n"));
    }
    let last = runs.len();
    let script = format!(
        "echo x >> {count}; n=$(wc -l < {count}); [ $n -gt {last} ] && n={last}; cat {}$n; \
         grep -q -e '\"ask\"' -e rate_limited {}$n && sleep 600; true",
        world.place("told-"),
        world.place("told-")
    );
    world.agent("thinker", &script);
}

fn asks_for(name: &str, task: &str) -> Value {
    json!({ "drydock": "subplan", "name": name, "task": task })
}

fn asks() -> Value {
    json!({ "drydock": "ask", "question": "Which?", "options": [{ "id": "a", "label": "A" }] })
}

on_both! {
    /// Breaks when a question or a rate limit loses what was told before it, or when a later word on a piece does not count.
    fn what_was_told_before_a_question_or_a_limit_is_kept(kind: Kind) {
        let world = world(kind, &json!({}));
        let chose = |question: &str| json!({ "drydock": "choice", "question": question, "chosen": "this" });
        tells(&world, &[
            vec![asks_for("x", "echo x > x.txt"), asks_for("w", "false"), chose("first"), asks()],
            vec![asks_for("y", "echo y > y.txt"), json!({ "drydock": "rate_limited", "retry_after": 1 })],
            vec![asks_for("z", "echo z > z.txt"), asks_for("w", "echo w > w.txt"), chose("last")],
        ]);
        let id = world.plan(&["--profile", "auto"]);
        world.drydock(&["plan", "strategize", &id]).expect(6);
        answer(&world, &id, "a");
        world.ok(&["plan", "strategize", &id]);
        let tree = world.ok(&["plan", "tree", &id])["tree"].clone();
        let named = |key: &str, name: &str| list(&tree[key]).iter().map(|one| text(&one[name])).collect::<Vec<_>>();
        assert_eq!(named("subplans", "name"), ["x", "y", "z", "w"]);
        assert_eq!(named("choices", "question"), ["first", "last"]);
        world.ok(&["plan", "execute", &id]);
        world.ok(&["plan", "apply", &id]);
        assert_eq!(world.repo.git(&["show", "main:w.txt"]), "w");
        assert_eq!(world.repo.git(&["show", "main:x.txt"]), "x");
    }
}

/// N11. Breaks when a subplan of an interrupted strategist is put beside those of the next run, which was not told of it, or when
/// its choices are lost.
#[test]
fn subplans_of_an_interrupted_strategist_are_not_put_beside_those_of_the_next() {
    let world = world(Kind::Sqlite, &json!({}));
    let chose = json!({ "drydock": "choice", "question": "first", "chosen": "this" });
    world.write("told", &format!("{}\n{chose}\n", asks_for("x", "echo x > x.txt")));
    world.agent("thinker", &format!("cat {}; sleep 600", world.place("told")));
    let id = world.plan(&["--profile", "auto"]);
    let running = world.spawn(&["plan", "strategize", &id]);
    wait::until("both lines", LIMIT, || {
        (world.count(&id, "agent.subplan") == 1 && world.count(&id, "agent.choice") == 1).then_some(())
    });
    running.terminate();
    running.wait(LIMIT);
    tells(&world, &[vec![asks_for("all", "echo x > x.txt")]]);
    world.ok(&["plan", "strategize", &id]);
    let tree = world.ok(&["plan", "tree", &id])["tree"].clone();
    let named =
        |key: &str, name: &str| list(&tree[key]).iter().map(|one| text(&one[name])).collect::<Vec<_>>();
    assert_eq!(named("subplans", "name"), ["all"]);
    assert_eq!(named("choices", "question"), ["first"]);
}

/// Breaks when what one visit to Strategize was told counts in the next one, which tells all of it anew.
#[test]
fn what_was_told_before_a_revert_is_not_kept() {
    let world = world(Kind::Sqlite, &json!({}));
    tells(
        &world,
        &[vec![asks_for("x", "true"), asks()], vec![asks_for("y", "true")], vec![asks_for("z", "true")]],
    );
    let id = world.plan(&["--profile", "auto"]);
    world.drydock(&["plan", "strategize", &id]).expect(6);
    answer(&world, &id, "a");
    world.ok(&["plan", "strategize", &id]);
    world.ok(&["plan", "execute", &id]);
    world.ok(&["plan", "revert", &id, "--reason", "otherwise"]);
    world.ok(&["plan", "strategize", &id]);
    let tree = world.ok(&["plan", "tree", &id])["tree"].clone();
    let open = list(&tree["subplans"]).into_iter().filter(|one| one["fate"] == "open");
    assert_eq!(open.map(|one| text(&one["name"])).collect::<Vec<_>>(), ["z"]);
}

/// Breaks when a piece that cannot be read is left out of a strategy that then seems whole.
#[test]
fn a_piece_told_with_a_mistake_fails_the_strategy() {
    let world = world(Kind::Sqlite, &json!({}));
    let good = asks_for("p", "true");
    let mut timeout = asks_for("q", "true");
    timeout["timeout"] = json!(5);
    for (lines, said) in [
        (vec![good.clone(), timeout], vec!["\"name\":\"q\"", "unknown field `timeout`"]),
        (vec![good.clone(), asks_for("p", "false")], vec!["\"task\":\"false\"", "two subplans are named p"]),
        (
            vec![good.clone(), json!("{\"drydock\":\"subplan\",\"name\":\"q\"")],
            vec!["\"name\":\"q\"", "not valid JSON"],
        ),
    ] {
        tells(&world, &[lines]);
        let id = world.plan(&["--profile", "auto"]);
        let failed = world.drydock(&["plan", "strategize", &id]).expect(1);
        let error = failed.json["error"]["text"].as_str().unwrap_or_default().to_owned();
        assert!(said.iter().all(|said| error.contains(said)), "{said:?}: {error}");
        assert_eq!(world.show(&id)["error"]["class"], "strategy_invalid");
    }
    tells(&world, &[vec![good.clone(), good]]);
    let id = world.plan(&["--profile", "auto"]);
    world.ok(&["plan", "strategize", &id]);
    assert_eq!(subplan(&world, &id, "p")["fate"], "open", "said twice in the same words it is one piece");
}
