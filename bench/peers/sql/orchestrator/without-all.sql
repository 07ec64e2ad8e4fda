-- A table and nothing around it but its indexes and the notification.
\ir without-edges.sql
\ir without-fencing.sql
\ir without-history.sql
