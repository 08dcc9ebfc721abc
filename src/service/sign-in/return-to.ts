/** Decides where a browser goes after it has signed in or out. No other module reads `return_to`. */

const MAX_LENGTH = 1_024;
/** The routes of the service. None of them is a page, and a login that leads to a login would never end. */
const OWN_ROUTES = "/v1/auth/";

/**
 * Returns the absolute URL of a destination: a path of the own origin, or a URL of the own or an allowed origin. Returns undefined for
 * everything else. The result is the URL as browsers read it, so that they cannot read it in another way than this function.
 */
export function destinationOf(
  text: string,
  ownOrigin: string,
  isAllowed: (origin: string) => boolean,
): string | undefined {
  // Browsers read a backslash as a slash, and ignore line breaks and tabs in URLs. No destination needs them.
  if (text.length > MAX_LENGTH || !/^[\x21-\x5b\x5d-\x7e]+$/.test(text)) return undefined;
  const isPath = text.startsWith("/") && !text.startsWith("//");
  if (!isPath && !/^https?:\/\/[^/]/i.test(text)) return undefined;
  const url = URL.parse(text, ownOrigin);
  if (url === null || url.username !== "" || url.password !== "") return undefined;
  if (url.origin === ownOrigin) return url.pathname.startsWith(OWN_ROUTES) ? undefined : url.href;
  return !isPath && isAllowed(url.origin) ? url.href : undefined;
}
