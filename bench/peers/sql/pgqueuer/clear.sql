-- Jobs that are not finished are gone; this table has no others.
TRUNCATE pgqueuer;
