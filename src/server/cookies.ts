/** Reads and builds `Cookie` and `Set-Cookie` header fields (RFC 6265bis). */
import { cookieValues } from "../platform/net/cookie-values.ts";
import { splitPair } from "./set-cookie.ts";

/** Returns the distinct values of a cookie. There are several if the cookie was set for several paths or domains. */
export function distinctValues(header: string | null, name: string): readonly string[] {
  return [...new Set(cookieValues(header ?? "", name))].filter((value) => value !== "");
}

/**
 * Returns the distinct values of a cookie by its name with and without a prefix such as `__Host-`. The service reads both while a
 * deployment moves to a prefixed name (`COOKIE_MIGRATE_UNTIL`).
 */
function valuesForService(header: string | null, name: string): readonly string[] {
  const names = new Set([name, name.replace(/^__(?:host|secure)-/i, "")]);
  return [...names].flatMap((each) => distinctValues(header, each));
}

/** Returns the `Cookie` header that the browser would send after receiving these `Set-Cookie` lines. */
export function withSetCookies(header: string | null, setCookies: readonly string[]): string {
  const changes = setCookies.map((line) => {
    const [pair = "", ...attributes] = line.split(";");
    return { pair: splitPair(pair), isRemoval: attributes.some((one) => /^\s*max-age=(0|-\d+)\s*$/i.test(one)) };
  });
  const changed = new Set(changes.map(({ pair: [name] }) => name));
  const kept = (header ?? "")
    .split(";")
    .map(splitPair)
    .filter(([name, value]) => name + value && !changed.has(name));
  // A cookie may be set in one scope and removed from others. It then counts as set.
  const set = new Map(changes.filter(({ isRemoval }) => !isRemoval).map(({ pair }) => pair));
  return [...kept, ...set].map(([name, value]) => (name ? `${name}=${value}` : value)).join("; ");
}

/** The suffixes that make the names of the device cookies from the name of the refresh token's cookie. */
const DEVICE = "_device";
const MARK = "_device_mark";

/** The form of a refresh token (docs/why/rotation.md): 72 bytes. The first is 1, the 17 from the sixth on are the id of its session. */
const REFRESH_TOKEN = /^A[Q-Za-f][A-Za-z0-9_-]{94}$/;

/** Returns the bytes of a text, each as one character. @throws for another text */
export const fromBase64url = (text: string): string => atob(text.replaceAll("-", "+").replaceAll("_", "/"));

/** Returns the session id in a refresh token; undefined for a text of another form. Nothing proves that the token is authentic. */
function sessionOf(refreshToken: string): string | undefined {
  if (!REFRESH_TOKEN.test(refreshToken)) return undefined;
  return btoa(fromBase64url(refreshToken).slice(5, 22)).replaceAll("+", "-").replaceAll("/", "_").replace("=", "");
}

/** Returns the credentials in the headers of a request, or undefined if there is no refresh token. */
export function presentedBy(headers: Pick<Headers, "get">, refreshCookie: string) {
  const valuesOf = (name: string) => valuesForService(headers.get("cookie"), name);
  const tokens = valuesOf(refreshCookie);
  if (tokens.length === 0) return undefined;
  const [proofs, marks] = [valuesOf(refreshCookie + DEVICE), valuesOf(refreshCookie + MARK)];
  return {
    /** Returns whether every refresh token contains the id of this session. A token of an unknown form counts as if it did. */
    isOf: (sid: string) => tokens.every((token) => (sessionOf(token) ?? sid) === sid),
    /** A text of everything in the request that the service's decision depends on. Requests with equal texts may share one refresh. */
    id: [tokens, proofs, marks, [headers.get("secure-session-skipped")]].map((part) => part.join(" ")).join(";"),
    /**
     * Whether the session may be bound to this device, but the device cookie has expired. The service then refuses the refresh as if the
     * session had ended. Browsers renew that cookie when they call the service, but not when they load a page.
     */
    mustRenew: proofs.length === 0 && marks.length > 0,
  };
}

const PREFIX = /^__(?:Host|Secure)-/;
/** Cookies that are too long for one are sent in several: `name.0`, `name.1`. */
const CHUNK = /\.\d{1,2}$/;

/** Returns the cookies of another system that the service migrates (`MIGRATE_COOKIES`), as `presentedBy` returns credentials. */
export function oldSessionOf(headers: Pick<Headers, "get">, names: readonly string[]) {
  const old = (headers.get("cookie") ?? "").split(";").filter((part) => {
    const [name, value] = splitPair(part);
    const whole = name.replace(CHUNK, "");
    return value !== "" && [name, whole, whole.replace(PREFIX, "")].some((spelling) => names.includes(spelling));
  });
  return old.length === 0 ? undefined : { id: `migrate;${old.join(";")}`, mustRenew: false };
}
