-- Plans are found by the words of their task, id, action and project, none of which ever changes. The index keeps no text
-- of its own. A body that cannot be read is found by the rest.
CREATE VIRTUAL TABLE plan_words USING fts5(
    words, content='', prefix='2 3', tokenize='unicode61 remove_diacritics 0'
);
INSERT INTO plan_words (rowid, words)
    SELECT n, concat_ws(' ', id, action, project, iif(json_valid(body), body ->> '$.spec.task', '')) FROM plans;
CREATE TRIGGER plans_words AFTER INSERT ON plans BEGIN
    INSERT INTO plan_words (rowid, words) VALUES (
        NEW.n,
        concat_ws(' ', NEW.id, NEW.action, NEW.project, iif(json_valid(NEW.body), NEW.body ->> '$.spec.task', ''))
    );
END;
-- A board shows the plans that are nobody's subplan.
CREATE INDEX plans_top_by_state ON plans (state, n) WHERE parent IS NULL;
