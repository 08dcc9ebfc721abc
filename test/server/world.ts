/** The parts of a test with a server that renders pages, in front of the real service. */
import { afterAll, beforeAll } from "vitest";
import { createServerSessions, type ServerSessionsOptions } from "../../src/server/index.ts";
import { createVerifier, type Verifier } from "../../src/verifier/index.ts";
import type { Service } from "../support/service.ts";
import { admin, bearer, message, openAdmin, somebody } from "../support/sessions.ts";

export const COOKIES = { ACCESS_COOKIE: "access_token", COOKIE_PATH: "/" };
/** Options that make the kit renew the access token at each page view, because no token is valid for long enough. */
export const ALWAYS_DUE = { minValidityMs: 1e9 };

/** The cookies of a browser. */
export class Jar {
  readonly cookies = new Map<string, string>();

  /** Takes over the cookies of a response. */
  take(setCookies: readonly string[]): void {
    for (const line of setCookies) {
      const [, name = "", value = "", attributes = ""] = /^([^=]+)=([^;]*)(.*)$/.exec(line) ?? [];
      if (attributes.includes("Max-Age=0")) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
  }

  get header(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
  }

  request(path = "/", headers: Readonly<Record<string, string>> = {}, method = "GET"): Request {
    const cookie = this.header === "" ? {} : { cookie: this.header };
    return new Request(`http://app.example${path}`, { method, headers: { ...cookie, ...headers } });
  }
}

/** Creates a verifier of a service that runs during the tests. */
export function aVerifier(service: Service): { readonly verifier: Verifier } {
  const kept = {} as { verifier: Verifier };
  beforeAll(async () => {
    const { publicUrl, adminUrl, adminToken } = service;
    kept.verifier = createVerifier({ adminUrl, adminToken, issuer: publicUrl, audience: publicUrl, policy: "refuse" });
    await kept.verifier.ready;
  });
  afterAll(() => kept.verifier.close());
  return kept;
}

/** Signs somebody in. The jar then has the cookies of the login's response. */
export async function signIn(
  service: Service,
  subject = somebody(),
  more: { readonly persistent?: boolean } = {},
): Promise<Jar> {
  const wanted = { subject, ...more };
  const created = await openAdmin(service).call(admin.createSession, wanted, bearer(service.adminToken));
  const jar = new Jar();
  jar.take(message(created).setCookies);
  return jar;
}

/** Creates the server kit of one process of an application, and counts its calls of the service. */
export function aServer(service: Service, verifier: Verifier, options: Partial<ServerSessionsOptions> = {}) {
  const calls: { readonly path: string; readonly headers: Headers }[] = [];
  const sessions = createServerSessions({
    service: service.publicUrl,
    verifier,
    fetch: (input, init) => {
      calls.push({ path: new URL(String(input)).pathname, headers: new Headers(init?.headers) });
      return fetch(input, init);
    },
    ...options,
  });
  return { sessions, calls };
}
