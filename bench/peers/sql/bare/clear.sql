-- Jobs that are not finished are gone, and so is what they leave in the pages.
DELETE FROM bare WHERE state < 2;
VACUUM (ANALYZE) bare;
