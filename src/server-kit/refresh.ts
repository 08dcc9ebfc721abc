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
  /** How long a response is shared with requests that bring the same refresh token, ms. */
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

/** Creates a function that refreshes by token. Parallel requests with the same token share one call, and for a while its response. */
export function createRefresher(deps: RefreshDeps): (token: string, headers: Headers) => Promise<Refreshed> {
  const inFlight = new Map<string, Promise<Refreshed>>();
  /** Responses that are shared, in the order in which they expire. */
  const shared = new Map<string, { readonly result: Refreshed; readonly untilMs: number }>();

  async function refreshAndShare(token: string, headers: Headers): Promise<Refreshed> {
    const result = await refresh(deps, headers);
    inFlight.delete(token);
    // An outage may be over with the next request.
    if (result.state !== "unavailable") shared.set(token, { result, untilMs: deps.clock() + deps.shareMs });
    return result;
  }

  return (token, headers) => {
    for (const [other, { untilMs }] of shared) {
      if (untilMs > deps.clock()) break;
      shared.delete(other);
    }
    const known = shared.get(token);
    if (known) return Promise.resolve(known.result);
    const pending = inFlight.get(token) ?? refreshAndShare(token, headers);
    inFlight.set(token, pending);
    return pending;
  };
}
