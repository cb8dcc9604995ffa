#!/bin/sh
# Makes the fixture of this folder with a binary of an earlier version:
#   make.sh BINARY sqlite
#   make.sh BINARY postgres postgres://USER@HOST:PORT/EMPTY_DATABASE
# README.md lists what is in it. Needs git, curl, gzip, sqlite3, and psql and pg_dump for PostgreSQL.
set -eu
binary=$1 kind=$2 here=$(cd "$(dirname "$0")" && pwd)
# Absolute paths are stored, so the folder is always the same one; the test replaces it.
root=/tmp/drydock-old-store
rm -rf "$root" && mkdir -p "$root/home/.config/drydock" "$root/store"
export HOME=$root/home XDG_CONFIG_HOME=$root/home/.config XDG_DATA_HOME=$root/data USER=tester
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=Test GIT_AUTHOR_EMAIL=test@example.org
export GIT_COMMITTER_NAME=Test GIT_COMMITTER_EMAIL=test@example.org
case $kind in
sqlite) export DRYDOCK_STORE=$root/store/drydock.db worktrees=$root/store/worktrees ;;
postgres) export DRYDOCK_STORE=$3 worktrees=$root/data/drydock/worktrees ;;
esac
cd "$root"

# Runs a command, requires its exit code, and leaves its output in $said.
expect() {
    wanted=$1 && shift
    code=0 && said=$("$binary" --json "$@" 2>"$root/stderr") || code=$?
    [ "$code" = "$wanted" ] || { echo "$*: exit code $code: $said" && cat "$root/stderr" && exit 1; }
}
# Prints the first id of a kind in $said.
id() { printf %s "$said" | grep -o "\"$1-[0-9a-z]*\"" | head -n 1 | tr -d '"'; }
# Makes a plan and leaves its id in $plan.
use() { expect 0 plan use "$@" --project team && plan=$(id pln); }
label() { echo "$1=$plan" >>"$root/plans"; }

cat >home/.config/drydock/config.toml <<'TOML'
[locks]
ttl = "5s"
[agents.writer]
protocol = "command"
command = ["sh", "-c", '''task=$(printf %s "$DRYDOCK_TASK" | sed -n 's/.*"task":"\([^"]*\)".*/\1/p'); eval "$task"''']
[agents.asker]
protocol = "command"
command = ["sh", "-c", '''echo grey > colour.txt; echo '{"drydock":"ask","question":"red or blue?","options":["red","blue"]}' ''']
[agents.limited]
protocol = "command"
command = ["sh", "-c", '''echo part > limited.txt; echo '{"drydock":"rate_limited","retry_after":86000}'; sleep 60''']
[agents.spender]
protocol = "command"
command = ["sh", "-c", '''echo part > spent.txt; echo '{"drydock":"usage","tokens":500}'; sleep 60''']
[agents.refuser]
protocol = "command"
command = ["sh", "-c", '''echo '{"drydock":"verdict","verdict":"refuse","reason":"too short"}' ''']
[agents.thinker]
protocol = "command"
command = ["sh", "-c", "true"]
[agents.splitter]
protocol = "command"
command = ["sh", "-c", '''mkdir -p .drydock && echo '{"choices":[{"question":"how?","chosen":"in parts","rationale":"it is large","confidence":0.5}],"subplans":[{"name":"a","task":"echo a > a.txt","paths":["a.txt"]},{"name":"b","task":"colour","agent":"asker","max_attempts":2,"timeout_s":600},{"name":"c","task":"echo c > c.txt","after":["b"]}]}' > .drydock/strategy.json''']
[agents.clasher]
protocol = "command"
command = ["sh", "-c", '''mkdir -p .drydock && echo '{"subplans":[{"name":"one","task":"echo one > same.txt"},{"name":"two","task":"echo two > same.txt"}]}' > .drydock/strategy.json''']
[[hooks]]
name = "pager"
command = ["true"]
TOML

git init -q -b main repo
git -C repo config user.name Test
git -C repo config user.email test@example.org
printf '# Example\n' >repo/README.md
git -C repo add -A && git -C repo commit -q -m first
git clone -q --bare repo remote.git
git -C repo remote add origin "$root/remote.git"
git clone -q remote.git other

expect 0 project add team --repo "$root/repo" --remote origin
action() {
    printf 'name = "%s"\ndescription = "{{ what }}"\n%s\n[arguments.what]\ndefault = "nothing"\n' "$1" "$2" >action.toml
    expect 0 action create --file action.toml
}
agents() { printf '[agents]\nstrategize = "%s"\nexecute = "%s"' "$1" "$2"; }
action do "$(agents thinker writer)"
action ask "$(agents thinker asker)"
action split "$(agents splitter writer)"
action clash "$(agents clasher writer)"
action limited "$(agents thinker limited)"
action spend "$(agents thinker spender)"
action check "$(agents thinker writer)
[[validations]]
name = \"never\"
command = \"test -e fixed.txt\""
action review "$(agents thinker writer)
reviewers = [{ agent = \"refuser\", critical = true }]"
expect 0 invariant add small --scope project:team --cel 'diff.lines_changed < 500'
expect 0 invariant add polite --scope global --text 'be polite'
expect 0 token create laptop --role reader

steps() { for phase in "$@"; do expect 0 plan "$phase" "$plan"; done; }
use do --arg what='echo applied > applied.txt' --profile auto && label applied && steps strategize execute apply
use do --arg what='echo gate > gate.txt' && label gate && steps strategize execute
use ask --profile auto && label question && steps strategize && expect 6 plan execute "$plan"
use do --arg what='exit 3' --profile auto && label errored && steps strategize && expect 1 plan execute "$plan"
use split --profile auto && label subplans && steps strategize && expect 6 plan execute "$plan"
use clash --profile auto && label conflict && steps strategize && expect 6 plan execute "$plan"
use check --arg what='echo check > check.txt' --profile auto && label validation && steps strategize && expect 5 plan execute "$plan"
use review --arg what='echo review > review.txt' --profile auto && label review && steps strategize && expect 6 plan execute "$plan"
use spend --profile auto --budget tokens=100 && label budget && steps strategize && expect 6 plan execute "$plan"
use do --profile auto && label cancelled && expect 0 plan cancel "$plan" --reason 'not needed'
use do --arg what='echo prompted > prompted.txt' && label prompted && expect 0 plan prompt "$plan" 'mind the tests'

# Waits for a rate limit: the command would wait as well, so it is queued for a worker.
use limited --profile auto && label limited && steps strategize
"$binary" plan execute "$plan" >/dev/null 2>&1 &
waits=$!
until sleep 0.2 && expect 0 plan show "$plan" && printf %s "$said" | grep -q '"times"'; do :; done
kill -INT "$waits" && wait "$waits" || true

# A divergence with its backup: a commit by hand in the worktree, and another one on the remote.
use do --arg what='echo pinned > pinned.txt' && label diverged && steps strategize
expect 0 plan show "$plan" && tree=$worktrees/$plan/$(id run)/tree
echo 'by hand' >"$tree/README.md" && git -C "$tree" commit -q -a -m 'by hand'
git -C other fetch -q && git -C other checkout -q -B theirs origin/main
echo theirs >other/README.md && git -C other commit -q -a -m 'others change README.md'
git -C other push -q origin "theirs:drydock/$plan/work"
expect 6 plan sync "$plan"

# A run whose process was killed.
use do --arg what='echo killed > killed.txt; touch began; sleep 60' --profile auto && label killed && steps strategize
"$binary" plan execute "$plan" >/dev/null 2>&1 &
runs=$!
until sleep 0.2 && find "$worktrees/$plan" -name began | grep -q .; do :; done
kill -KILL "$runs" && wait "$runs" || true

# An answer that is kept under its key.
"$binary" serve --listen 127.0.0.1:0 --workers 0 --tokens optional >serve.log 2>&1 &
server=$!
until sleep 0.2 && grep -q 'http://127.0.0.1:[0-9]' serve.log; do :; done
at=$(grep -o 'http://127.0.0.1:[0-9]*' serve.log | head -n 1)
said=$(curl -s -X POST -H 'Content-Type: application/json' -H 'Idempotency-Key: k1' "$at/api/v1/plans" \
    -d '{"action":"do","project":"team","arguments":{"what":"echo keyed > keyed.txt"}}')
plan=$(id pln) && [ -n "$plan" ] && label keyed
kill -TERM "$server" && wait "$server" || true

# The name of this machine goes.
host=$(hostname)
elsewhere() { echo "UPDATE $1 SET $2 = replace($2, '$host', 'elsewhere');"; }
private="$(elsewhere locks host; elsewhere locks owner; elsewhere outbox claimed_by; elsewhere answers claimed_by; elsewhere deliveries claimed_by)"
mkdir -p "$here/$kind" && cp plans "$here/$kind/plans"
git -C repo bundle create -q "$here/$kind/repo.bundle" --all
git -C remote.git bundle create -q "$here/$kind/remote.bundle" --all
case $kind in
sqlite)
    rm -f "$here/$kind/store.db"*
    sqlite3 "$DRYDOCK_STORE" "$private PRAGMA wal_checkpoint(TRUNCATE);" "VACUUM INTO '$here/$kind/store.db'" >/dev/null
    unsafe=$(strings "$here/$kind/store.db" | grep -c -w -e "$host" || true)
    gzip -9 -n "$here/$kind/store.db"
    ;;
postgres)
    psql -q "$DRYDOCK_STORE" -c "$private"
    pg_dump --inserts --no-owner --no-acl --dbname="$DRYDOCK_STORE" | grep -v -e '^--' -e '^$' -e '^\\' >"$here/$kind/store.sql"
    unsafe=$(grep -c -w -e "$host" "$here/$kind/store.sql" || true)
    gzip -9 -n -f "$here/$kind/store.sql"
    ;;
esac
[ "$unsafe" = 0 ] || echo "the name of this machine is in the fixture" >&2
ls -l "$here/$kind"
