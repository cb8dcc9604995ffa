CREATE TABLE plans (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    phase TEXT NOT NULL,
    state TEXT NOT NULL,
    project TEXT NOT NULL,
    action TEXT NOT NULL,
    parent TEXT,
    root TEXT NOT NULL,
    revision INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    body TEXT NOT NULL
) STRICT;
-- Newest first under any one filter, without a sort; the number comes last in each index.
CREATE INDEX plans_by_phase ON plans (phase, n);
CREATE INDEX plans_by_state ON plans (state, n);
CREATE INDEX plans_by_project ON plans (project, n);
CREATE INDEX plans_by_action ON plans (action, n);

CREATE TABLE decisions (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    plan TEXT NOT NULL REFERENCES plans (id),
    kind TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    body TEXT NOT NULL
) STRICT;
CREATE INDEX decisions_by_plan ON decisions (plan, n);
-- A plan asks one thing at a time.
CREATE UNIQUE INDEX decisions_open_by_plan ON decisions (plan) WHERE status = 'open';
CREATE INDEX decisions_open ON decisions (n) WHERE status = 'open';

CREATE TABLE events (
    -- One writer at a time takes the next number, and gives it back when it fails: no gap, in the order of commits.
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    plan TEXT,
    run TEXT,
    revision INTEGER,
    details TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_plan ON events (plan, seq);

CREATE TABLE locks (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    id TEXT NOT NULL,
    owner TEXT,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    purpose TEXT NOT NULL,
    fence INTEGER NOT NULL,
    acquired_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
) STRICT;
-- A free lock keeps its row, for its fence; those that are held are few.
CREATE INDEX locks_held ON locks (id) WHERE owner IS NOT NULL;

CREATE TABLE changesets (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    plan TEXT NOT NULL REFERENCES plans (id),
    run TEXT NOT NULL,
    writer TEXT NOT NULL,
    state TEXT NOT NULL,
    opened_at INTEGER NOT NULL,
    entries INTEGER NOT NULL
) STRICT;
CREATE INDEX changesets_by_plan ON changesets (plan, n);
CREATE INDEX changesets_open ON changesets (plan) WHERE state = 'open';

CREATE TABLE entries (
    changeset TEXT NOT NULL REFERENCES changesets (id),
    seq INTEGER NOT NULL,
    path TEXT NOT NULL,
    op TEXT NOT NULL,
    from_path TEXT,
    before TEXT,
    after TEXT,
    at INTEGER NOT NULL,
    PRIMARY KEY (changeset, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox (
    plan TEXT PRIMARY KEY REFERENCES plans (id),
    effect TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    ready_at INTEGER NOT NULL,
    claimed_by TEXT
) STRICT;
CREATE INDEX outbox_by_time ON outbox (ready_at);

CREATE TABLE requests (
    plan TEXT PRIMARY KEY REFERENCES plans (id),
    kind TEXT NOT NULL,
    reason TEXT NOT NULL,
    asked_by TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;

CREATE TABLE projects (
    name TEXT PRIMARY KEY,
    repo TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT;
CREATE INDEX projects_by_repo ON projects (repo);

CREATE TABLE actions (
    name TEXT PRIMARY KEY,
    body TEXT NOT NULL
) STRICT;

CREATE TABLE invariants (
    scope TEXT NOT NULL,
    name TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (scope, name)
) STRICT;
