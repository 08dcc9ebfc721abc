/** The console's own cookie. Nothing but the console reads it. */
import { cookieValues } from "../net/cookie-values.ts";

const NAME = "session_console";
/** With it browsers take the cookie from this very host by https alone: no sibling domain can plant one. */
const PREFIXED = `__Host-${NAME}`;

/** The value; undefined if there is none, or several that differ. */
export function readConsoleCookie(header: string | undefined, secure: boolean): string | undefined {
  const name = secure ? PREFIXED : NAME;
  const values = new Set(cookieValues(header ?? "", name).filter((value) => value !== ""));
  const [value] = values;
  return values.size === 1 ? value : undefined;
}

/** `Set-Cookie` with a value, or one that clears it. No `Max-Age`: it ends with the browser. */
export function consoleCookie(value: string | undefined, secure: boolean): string {
  const attributes = secure ? "Path=/; Secure; HttpOnly; SameSite=Strict" : "Path=/console; HttpOnly; SameSite=Strict";
  const name = secure ? PREFIXED : NAME;
  return value === undefined ? `${name}=; ${attributes}; Max-Age=0` : `${name}=${value}; ${attributes}`;
}
