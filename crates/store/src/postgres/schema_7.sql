-- Plans are found by the words of their task, id, action and project, none of which ever changes: a table of their own, so
-- that a transition does not write them again. Signs part words; a body that cannot be read is found by the rest.
CREATE FUNCTION drydock_words(id TEXT, action TEXT, project TEXT, body TEXT) RETURNS TSVECTOR LANGUAGE plpgsql IMMUTABLE AS
$$
DECLARE
    task TEXT := '';
BEGIN
    BEGIN
        task := coalesce(body::JSON #>> '{spec,task}', '');
    EXCEPTION WHEN OTHERS THEN
        task := '';
    END;
    RETURN to_tsvector('simple', regexp_replace(concat_ws(' ', id, action, project, left(task, 100000)), '[^a-zA-Z0-9\u0080-\uFFFF]+', ' ', 'g'));
END
$$;
CREATE TABLE plan_words (
    n BIGINT PRIMARY KEY REFERENCES plans (n) ON DELETE CASCADE,
    words TSVECTOR NOT NULL
);
INSERT INTO plan_words SELECT n, drydock_words(id, action, project, body) FROM plans;
CREATE INDEX plan_words_by_word ON plan_words USING GIN (words);
CREATE FUNCTION drydock_plan_words() RETURNS TRIGGER LANGUAGE plpgsql AS
$$
BEGIN
    INSERT INTO plan_words VALUES (NEW.n, drydock_words(NEW.id, NEW.action, NEW.project, NEW.body));
    RETURN NULL;
END
$$;
CREATE TRIGGER plans_words AFTER INSERT ON plans FOR EACH ROW EXECUTE FUNCTION drydock_plan_words();
-- A board shows the plans that are nobody's subplan.
CREATE INDEX plans_top_by_state ON plans (state, n) WHERE parent IS NULL;
