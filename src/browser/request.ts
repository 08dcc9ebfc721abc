/** Sends the two requests of the kit, and interprets their responses. Only `E001_AUTH_FAILURE` means that a session has ended. */
import { bearer } from "./authorized-calls.ts";
import { deadline, type Realm, warn } from "./realm.ts";

/** The time limit of a request, in ms. The service responds much faster, but a proxy that holds a response back must not block the page. */
const TIMEOUT_MS = 15_000;

export type Outcome = {
  readonly accessToken?: string | undefined;
  /** Present if the service responded that nobody is signed in. */
  readonly ended?: true;
  /** The error or the status of the response that leaves the state unknown. */
  readonly cause?: unknown;
  /** The wait that the service requires; 0 if it named none. */
  readonly retryAfterMs?: number;
};

const SERVER_ERROR = 500;

type Body = { readonly data?: { readonly accessToken?: string }; readonly error?: { readonly code?: string } };

/** Sends a request, with the cookie alone or with an access token. It never rejects. @param closed aborts it before its time limit */
export async function send(realm: Realm, url: string, closed: AbortSignal, token?: string): Promise<Outcome> {
  const over = deadline(realm, TIMEOUT_MS, closed);
  try {
    const response = await realm.fetch(url, {
      method: token ? "DELETE" : "POST",
      // The type of `fetch` does not allow undefined, which means that there are none.
      headers: (token && { authorization: bearer(token) }) as never,
      credentials: "include",
      // A proof or a token must not reach the target of a redirect.
      redirect: "error",
      // The rotation or the logout is completed even if the page closes in the meantime.
      keepalive: true,
      signal: over.signal,
    });
    // A response of a proxy in place of the service is not valid JSON of this form.
    const body = (await response.json().catch(() => {})) as Body | undefined;
    // Only the token is taken: what responds in place of the service must not decide what this tab does next.
    if (response.ok && body?.data) return { accessToken: body.data.accessToken };
    if (body?.error?.code === "E001_AUTH_FAILURE") return { ended: true };
    // An outage passes, but other pages in place of the service stay: a wrong path, a proxy without a rule, the fallback of an application.
    if (!body?.error && response.status < SERVER_ERROR) warn(realm, `no service at ${url}`);
    const after = response.headers.get("retry-after") as never;
    // `Retry-After` is a number of seconds or a date.
    const ms = after * 1000 || Date.parse(after) - realm.Date.now();
    return { cause: response.status, retryAfterMs: ms > 0 ? ms : 0 };
  } catch (cause) {
    return { cause };
  } finally {
    over.abort();
  }
}
