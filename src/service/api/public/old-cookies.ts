/** Finds the cookies of another system's sessions in a `Cookie` header. */
import { hash } from "node:crypto";
import { trimmed } from "../../../platform/net/cookie-values.ts";

export type OldCookies = {
  /** The name that is configured for the cookie which presents the old session. */
  readonly name: string;
  /** All old cookies, as the browser has sent them. */
  readonly header: string;
  /**
   * Identifies the old session if the application names nothing better: the first of the old cookies. Undefined if several cookies with
   * different values have its name: anybody can add such a cookie, and would get one more session for the same old one.
   */
  readonly id: string | undefined;
  /** The names as they are in the header. */
  readonly names: readonly string[];
};

const PREFIX = /^__(?:Host|Secure)-/;
/** Cookies that are too long for one are sent in several: `name.0`, `name.1`. */
const CHUNK = /\.\d{1,2}$/;
/** A name and a value (RFC 6265 section 4.1.1), and what many servers also set. Anything else is not passed on. */
const PAIR = /^[!#$%&'*+.^_`|~\w-]+=[ -:<-~]*$/;

/**
 * @param wanted names of cookies, in the order in which they are looked for. Each also stands for the cookies of this name with a prefix,
 *   and for their chunks; a name that has a prefix itself stands for no other
 */
export function findOldCookies(cookies: string | null, wanted: readonly string[]): OldCookies | undefined {
  if (cookies === null) return undefined;
  const found = cookies.split(";").flatMap((part) => {
    const pair = trimmed(part);
    if (!PAIR.test(pair) || pair.endsWith("=")) return [];
    const name = pair.slice(0, pair.indexOf("="));
    const whole = name.replace(CHUNK, "");
    const spellings = [name, whole, whole.replace(PREFIX, "")];
    const meant = wanted.find((one) => spellings.includes(one));
    return meant === undefined ? [] : [{ name, meant, pair }];
  });
  const first = wanted.find((one) => found.some(({ meant }) => meant === one));
  if (first === undefined) return undefined;
  // A cookie that was set for several paths or domains is sent several times.
  const own = new Map(found.filter(({ meant }) => meant === first).map(({ pair, name }) => [pair, name]));
  return {
    name: first,
    header: found.map(({ pair }) => pair).join("; "),
    id: isOne([...own.values()]) ? hash("sha256", [...own.keys()].join("; "), "base64url") : undefined,
    names: [...new Set(found.map(({ name }) => name))],
  };
}

/** Returns whether cookies with these names are a single one, which may be sent in chunks. */
function isOne(names: readonly string[]): boolean {
  const wholes = new Set(names.map((name) => name.replace(CHUNK, "")));
  const areChunks = names.every((name) => CHUNK.test(name)) && new Set(names).size === names.length;
  return wholes.size === 1 && (names.length === 1 || areChunks);
}
