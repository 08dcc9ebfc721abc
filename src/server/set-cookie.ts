/** Reads `Set-Cookie` header fields (RFC 6265bis section 5.6). */
import { trimmed } from "../platform/net/cookie-values.ts";

/** A cookie in the form in which frameworks set cookies. */
export type SetCookie = {
  readonly name: string;
  readonly value: string;
  readonly attributes: {
    readonly path?: string;
    readonly domain?: string;
    /** In seconds. */
    readonly maxAge?: number;
    readonly expires?: Date;
    readonly httpOnly?: boolean;
    readonly secure?: boolean;
    readonly sameSite?: "strict" | "lax" | "none";
    readonly partitioned?: boolean;
  };
};

/**
 * Returns the `Set-Cookie` lines of a response. Some frameworks cache responses of `fetch`, and join their lines by commas. A comma begins
 * another line if the name of a cookie and `=` follow it (RFC 6265 section 4.1.1), which the comma in a date does not.
 */
export function setCookiesOf(headers: Headers): readonly string[] {
  return headers.getSetCookie().flatMap((line) => line.split(/,[\t ]*(?=[!#$%&'*+.^_`|~\w-]+=)/));
}

/** Returns the parts before and after a separator, without SP and HTAB around them. */
export function splitPair(pair: string): readonly [name: string, value: string] {
  const equals = pair.indexOf("=");
  return equals < 0 ? ["", trimmed(pair)] : [trimmed(pair, 0, equals), trimmed(pair, equals + 1)];
}

/** Returns the cookie of a `Set-Cookie` line. Attributes that are not known are left out. */
export function readSetCookie(line: string): SetCookie {
  const [pair = "", ...rest] = line.split(";");
  const [name, value] = splitPair(pair);
  const attributes = rest.map((attribute) => {
    const [key, text] = attribute.includes("=") ? splitPair(attribute) : [trimmed(attribute), ""];
    return READERS.get(key.toLowerCase())?.(text) ?? {};
  });
  return { name, value: decoded(value), attributes: Object.assign({}, ...attributes) };
}

const READERS = new Map<string, (text: string) => SetCookie["attributes"]>([
  ["path", (path) => ({ path })],
  ["domain", (domain) => ({ domain })],
  ["max-age", (text) => ({ maxAge: Number(text) })],
  ["expires", (text) => ({ expires: new Date(text) })],
  ["httponly", () => ({ httpOnly: true })],
  ["secure", () => ({ secure: true })],
  ["samesite", (text) => ({ sameSite: text.toLowerCase() as "strict" | "lax" | "none" })],
  ["partitioned", () => ({ partitioned: true })],
]);

/** Frameworks encode the value when they set the cookie. */
function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
