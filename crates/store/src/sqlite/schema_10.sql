-- The holder of a plan commits a request in the caller's place, so it needs the caller's authority (N5).
-- Requests of earlier versions are at most as old as one run; the engine's authority closes no decision.
ALTER TABLE requests ADD COLUMN asked_via TEXT NOT NULL DEFAULT 'drydock';
ALTER TABLE requests ADD COLUMN authority TEXT NOT NULL DEFAULT 'engine';
