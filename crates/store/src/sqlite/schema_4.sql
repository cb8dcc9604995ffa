-- Who may ask over the network; see token.rs. Of a token only its digest is kept.
CREATE TABLE tokens (
    id TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    plan TEXT,
    run TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    last_used_at INTEGER,
    revoked_at INTEGER
) STRICT;
-- What is done with a token is recorded under its name, so no two that count share one.
CREATE UNIQUE INDEX tokens_by_name ON tokens (name) WHERE revoked_at IS NULL;
