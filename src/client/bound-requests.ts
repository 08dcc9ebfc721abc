/** Presents key-bound access tokens with the scheme DPoP and a proof (RFC 9449 section 7). Bearer tokens are sent unchanged. */
import type { ProofKey } from "./proof-key.ts";
import type { Proofs } from "./proofs.ts";

type Deps = {
  readonly proofs: Proofs;
  /** Returns the key of the session; undefined if it has none. */
  readonly key: () => Promise<ProofKey | undefined>;
};

type Call = {
  readonly url: string;
  readonly requestMethod?: string;
  readonly stream: boolean;
  readonly header: Headers;
};

const SCHEME = /^(?:Bearer|DPoP) /;

/**
 * Returns a `fetch` that adds proofs. A proof is valid for one URL (RFC 9449 section 4.2), and `fetch` would send it to the target of a
 * redirect, even to another origin. So a request with a proof follows no redirect: its response is the redirect.
 *
 * @param send sends a request with the header `Authorization: Bearer …`
 */
export function boundFetch(deps: Deps, send: (request: Request) => Promise<Response>) {
  return async (given: Request): Promise<Response> => {
    if (!(await prove(deps, given.method, given.url, given.headers))) return send(given);
    const request = given.redirect === "follow" ? new Request(given, { redirect: "manual" }) : given;
    // A body can be read only once, so a request with a body is repeated by the caller of this function.
    const again = request.body === null ? request.clone() : undefined;
    const response = await send(request);
    const isNew = deps.proofs.learn(request.url, response.headers);
    if (again === undefined || response.status !== 401 || !isNew) return response;
    await prove(deps, again.method, again.url, again.headers);
    return send(again);
  };
}

/** Adds a proof to a Connect call, and repeats the call once if the server sends a new nonce. */
export function boundCall<Request extends Call, Response>(deps: Deps, next: (request: Request) => Promise<Response>) {
  return async (request: Request): Promise<Response> => {
    const { header, url, requestMethod = "POST" } = request;
    const isBound = await prove(deps, requestMethod, url, header);
    try {
      return await next(request);
    } catch (error) {
      const { metadata } = error as { readonly metadata?: unknown };
      const isNew = isBound && metadata instanceof Headers && deps.proofs.learn(url, metadata);
      if (!isNew || request.stream) throw error;
      await prove(deps, requestMethod, url, header);
      return next(request);
    }
  };
}

/** Returns whether the token of a request is bound to a key. If so, the headers get a proof. */
async function prove({ proofs, key }: Deps, method: string, url: string, headers: Headers): Promise<boolean> {
  const accessToken = (headers.get("authorization") ?? "").replace(SCHEME, "");
  if (!isBoundToken(accessToken)) return false;
  const held = await key();
  if (held === undefined) return false;
  headers.set("authorization", `DPoP ${accessToken}`);
  headers.set("dpop", await proofs.create(held, { method, url, accessToken }));
  return true;
}

/** Returns whether a token, which is a JWT, is bound to a key. During an upgrade, older instances may issue bearer tokens. */
function isBoundToken(token: string): boolean {
  try {
    const payload = (token.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/");
    const { cnf } = JSON.parse(atob(payload)) as { readonly cnf?: unknown };
    return cnf !== undefined;
  } catch {
    return false;
  }
}
