-- Leads to the schema sha256:0f525980382034cc. A migration is never edited once it was accepted.

-- A session keeps the plan by which it writes the history, and made it for the rows of its first statement. Where
-- those were few it went through all rows for each row ever after.
ALTER FUNCTION jobs_record() SET enable_nestloop = off;
