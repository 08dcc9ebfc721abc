/** Presents access tokens that are bound to a key: with the scheme DPoP and a proof (RFC 9449 section 7). Bearer tokens pass as they are. */
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

/** @param send sends a request with the header `Authorization: Bearer …` */
export function boundFetch(deps: Deps, send: (request: Request) => Promise<Response>) {
  return async (request: Request): Promise<Response> => {
    if (!(await prove(deps, request.method, request.url, request.headers))) return send(request);
    // A body can be read once. Such a request is repeated by the caller of this function.
    const again = request.body === null ? request.clone() : undefined;
    const response = await send(request);
    const isNew = deps.proofs.learn(request.url, response.headers);
    if (again === undefined || response.status !== 401 || !isNew) return response;
    await prove(deps, again.method, again.url, again.headers);
    return send(again);
  };
}

/** Does the same for a call of Connect. */
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

/** Returns whether the token of a request is bound. Its header has a proof then. */
async function prove({ proofs, key }: Deps, method: string, url: string, headers: Headers): Promise<boolean> {
  const accessToken = (headers.get("authorization") ?? "").replace(SCHEME, "");
  if (!isBoundToken(accessToken)) return false;
  const held = await key();
  if (held === undefined) return false;
  headers.set("authorization", `DPoP ${accessToken}`);
  headers.set("dpop", await proofs.create(held, { method, url, accessToken }));
  return true;
}

/** During a deployment an instance of an earlier version may have issued a bearer token. The tokens of the service are JWTs (RFC 9068). */
function isBoundToken(token: string): boolean {
  try {
    const payload = (token.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/");
    const { cnf } = JSON.parse(atob(payload)) as { readonly cnf?: unknown };
    return cnf !== undefined;
  } catch {
    return false;
  }
}
