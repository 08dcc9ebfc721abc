/** Measures how soon an isolate in workerd, which polls for revocations, learns of logouts. */
import { startRelay } from "../server/relay.ts";
import { type Service, startService } from "../support/service.ts";
import { admin, bearer, logIn, message, openAdmin } from "../support/sessions.ts";
import type { Live } from "./suite.ts";
import { startWorkerd } from "./workerd.ts";

export type Edge = Awaited<ReturnType<typeof startEdge>>;

/** Starts a service and an isolate that polls it through a relay, which can fail. */
export async function startEdge(times: Required<Pick<Live, "pollIntervalMs" | "maxStalenessMs">>) {
  const service = await startService({ LOG_LEVEL: "silent" });
  const relay = await startRelay(service.adminUrl);
  const isolate = await startWorkerd();
  const { adminToken, publicUrl } = service;
  await isolate.run("follow", { adminUrl: relay.url, adminToken, issuer: publicUrl, ...times } satisfies Live);
  return {
    service,
    relay,
    /** Returns the subject of the token if it is accepted, otherwise the reason of the refusal. */
    verdictOf: (token: string) => isolate.run("verify", token),
    async stop() {
      await isolate.stop();
      relay.close();
      await service.stop();
    },
  };
}

/** Ends a session. Returns the time of the acknowledgement, by performance.now(). */
export async function end(service: Service, sessionId: string): Promise<number> {
  message(await openAdmin(service).call(admin.revokeSession, { sessionId }, bearer(service.adminToken)));
  return performance.now();
}

type DeadToken = {
  /** The time from the acknowledgement of the logout to the sending of the last accepted request, in ms; 0 if no request was accepted. */
  readonly acceptedForMs: number;
  /** The last verdict of the isolate. */
  readonly verdict: unknown;
};

/**
 * Logs somebody in and out, and presents the token again and again until `isOver`.
 * @param pause is awaited before each request
 */
export async function present(
  { service, verdictOf }: Edge,
  isOver: (verdict: unknown, sinceMs: number) => boolean,
  pause: () => Promise<unknown> = async () => {},
): Promise<DeadToken> {
  const { accessToken, sid, subject } = await logIn(service);
  const before = await verdictOf(accessToken);
  if (before !== subject) throw new Error(`before the logout: ${before}`);
  const endedAtMs = await end(service, sid);
  for (let acceptedForMs = 0; ; ) {
    await pause();
    const sinceMs = performance.now() - endedAtMs;
    const verdict = await verdictOf(accessToken);
    if (verdict === subject) acceptedForMs = sinceMs;
    if (isOver(verdict, sinceMs)) return { acceptedForMs, verdict };
  }
}
