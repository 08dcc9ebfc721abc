/** What a browser would call us: the origin that a request was sent to, as far as connection and trusted proxies tell. */
import type { Request } from "./listen.ts";

/**
 * @param hops how many proxies in front may be believed (`TRUST_PROXY`)
 * @returns such as `https://auth.example.com`, or null when the request names no host
 */
export function ownOrigin(request: Request, hops: number): string | null {
  const authority = request.headers[":authority"] ?? request.headers.host;
  if (typeof authority !== "string") return null;
  return `${scheme(request, hops)}://${authority.toLowerCase()}`;
}

function scheme(request: Request, hops: number): "http" | "https" {
  const forwarded = hops > 0 ? request.headers["x-forwarded-proto"] : undefined;
  if (typeof forwarded === "string") {
    const seen = forwarded.split(",");
    // Every hop adds at the end: what stands further left than the outermost trusted one is anybody's word.
    return seen[Math.max(0, seen.length - hops)]?.trim().toLowerCase() === "https" ? "https" : "http";
  }
  return "encrypted" in request.socket && request.socket.encrypted === true ? "https" : "http";
}
