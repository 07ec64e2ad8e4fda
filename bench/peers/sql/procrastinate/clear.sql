-- Jobs that are not finished are gone, and so is what they leave in the pages.
DELETE FROM procrastinate_jobs WHERE status IN ('todo', 'doing');
VACUUM (ANALYZE) procrastinate_jobs, procrastinate_events;
