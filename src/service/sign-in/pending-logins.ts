/**
 * Keeps logins in progress in the browser that began them: one cookie for each, encrypted and authenticated. So any instance can complete
 * a login, and a browser cannot complete one that another browser began (login CSRF).
 */
import { hash } from "node:crypto";
import { cookieValues } from "../../platform/net/cookie-values.ts";

export type PendingLogin = {
  readonly provider: string;
  readonly state: string;
  readonly nonce: string;
  readonly codeVerifier: string;
  /** The URL to which the browser goes in the end. */
  readonly destination: string;
  /** The provider must have authenticated the user within this time, in seconds. */
  readonly maxAgeSeconds?: number;
  /** The authentication contexts of which one is required. */
  readonly acrValues?: readonly string[];
  /** The session of the browser, which a stronger authentication of its user elevates. */
  readonly elevates?: string;
};

interface Seal {
  seal(text: string): string;
  /** @throws Error if the text was not sealed */
  open(sealed: string): string;
}

type Deps = {
  readonly seal: Seal;
  /** Returns ms since the epoch. */
  readonly clock: () => number;
  /** Whether the browser uses https. Then the prefix of the name keeps sibling domains from planting such a cookie. */
  readonly isSecure: boolean;
  /** The beginning of the names of the cookies. Default: `login`. */
  readonly name?: string;
};

const LOGIN_LIFE_SECONDS = 600;
/** How many logins of a browser may be in progress: one for each tab. */
const MAX_PENDING = 4;
/** The largest cookie that browsers keep, in bytes (RFC 6265bis section 5.6). */
const MAX_COOKIE_BYTES = 4_096;
const ID = /^[\w-]{16}$/;

/** Returns the part of the cookie's name that follows from the state. The state itself stays secret from other servers that get cookies. */
const idOf = (state: string) => hash("sha256", state, "base64url").slice(0, 16);

type Sealed = PendingLogin & { readonly at: number };

export function createPendingLogins({ seal, clock, isSecure, name = "login" }: Deps) {
  const prefix = `${isSecure ? "__Host-" : ""}${name}-`;
  const attributes = `; Path=/; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`;
  const clear = (id: string) => `${prefix}${id}=; Max-Age=0${attributes}`;

  function open(value: string, id: string): Sealed | undefined {
    try {
      const login: Sealed = JSON.parse(seal.open(value));
      const ageMs = clock() - login.at;
      return idOf(login.state) === id && ageMs < LOGIN_LIFE_SECONDS * 1000 ? login : undefined;
    } catch {
      return undefined;
    }
  }

  /** Returns the only value of a cookie. If several are different, one of them was planted. */
  function read(header: string, id: string): Sealed | undefined {
    const [value, ...others] = new Set(cookieValues(header, prefix + id));
    return value === undefined || others.length > 0 ? undefined : open(value, id);
  }

  /** Returns the ids of logins, the newest first; those that cannot be used are last. */
  function list(header: string): string[] {
    const names = header
      .split(";")
      .map((pair) => pair.slice(0, Math.max(0, pair.indexOf("="))).replace(/^[ \t]+|[ \t]+$/g, ""));
    const ids = new Set(names.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length)));
    const logins = [...ids].filter((id) => ID.test(id)).map((id) => ({ id, at: read(header, id)?.at ?? 0 }));
    return logins.sort((one, other) => other.at - one.at).map(({ id }) => id);
  }

  return {
    /** Returns the `Set-Cookie` values that keep a login, and remove the oldest others; undefined if the cookie would be too large. */
    begin(header: string, login: PendingLogin): readonly string[] | undefined {
      const value = seal.seal(JSON.stringify({ ...login, at: clock() } satisfies Sealed));
      const cookie = `${prefix}${idOf(login.state)}=${value}; Max-Age=${LOGIN_LIFE_SECONDS}${attributes}`;
      if (cookie.length > MAX_COOKIE_BYTES) return undefined;
      return [
        cookie,
        ...list(header)
          .slice(MAX_PENDING - 1)
          .map(clear),
      ];
    },
    find: (header: string, state: string): PendingLogin | undefined => read(header, idOf(state)),
    /** Returns the `Set-Cookie` value that removes a login. */
    end: (state: string): string => clear(idOf(state)),
  };
}
