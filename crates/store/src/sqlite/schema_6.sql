-- Subplans are looked up by their parent, in the order in which they were made.
CREATE INDEX plans_by_parent ON plans (parent, n) WHERE parent IS NOT NULL;
CREATE INDEX plans_by_root ON plans (root, n) WHERE parent IS NOT NULL;
