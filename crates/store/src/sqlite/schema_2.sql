-- How far each hook has been told of the feed; see delivery.rs.
CREATE TABLE deliveries (
    hook TEXT PRIMARY KEY,
    position INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    next_at INTEGER NOT NULL,
    claimed_by TEXT,
    claimed_until INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    last_error TEXT
) STRICT;
