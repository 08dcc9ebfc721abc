import type { AdapterOptions } from "./authorize.ts";

/**
 * Returns the option `origin` of an adapter as it is in URLs. Other spellings are accepted, such as one with a slash at its end.
 * @throws TypeError if it is not an origin, so that a mistake does not refuse every proof later. The message does not contain the value.
 */
export function readOrigin({ origin }: AdapterOptions): string | undefined {
  if (origin === undefined) return undefined;
  const url = typeof origin === "string" && URL.canParse(origin) ? new URL(origin) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.href !== `${url.origin}/`)
    throw new TypeError("origin must be one such as https://api.example.com, without a path");
  return url.origin;
}
