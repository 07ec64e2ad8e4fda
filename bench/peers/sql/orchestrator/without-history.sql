-- Nothing is recorded; only the notification is left of what follows a change.
CREATE OR REPLACE FUNCTION jobs_record() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM after WHERE state = 'QUEUED') THEN
        PERFORM pg_notify('jobs', '');
    END IF;
    RETURN NULL;
END $$;
DROP TRIGGER jobs_7_record_new ON jobs;
