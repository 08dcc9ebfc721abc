/** The two requests of the kit, and what their responses mean. Only `E001_AUTH_FAILURE` says that a session has ended. */
import { deadline, type Realm } from "./realm.ts";

/** The time limit of a request, ms: longer than any honest response takes. A proxy that holds a response must not stop the page. */
const TIMEOUT_MS = 15_000;

export type Outcome = {
  readonly accessToken?: string | undefined;
  /** The service says that nobody is signed in. */
  readonly ended?: true;
  /** Why it cannot be known now. */
  readonly cause?: unknown;
  /** Zero where the service named no time. */
  readonly retryAfterMs?: number;
};

type Body = { readonly data?: { readonly accessToken?: string }; readonly error?: { readonly code?: string } };

/**
 * Sends a request, with the cookie alone or with an access token. Never rejects.
 *
 * @param closed aborts it before its time is up
 */
export async function send(
  realm: Realm,
  url: string,
  closed: AbortSignal,
  method = "POST",
  headers = {},
): Promise<Outcome> {
  const over = deadline(realm, TIMEOUT_MS, closed);
  try {
    const response = await realm.fetch(url, {
      method,
      headers,
      credentials: "include",
      // A page that closes meanwhile still completes the rotation, or the logout.
      keepalive: true,
      signal: over.signal,
    });
    // Whatever a proxy responds in place of the service is no JSON of ours.
    const body = (await response.json().catch(() => {})) as Body | undefined;
    if (body?.data) return body.data;
    if (body?.error?.code === "E001_AUTH_FAILURE") return { ended: true };
    const after = response.headers.get("retry-after") as never;
    // `Retry-After` is a number of seconds or a date.
    const ms = after * 1000 || Date.parse(after) - realm.Date.now() || 0;
    return { cause: response.status, retryAfterMs: Math.max(0, ms) };
  } catch (cause) {
    return { cause };
  } finally {
    over.abort();
  }
}
