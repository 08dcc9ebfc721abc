import type { Audit, Requester } from "../audit.ts";
import type { ForgetOutcome, SessionStore } from "../ports.ts";

type Deps = {
  readonly store: Pick<SessionStore, "endAll" | "forget">;
  readonly audit: Audit;
  /** Resolves when the signals of a subject are delivered, or after a limited time. Absent if there are no signals. */
  readonly delivered?: ((subject: string) => Promise<void>) | undefined;
};

export type Forgotten = ForgetOutcome & { readonly sessions: number };

/**
 * Ends the sessions that a subject has now, gives receivers of signals the time to learn that, and removes what the store keeps of the
 * subject. Nothing that is recorded of this names the subject: the endings have no due records, and their events are not kept.
 */
export async function forgetSubject(
  { store, audit, delivered }: Deps,
  subject: string,
  requester: Requester,
): Promise<Forgotten> {
  const outcome = await store.endAll(subject, "revoked_subject");
  if (!outcome.ok) throw new Error("no actor was named");
  for (const sid of outcome.ended) audit({ event: "session_ended", sid, reason: "revoked_subject" }, requester);
  await delivered?.(subject);
  const forgotten = { sessions: outcome.count, ...(await store.forget(subject)) };
  audit({ event: "subject_forgotten", ...forgotten }, requester);
  return forgotten;
}
