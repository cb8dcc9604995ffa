-- Which process took a lock or a claim, as JSON: it proves that the taker is gone when the process is.
ALTER TABLE locks ADD COLUMN process TEXT COLLATE "C";
ALTER TABLE outbox ADD COLUMN process TEXT COLLATE "C";
-- What leads to Apply comes before what leads to Execute, and that before Strategize; then the oldest.
ALTER TABLE outbox ADD COLUMN rank BIGINT NOT NULL DEFAULT 2;
UPDATE outbox SET rank = CASE
    WHEN effect IN ('{"drive_phase":"apply"}', '"advance_to_apply"') THEN 0
    WHEN effect IN ('{"drive_phase":"execute"}', '"advance_to_execute"', '"tend"') THEN 1
    ELSE 2 END;
DROP INDEX outbox_by_time;
CREATE INDEX outbox_by_rank ON outbox (rank, ready_at);
-- The latest enforcement of the rules for each plan, whether they held or blocked.
CREATE TABLE enforcements (
    plan TEXT COLLATE "C" PRIMARY KEY,
    revision BIGINT NOT NULL,
    blocks BIGINT NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX enforcements_that_block ON enforcements (plan) WHERE blocks = 1;
-- The batch that an event was appended with: one that was committed before its answer was lost is not appended again.
ALTER TABLE events ADD COLUMN batch TEXT COLLATE "C";
CREATE UNIQUE INDEX events_by_batch ON events (plan, batch) WHERE batch IS NOT NULL;
