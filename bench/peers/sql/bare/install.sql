-- Minimal queue: no events, no notification, no retries, no owner.
CREATE TABLE bare (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    state smallint NOT NULL DEFAULT 0,
    payload jsonb NOT NULL
);
CREATE INDEX bare_waiting ON bare (id) WHERE state = 0;
