/** Builds the redirects to the login and back. */
import { isLogin } from "./guard.ts";
import { requestTarget } from "./paths.ts";

/** The base to resolve addresses against. An address that resolves to another origin is no path of the application. */
const BASE = "http://application.invalid";

/**
 * Returns a path of the application to return to after the login; `fallback` if it would lead to another site or to the login again.
 * @param wanted the parameter, which an attacker may have written. Frameworks return one that occurs twice as a list or an object
 */
export function returnPath(wanted: unknown, login: string, fallback = "/"): string {
  // A browser removes tabs and line breaks from a URL, and reads a backslash as a slash, so that `/\other.example` leads to another site.
  if (typeof wanted !== "string" || !wanted.startsWith("/") || /[\\\t\r\n]/.test(wanted)) return fallback;
  const url = URL.parse(wanted, BASE);
  if (url?.origin !== BASE || isLogin(url.pathname, login)) return fallback;
  const path = url.pathname + url.search + url.hash;
  // A path such as `/.//other.example` is normalized to `//other.example`, which would lead to another site.
  return path.startsWith("//") ? fallback : path;
}

/** Returns the address of the login with the path to return to, or undefined if the request is for the login already. */
export function loginLocation(url: string, login: string, parameter: string): string | undefined {
  const { path, search } = requestTarget(url);
  if (isLogin(path, login)) return undefined;
  const wanted = returnPath(path + search, login);
  return `${login}?${new URLSearchParams({ [parameter]: wanted })}`;
}
