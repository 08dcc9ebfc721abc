/** Parts of SQL statements that find the sessions which ended in a logout of a whole subject, or of everyone. */

/** Selects the time of the last logout of everyone: all sessions that were created up to then have ended. */
export const ENDED_UNTIL = "(SELECT ended_until FROM store)";

/** Computes whether a session ended in a logout of everyone (1), in a logout of its subject (2), or in neither (0). */
export const ENDED = `CASE
  WHEN created_at <= ${ENDED_UNTIL} THEN 1
  WHEN EXISTS (
    SELECT 1 FROM subject_ends AS e
    WHERE e.subject = sessions.subject AND sessions.created_at <= e.created_until AND sessions.sid <> e.spared
  ) THEN 2
  ELSE 0 END`;
