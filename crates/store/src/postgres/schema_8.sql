-- A link knows the token that made it, and the session that it becomes knows it too: both end with it.
ALTER TABLE tokens ADD COLUMN made_by TEXT COLLATE "C";
CREATE INDEX tokens_by_maker ON tokens (made_by) WHERE made_by IS NOT NULL;
-- Sessions so far are known by their cookie alone, which any port of the host is sent. They end here.
UPDATE tokens SET revoked_at = drydock_now() WHERE kind = 'session' AND revoked_at IS NULL;
