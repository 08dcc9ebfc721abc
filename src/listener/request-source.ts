/** Where a request comes from and what it was sent to, as far as the connection and the trusted proxies report. */
import { constants } from "node:http2";
import { isIP } from "node:net";
import { clientCertificateOf, type PeerCertificate } from "./client-certificate.ts";
import type { Request } from "./exchange.ts";

/** The longest IPv6 address with brackets, zone and port fits. */
const MAX_ADDRESS_LENGTH = 128;

/** Looks nothing up before it is asked: most requests need none of it. */
export class NodeRequestSource {
  readonly #request: Request;
  readonly #trustedProxies: number;

  /** @param trustedProxies how many proxies in front of the service are trusted (`TRUST_PROXY`) */
  constructor(request: Request, trustedProxies: number) {
    this.#request = request;
    this.#trustedProxies = trustedProxies;
  }

  /** The origin that the request was sent to, such as `https://auth.example.com`; null when it names no host. */
  origin(): string | null {
    const { headers, socket } = this.#request;
    const authority = headers[":authority"] ?? headers.host;
    if (typeof authority !== "string") return null;
    const secure = "encrypted" in socket && socket.encrypted === true;
    const scheme = forwardedScheme(this.#request, this.#trustedProxies) ?? (secure ? "https" : "http");
    return `${scheme}://${authority.toLowerCase()}`;
  }

  /** The network address of the client. */
  address(): string | undefined {
    const forwardedFor = forwarded(this.#request, "x-forwarded-for", this.#trustedProxies);
    return parseAddress(forwardedFor) ?? this.#request.socket.remoteAddress;
  }

  /** The certificate that the client presented. */
  certificate(): PeerCertificate | undefined {
    return clientCertificateOf(this.#request);
  }

  /**
   * Aborts the call and drops unread output; a pending write to a stalled client never settles otherwise. Over HTTP/2 only
   * this call ends, with ENHANCE_YOUR_CALM, which gRPC maps to resource_exhausted.
   */
  abort(): void {
    const request = this.#request;
    if ("stream" in request) request.stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    else request.socket.destroy();
  }
}

/** The scheme that the outermost trusted proxy was called with, if it reports one. */
export function forwardedScheme(request: Request, trustedProxies: number): "http" | "https" | undefined {
  const scheme = forwarded(request, "x-forwarded-proto", trustedProxies)?.toLowerCase();
  return scheme === "http" || scheme === "https" ? scheme : undefined;
}

/** Every proxy appends: entries to the left of the outermost trusted one may come from the client itself. */
function forwarded(request: Request, name: string, trustedProxies: number): string | undefined {
  const header = trustedProxies > 0 ? request.headers[name] : undefined;
  if (typeof header !== "string") return undefined;
  const entries = header.split(",");
  return entries[Math.max(0, entries.length - trustedProxies)]?.trim();
}

/** A forwarded IP address, without the port that some proxies add; undefined for anything else. */
function parseAddress(text = ""): string | undefined {
  if (text.length > MAX_ADDRESS_LENGTH) return undefined;
  if (isIP(text) !== 0) return text;
  const address = /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1];
  return address !== undefined && isIP(address) !== 0 ? address : undefined;
}
