/** Refreshes a session on behalf of a browser. */
import type { Report } from "./report.ts";

export type Refreshed =
  | { readonly state: "active"; readonly accessToken: string; readonly headers: Headers }
  | { readonly state: "ended"; readonly headers: Headers }
  /** The state is not known now: because of an outage, a timeout, or a proxy in the way. */
  | { readonly state: "unavailable" };

type Call = {
  readonly result: Promise<Refreshed>;
  readonly untilMs: number;
  /** The token that the call has returned; undefined while it is under way, or if it has returned none. */
  accessToken?: string;
};

type RefreshDeps = {
  readonly service: string;
  readonly fetch: typeof fetch;
  readonly clock: () => number;
  readonly timeoutMs: number;
  /** For how long after its beginning, in ms, a call is shared with requests that have the same refresh token. */
  readonly shareMs: number;
  readonly report: Report;
};

/** The JSON of a response. It may come from a proxy, so every part of it may be missing or null. */
type Body = {
  readonly data?: { readonly accessToken?: unknown } | null;
  readonly error?: { readonly code?: unknown } | null;
} | null;

const UNAVAILABLE: Refreshed = { state: "unavailable" };

/** Sends a request to the service. It never rejects. Only `E001_AUTH_FAILURE` means that the session has ended. */
export async function call(
  deps: Pick<RefreshDeps, "service" | "fetch" | "timeoutMs" | "report">,
  path: string,
  headers: Headers,
  method: "POST" | "DELETE" = "POST",
): Promise<{ readonly response: Response; readonly body: Body } | undefined> {
  let status: number | undefined;
  const fail = (cause: unknown) => {
    // The text of another server must not forge lines of a log.
    const text = [status, cause]
      .filter((part) => part !== undefined)
      .join(" ")
      .replace(/[^ -~]/g, "?");
    deps.report({ event: "service_failed", path: path.replace(/\?.*/, ""), cause: text.slice(0, 100) });
  };
  try {
    const response = await deps.fetch(`${deps.service}${path}`, {
      method,
      headers,
      redirect: "manual",
      signal: AbortSignal.timeout(deps.timeoutMs),
    });
    status = response.status;
    const body = (await response.json()) as Body;
    if (!isRefused(body) && !(response.ok && body?.data)) fail(body?.error?.code);
    return { response, body };
  } catch (error) {
    // The service has not responded: the network failed, the time was up, or a proxy responded with a page of its own.
    const { name, cause } = (error ?? {}) as { readonly name?: string; readonly cause?: { readonly code?: string } };
    fail(cause?.code ?? name);
    return undefined;
  }
}

async function refresh(deps: RefreshDeps, requestHeaders: Headers): Promise<Refreshed> {
  const result = await call(deps, "/v1/auth/refresh", requestHeaders);
  if (result === undefined) return UNAVAILABLE;
  const { response, body } = result;
  const { headers } = response;
  const accessToken = body?.data?.accessToken;
  if (response.ok && typeof accessToken === "string") return { state: "active", accessToken, headers };
  return isRefused(body) ? { state: "ended", headers } : UNAVAILABLE;
}

/** Returns whether the service has found no session. */
export const isRefused = (body: Body): boolean => body?.error?.code === "E001_AUTH_FAILURE";

/**
 * Creates a function that refreshes sessions. Requests with the same credentials share one call to the service, for `shareMs` from its
 * start. Only the request that makes the call gets the cookies of the response: with a later request, they could reach the browser after
 * newer cookies (docs/tasks/server-side.md).
 */
export function createRefresher(deps: RefreshDeps) {
  /** The calls, in the order in which they expire. */
  const calls = new Map<string, Call>();

  /** @param stale an access token that is refused because the session has changed since: a call that returned this token is not shared */
  return async (
    presented: string,
    headers: Headers,
    stale?: string,
  ): Promise<{ readonly refreshed: Refreshed; readonly isFirst: boolean }> => {
    const nowMs = deps.clock();
    // If the clock was set back, the age of a call is not known, so it is not shared.
    const isShared = (untilMs: number) => nowMs < untilMs && untilMs <= nowMs + deps.shareMs;
    for (const [other, { untilMs }] of calls) {
      if (isShared(untilMs)) break;
      calls.delete(other);
    }
    const known = calls.get(presented);
    const isUsable = stale === undefined || known?.accessToken !== stale;
    if (known && isShared(known.untilMs) && isUsable) return { refreshed: await known.result, isFirst: false };
    calls.delete(presented);
    const started: Call = { result: refresh(deps, headers), untilMs: nowMs + deps.shareMs };
    calls.set(presented, started);
    void started.result.then((refreshed) => {
      if (refreshed.state === "active") started.accessToken = refreshed.accessToken;
      // The result of an outage is not shared, because the outage may be over at the next request.
      if (refreshed.state === "unavailable" && calls.get(presented) === started) calls.delete(presented);
    });
    return { refreshed: await started.result, isFirst: true };
  };
}
