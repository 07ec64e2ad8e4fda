-- Removes the history; after a change there is only the notification.
CREATE OR REPLACE FUNCTION jobs_record() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM after WHERE state = 'QUEUED') THEN
        PERFORM pg_notify('jobs', '');
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION jobs_record_new() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('app.at_once', true) <> '' THEN
        PERFORM pg_notify('jobs', '');
    END IF;
    RETURN NULL;
END $$;
