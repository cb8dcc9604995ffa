-- The answers to requests that must not be carried out twice; see answer.rs.
CREATE TABLE answers (
    key TEXT COLLATE "C" PRIMARY KEY,
    request TEXT COLLATE "C" NOT NULL,
    seed TEXT COLLATE "C" NOT NULL,
    claimed_by TEXT COLLATE "C" NOT NULL,
    claimed_until BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    -- Null until there is one.
    status BIGINT,
    media TEXT,
    body TEXT
);
CREATE INDEX answers_by_time ON answers (expires_at);
