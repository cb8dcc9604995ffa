-- Who may ask over the network; see token.rs. Of a token only its digest is kept.
CREATE TABLE tokens (
    id TEXT COLLATE "C" PRIMARY KEY,
    digest TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    role TEXT COLLATE "C" NOT NULL,
    plan TEXT COLLATE "C",
    run TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    last_used_at BIGINT,
    revoked_at BIGINT
);
-- What is done with a token is recorded under its name, so no two that count share one.
CREATE UNIQUE INDEX tokens_by_name ON tokens (name) WHERE revoked_at IS NULL;
