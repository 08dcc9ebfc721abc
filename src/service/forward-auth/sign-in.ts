/** Leads browsers that have no session to the sign-in, and back to the page that they asked for. */
import { hash } from "node:crypto";
import { cookieValues } from "../../platform/net/cookie-values.ts";
import { destinationOf } from "../sign-in/return-to.ts";
import { type AuthRefusal, type HeaderOf, originAt, type Target } from "./check.ts";

/** @returns undefined for a request that is not for a page, which gets 401 */
export type SignInRedirect = (
  headerOf: HeaderOf,
  target: Target,
) => (AuthRefusal & { readonly cookies: readonly string[] }) | undefined;

/**
 * Counts how often a page has led to the sign-in. The hash of the page follows in the name: with one cookie for all pages, the tabs of a
 * browser would reset each other's count, and none would stop.
 */
const TRIES_COOKIE = "sign_in_tries_";
const TRIES_SECONDS = 60;
/** A browser that comes back from the sign-in this often without a session is not sent there again. */
const MAX_TRIES = 3;

const LOOP =
  "You have signed in, but no session came back. The browser may block cookies, or the gateway and the service may use other names for them.\n";

/**
 * @param url the page of the sign-in, such as `https://app.example.com/v1/auth/login`
 * @param origins where clients reach the gateway
 */
export function createSignInRedirect(url: string, origins: readonly string[]): SignInRedirect {
  const page = new URL(url);
  const known = [page.origin, ...origins];
  const secure = page.protocol === "https:" ? "; Secure" : "";

  return (headerOf, { method, host, path = "/" }) => {
    if (!isNavigation(method, headerOf)) return undefined;
    const origin = originAt(host, known);
    const wanted = origin === page.origin ? path : `${origin}${path}`;
    const destination = origin && destinationOf(wanted, page.origin, (one) => one === origin);
    const name = TRIES_COOKIE + hash("sha256", `${host}${path}`).slice(0, 16);
    const tries = triesOf(headerOf("cookie"), name) + 1;
    const cookies = [`${name}=${tries}; Path=/; Max-Age=${TRIES_SECONDS}; HttpOnly; SameSite=Lax${secure}`];
    if (tries > MAX_TRIES) {
      const headers = { "content-type": "text/plain; charset=utf-8", "www-authenticate": "Bearer" };
      return { ok: false, status: 401, reason: "sign_in_loop", headers, body: LOOP, cookies: [] };
    }
    const location = new URL(page);
    if (destination !== undefined) {
      const { origin: to, pathname, search } = new URL(destination);
      location.searchParams.set("return_to", to === page.origin ? pathname + search : destination);
    }
    const reason = headerOf("cookie") === undefined ? "absent" : "ended";
    return { ok: false, status: 302, reason, headers: { location: location.href }, body: "", cookies };
  };
}

/** Returns whether the browser shows the response as a page. A browser that sends no Fetch Metadata is known by what it accepts. */
function isNavigation(method: string | undefined, headerOf: HeaderOf): boolean {
  if (method !== "GET" && method !== "HEAD") return false;
  const [mode, dest] = [headerOf("sec-fetch-mode"), headerOf("sec-fetch-dest")];
  if (mode !== undefined) return mode === "navigate" && (dest === undefined || dest === "document");
  return headerOf("accept")?.includes("text/html") === true;
}

function triesOf(header: string | undefined, name: string): number {
  const tries = cookieValues(header ?? "", name).map((count) => (/^\d$/.test(count) ? Number(count) : 0));
  return Math.max(0, ...tries);
}
