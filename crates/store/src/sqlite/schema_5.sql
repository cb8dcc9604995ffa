-- How the secret of a token is shown: with each request, by a browser, or once for signing in; see token.rs.
ALTER TABLE tokens ADD COLUMN kind TEXT NOT NULL DEFAULT 'bearer';
