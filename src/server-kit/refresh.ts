/** Refreshes a session in the name of a browser. */

type Refreshed =
  | { readonly state: "active"; readonly accessToken: string; readonly headers: Headers }
  | { readonly state: "ended"; readonly headers: Headers }
  /** It cannot be known now: an outage, a timeout, a proxy in the way. */
  | { readonly state: "unavailable" };

type RefreshDeps = {
  readonly service: string;
  readonly fetch: typeof fetch;
  readonly clock: () => number;
  readonly timeoutMs: number;
  /** How long a call and its response are shared with requests that bring the same refresh token, from when it began, ms. */
  readonly shareMs: number;
};

type Body = { readonly data?: { readonly accessToken?: unknown }; readonly error?: { readonly code?: unknown } };

const UNAVAILABLE: Refreshed = { state: "unavailable" };

/** Sends a request to the service. Never rejects. Only `E001_AUTH_FAILURE` means that the session has ended. */
export async function call(
  deps: Pick<RefreshDeps, "service" | "fetch" | "timeoutMs">,
  path: string,
  headers: Headers,
): Promise<{ readonly response: Response; readonly body: Body } | undefined> {
  try {
    const response = await deps.fetch(`${deps.service}${path}`, {
      method: "POST",
      headers,
      redirect: "manual",
      signal: AbortSignal.timeout(deps.timeoutMs),
    });
    return { response, body: (await response.json()) as Body };
  } catch {
    // The network, the time limit, or HTML of a proxy in place of the service.
    return undefined;
  }
}

async function refresh(deps: RefreshDeps, requestHeaders: Headers): Promise<Refreshed> {
  const result = await call(deps, "/v1/auth/refresh", requestHeaders);
  const { headers } = result?.response ?? {};
  const accessToken = result?.body.data?.accessToken;
  if (headers && typeof accessToken === "string") return { state: "active", accessToken, headers };
  return headers && result?.body.error?.code === "E001_AUTH_FAILURE" ? { state: "ended", headers } : UNAVAILABLE;
}

/**
 * Creates a function that refreshes by token. Requests with the same token share one call and its response, for `shareMs` from when the call
 * began. The request that makes the call is its first: the cookies of the response are for that request alone. To the service they are as old
 * as the call, so that those of a request that came later could reach the browser too late (docs/server-side.md).
 */
export function createRefresher(deps: RefreshDeps) {
  /** In the order in which they expire. */
  const calls = new Map<string, { readonly result: Promise<Refreshed>; readonly untilMs: number }>();

  return async (
    token: string,
    headers: Headers,
  ): Promise<{ readonly refreshed: Refreshed; readonly isFirst: boolean }> => {
    const nowMs = deps.clock();
    // After the clock was set back, nobody knows how old a call is.
    const isShared = (untilMs: number) => nowMs < untilMs && untilMs <= nowMs + deps.shareMs;
    for (const [other, { untilMs }] of calls) {
      if (isShared(untilMs)) break;
      calls.delete(other);
    }
    const known = calls.get(token);
    if (known && isShared(known.untilMs)) return { refreshed: await known.result, isFirst: false };
    calls.delete(token);
    const started = { result: refresh(deps, headers), untilMs: nowMs + deps.shareMs };
    calls.set(token, started);
    void started.result.then(({ state }) => {
      // An outage may be over with the next request.
      if (state === "unavailable" && calls.get(token) === started) calls.delete(token);
    });
    return { refreshed: await started.result, isFirst: true };
  };
}
