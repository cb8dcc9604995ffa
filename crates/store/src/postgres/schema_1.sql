-- Locks are judged by the server's clock. STABLE, so that a comparison with it can use an index.
CREATE FUNCTION drydock_now() RETURNS BIGINT LANGUAGE SQL STABLE AS
$$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT $$;

CREATE TABLE plans (
    n BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT COLLATE "C" NOT NULL UNIQUE,
    phase TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    project TEXT COLLATE "C" NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    parent TEXT COLLATE "C",
    root TEXT COLLATE "C" NOT NULL,
    revision BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    body TEXT NOT NULL
);
-- Newest first under any one filter, without a sort; the number comes last in each index.
CREATE INDEX plans_by_phase ON plans (phase, n);
CREATE INDEX plans_by_state ON plans (state, n);
CREATE INDEX plans_by_project ON plans (project, n);
CREATE INDEX plans_by_action ON plans (action, n);

CREATE TABLE decisions (
    n BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT COLLATE "C" NOT NULL UNIQUE,
    plan TEXT COLLATE "C" NOT NULL REFERENCES plans (id),
    kind TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX decisions_by_plan ON decisions (plan, n);
-- A plan asks one thing at a time.
CREATE UNIQUE INDEX decisions_open_by_plan ON decisions (plan) WHERE status = 'open';
CREATE INDEX decisions_open ON decisions (n) WHERE status = 'open';

CREATE TABLE events (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- Given after the commit: the numbers of a sequence become visible out of order.
    seq BIGINT UNIQUE,
    at BIGINT NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    plan TEXT COLLATE "C",
    run TEXT COLLATE "C",
    revision BIGINT,
    details TEXT NOT NULL
);
CREATE INDEX events_by_plan ON events (plan, seq);
CREATE INDEX events_unnumbered ON events (id) WHERE seq IS NULL;

CREATE TABLE locks (
    scope TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    owner TEXT COLLATE "C",
    host TEXT NOT NULL,
    pid BIGINT NOT NULL,
    purpose TEXT NOT NULL,
    fence BIGINT NOT NULL,
    acquired_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (scope, key)
);
-- A free lock keeps its row, for its fence; those that are held are few.
CREATE INDEX locks_held ON locks (id) WHERE owner IS NOT NULL;

CREATE TABLE changesets (
    n BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT COLLATE "C" NOT NULL UNIQUE,
    plan TEXT COLLATE "C" NOT NULL REFERENCES plans (id),
    run TEXT COLLATE "C" NOT NULL,
    writer TEXT NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    opened_at BIGINT NOT NULL,
    entries BIGINT NOT NULL
);
CREATE INDEX changesets_by_plan ON changesets (plan, n);
CREATE INDEX changesets_open ON changesets (plan) WHERE state = 'open';

CREATE TABLE entries (
    changeset TEXT COLLATE "C" NOT NULL REFERENCES changesets (id),
    seq BIGINT NOT NULL,
    path TEXT NOT NULL,
    op TEXT COLLATE "C" NOT NULL,
    from_path TEXT,
    before TEXT,
    after TEXT,
    at BIGINT NOT NULL,
    PRIMARY KEY (changeset, seq)
);

CREATE TABLE outbox (
    plan TEXT COLLATE "C" PRIMARY KEY REFERENCES plans (id),
    effect TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    ready_at BIGINT NOT NULL,
    claimed_by TEXT
);
CREATE INDEX outbox_by_time ON outbox (ready_at);

CREATE TABLE requests (
    plan TEXT COLLATE "C" PRIMARY KEY REFERENCES plans (id),
    kind TEXT COLLATE "C" NOT NULL,
    reason TEXT NOT NULL,
    asked_by TEXT NOT NULL,
    at BIGINT NOT NULL
);

CREATE TABLE projects (
    name TEXT COLLATE "C" PRIMARY KEY,
    repo TEXT COLLATE "C" NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX projects_by_repo ON projects (repo);

CREATE TABLE actions (
    name TEXT COLLATE "C" PRIMARY KEY,
    body TEXT NOT NULL
);

CREATE TABLE invariants (
    scope TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (scope, name)
);
