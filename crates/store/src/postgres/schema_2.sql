-- How far each hook has been told of the feed; see delivery.rs.
CREATE TABLE deliveries (
    hook TEXT COLLATE "C" PRIMARY KEY,
    position BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    next_at BIGINT NOT NULL,
    claimed_by TEXT COLLATE "C",
    claimed_until BIGINT NOT NULL,
    delivered BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    last_error TEXT
);
