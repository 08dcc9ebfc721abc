/** Parts of SQL statements that find sessions which ended together with others: in a logout of a subject or of everyone. */

/** The time of creation up to which all sessions have ended. */
export const ENDED_UNTIL = "(SELECT ended_until FROM store)";

/** How a session ended: with all others (1), with those of its subject (2), or not with others (0). */
export const ENDED = `CASE
  WHEN created_at <= ${ENDED_UNTIL} THEN 1
  WHEN EXISTS (
    SELECT 1 FROM subject_ends AS e
    WHERE e.subject = sessions.subject AND sessions.created_at <= e.created_until AND sessions.sid <> e.spared
  ) THEN 2
  ELSE 0 END`;
