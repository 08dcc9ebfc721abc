/** Parses the URLs of receivers, and decides whether a connection to an address is allowed. */
import { isIP } from "node:net";
import { classifyAddress } from "./address.ts";

const MAX_URL_LENGTH = 2_048;

export type TargetRules = {
  /** Whether private addresses are allowed, both with https and with http. A public address is never allowed with http. */
  readonly allowPrivate: boolean;
};

export function isAllowed(address: string, secure: boolean, { allowPrivate }: TargetRules): boolean {
  const kind = classifyAddress(address);
  return kind === "public" ? secure : kind === "private" && allowPrivate;
}

/**
 * Returns the URL of a receiver, or undefined if signals may never be sent to it. The URL parser has converted decimal, octal and
 * hexadecimal hosts to addresses (WHATWG URL section 3.5). Names are resolved, and their addresses checked, when a connection is made.
 */
export function parseTarget(text: string, rules: TargetRules): URL | undefined {
  if (text.length > MAX_URL_LENGTH || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  const secure = url.protocol === "https:";
  if (!secure && !(rules.allowPrivate && url.protocol === "http:")) return undefined;
  if (url.username !== "" || url.password !== "" || url.hash !== "" || url.port === "0") return undefined;
  const host = url.hostname.replace(/^\[|\]$/g, "");
  return isIP(host) !== 0 && !isAllowed(host, secure, rules) ? undefined : url;
}
