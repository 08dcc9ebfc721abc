/** Who asks, and whom they think they ask: as far as the connection and the trusted proxies in front tell. */
import { constants } from "node:http2";
import { isIP } from "node:net";
import { type ClientCertificate, clientCertificateOf } from "./client-certificate.ts";
import type { Request } from "./exchange.ts";

export type Caller = {
  /** The origin that the request was sent to, such as `https://auth.example.com`; null when it names no host. */
  readonly origin: () => string | null;
  /** The network address that it comes from. */
  readonly address: () => string | undefined;
  /** The certificate that the client presented. */
  readonly certificate: () => ClientCertificate | undefined;
  /** Gives him up, with what was written for him and not taken: nothing else ends a write that nobody reads. */
  readonly hangUp: () => void;
};

/**
 * Looks nothing up before it is asked.
 *
 * @param hops how many proxies in front may be believed (`TRUST_PROXY`)
 */
export function callerOf(request: Request, hops: number): Caller {
  return {
    origin() {
      const authority = request.headers[":authority"] ?? request.headers.host;
      if (typeof authority !== "string") return null;
      const secure = "encrypted" in request.socket && request.socket.encrypted === true;
      const scheme = forwardedScheme(request, hops) ?? (secure ? "https" : "http");
      return `${scheme}://${authority.toLowerCase()}`;
    },
    address: () => addressOf(forwarded(request, "x-forwarded-for", hops)) ?? request.socket.remoteAddress,
    certificate: () => clientCertificateOf(request),
    hangUp() {
      // Over HTTP/2 only the one call: gRPC calls this code resource_exhausted.
      if ("stream" in request) request.stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
      else request.socket.destroy();
    },
  };
}

/** The scheme that the outermost trusted proxy was called by, if it says so. */
export function forwardedScheme(request: Request, hops: number): "http" | "https" | undefined {
  const scheme = forwarded(request, "x-forwarded-proto", hops)?.toLowerCase();
  return scheme === "http" || scheme === "https" ? scheme : undefined;
}

/** Every hop adds at the end: what stands further left than the outermost trusted one is anybody's word. */
function forwarded(request: Request, name: string, hops: number): string | undefined {
  const header = hops > 0 ? request.headers[name] : undefined;
  if (typeof header !== "string") return undefined;
  const seen = header.split(",");
  return seen[Math.max(0, seen.length - hops)]?.trim();
}

/** The longest IPv6 address with brackets, zone and port fits. */
const MAX_ADDRESS_LENGTH = 128;

/** A forwarded IP address, without the port that some proxies add; anything else is not one. */
function addressOf(text = ""): string | undefined {
  if (text.length > MAX_ADDRESS_LENGTH) return undefined;
  if (isIP(text) !== 0) return text;
  const address = /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1];
  return address !== undefined && isIP(address) !== 0 ? address : undefined;
}
