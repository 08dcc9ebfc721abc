/** The two requests of the kit, and what their responses mean. Only `E001_AUTH_FAILURE` says that a session has ended. */
import { type Realm, sleep } from "./realm.ts";

/** Longer than any honest response takes; a proxy that holds a response must not hold the page. */
const TIMEOUT_MS = 15_000;

export type Outcome =
  | (Details & { readonly ok: true })
  /** Without a cause: the session has ended. With one, it cannot be known now. */
  | (Details & { readonly ok: false });

type Details = {
  readonly accessToken?: string | undefined;
  readonly cause?: unknown;
  /** NaN where the service named no time. */
  readonly retryAfterMs?: number;
};

type Body = { readonly data?: { readonly accessToken?: string }; readonly error?: { readonly code?: string } };

/** Never rejects. @param closed aborts it before its time is up */
export async function post(realm: Realm, url: string, closed: AbortSignal): Promise<Outcome> {
  const over = new AbortController();
  const signal = AbortSignal.any([closed, over.signal]);
  sleep(realm, TIMEOUT_MS, signal).then(() => over.abort());
  try {
    const response = await realm.fetch(url, {
      method: "POST",
      credentials: "include",
      // A page that closes meanwhile still completes the rotation, or the logout.
      keepalive: true,
      signal,
    });
    // Whatever a proxy responds in place of the service is no JSON of ours.
    const body = (await response.json().catch(() => {})) as Body | undefined;
    if (response.ok && body?.data) return { ok: true, accessToken: body.data.accessToken };
    if (body?.error?.code === "E001_AUTH_FAILURE") return { ok: false };
    return { ok: false, cause: response.status, retryAfterMs: Number(response.headers.get("retry-after")) * 1000 };
  } catch (cause) {
    return { ok: false, cause };
  } finally {
    over.abort();
  }
}
