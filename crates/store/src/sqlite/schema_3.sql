-- The answers to requests that must not be carried out twice; see answer.rs.
CREATE TABLE answers (
    key TEXT PRIMARY KEY,
    request TEXT NOT NULL,
    seed TEXT NOT NULL,
    claimed_by TEXT NOT NULL,
    claimed_until INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    -- Null until there is one.
    status INTEGER,
    media TEXT,
    body TEXT
) STRICT;
CREATE INDEX answers_by_time ON answers (expires_at);
