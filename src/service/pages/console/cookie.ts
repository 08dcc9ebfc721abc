/** Reads and writes the cookie of the console's sign-ins. */
import { cookieValues } from "../../../platform/net/cookie-values.ts";

const NAME = "session_console";
/** With this prefix, browsers accept the cookie only from this host and only over https, so that no sibling domain can set it. */
const PREFIXED = `__Host-${NAME}`;

/** Returns the cookie's different values. Without https, other services on this host may have set some. */
export function consoleCookies(header: string | undefined, secure: boolean): readonly string[] {
  const name = secure ? PREFIXED : NAME;
  return [...new Set(cookieValues(header ?? "", name).filter((value) => value !== ""))];
}

/** Returns the cookie's value; undefined if there is none, or if there are several different ones. */
export function readConsoleCookie(header: string | undefined, secure: boolean): string | undefined {
  const [value, ...others] = consoleCookies(header, secure);
  return others.length === 0 ? value : undefined;
}

/** Returns a `Set-Cookie` header that sets the value, or clears it. It has no `Max-Age`, so the cookie ends with the browser. */
export function consoleCookie(value: string | undefined, secure: boolean): string {
  const attributes = secure ? "Path=/; Secure; HttpOnly; SameSite=Strict" : "Path=/console; HttpOnly; SameSite=Strict";
  const name = secure ? PREFIXED : NAME;
  return value === undefined ? `${name}=; ${attributes}; Max-Age=0` : `${name}=${value}; ${attributes}`;
}
