-- Removes the check of edges and actors: any state may follow any other. Checks of new jobs go with the history.
DROP TRIGGER jobs_2_move ON jobs;
DROP TRIGGER jobs_4_complete ON jobs;
ALTER TABLE jobs
    DROP CONSTRAINT jobs_state_check,
    DROP CONSTRAINT jobs_next_attempt_at_check,
    DROP CONSTRAINT jobs_retry_count_check,
    DROP CONSTRAINT jobs_attempt_check;
