/** Determines where a request comes from and where it was sent to, from its connection and from the headers of trusted proxies. */
import { randomBytes } from "node:crypto";
import { constants } from "node:http2";
import { isIP } from "node:net";
import { clientCertificateOf, type PeerCertificate } from "./client-certificate.ts";
import type { Request } from "./exchange.ts";
import { noteFruitless } from "./fruitless.ts";
import { waitOf } from "./late-connections.ts";
import { type Output, outputOf } from "./output.ts";

/** The length of the longest IPv6 address with brackets, zone and port. */
const MAX_ADDRESS_LENGTH = 128;

const REQUEST_ID = /^([\w.:+/=-]{1,64})$/;
/** Matches the header `traceparent` (W3C Trace Context, section 3.2.2). Its trace-id is not all zeros. */
const TRACEPARENT = /^(?!ff)[\da-f]{2}-((?!0{32})[\da-f]{32})-(?!0{16})[\da-f]{16}-[\da-f]{2}(?:-|$)/;

/** The source of a request. The address, the origin and the ids are determined only when they are asked for: most requests need none. */
export class NodeRequestSource {
  readonly #request: Request;
  readonly #trustedProxies: number;
  readonly #traceId: (() => string | undefined) | undefined;
  #requestId: string | undefined;

  /** @param trustedProxies how many proxies in front are trusted (`TRUST_PROXY`) @param traceId returns the trace of the current request */
  constructor(request: Request, trustedProxies: number, traceId?: () => string | undefined) {
    this.#request = request;
    this.#trustedProxies = trustedProxies;
    this.#traceId = traceId;
  }

  /** Returns the origin that the request was sent to, such as `https://auth.example.com`; null if the request names no host. */
  origin(): string | null {
    const { headers, socket } = this.#request;
    const authority = headers[":authority"] ?? headers.host;
    if (typeof authority !== "string") return null;
    const secure = "encrypted" in socket && socket.encrypted === true;
    const scheme = forwardedScheme(this.#request, this.#trustedProxies) ?? (secure ? "https" : "http");
    if (authority !== last.authority || scheme !== last.scheme)
      last = { scheme, authority, origin: originOf(scheme, authority) };
    return last.origin;
  }

  address(): string | undefined {
    const forwardedFor = forwarded(this.#request, "x-forwarded-for", this.#trustedProxies);
    const address = forwardedFor === undefined ? undefined : parseAddress(forwardedFor);
    return address ?? this.#request.socket.remoteAddress;
  }

  /** Returns how long the request and its connection may have waited in this process, in ms; 0 if that was not long. */
  waitMs(): number {
    return waitOf(this.#request);
  }

  /** Returns the ids for the log: `X-Request-Id`, or an id that is created on first use, and the trace of the request. */
  correlation(): { readonly requestId: string; readonly traceId?: string } {
    const { headers } = this.#request;
    this.#requestId ??= matched(headers["x-request-id"], REQUEST_ID) ?? randomBytes(8).toString("hex");
    const traceId = this.#traceId?.() ?? matched(headers.traceparent, TRACEPARENT);
    return traceId === undefined ? { requestId: this.#requestId } : { requestId: this.#requestId, traceId };
  }

  certificate(): PeerCertificate | undefined {
    return clientCertificateOf(this.#request);
  }

  /** Returns the body of the response, for writing without the framework; undefined if the handler did not store it (`keepOutput`). */
  output(): Output | undefined {
    return outputOf(this.#request);
  }

  /** Notes that the request had no authentic credential, so that it counts for the limit in fruitless.ts even if its response succeeds. */
  noteFruitless(): void {
    noteFruitless(this.#request);
  }

  /**
   * Aborts the call and drops output that the client has not read. Otherwise a write to a stalled client would never settle. Over
   * HTTP/2 only this call ends, with ENHANCE_YOUR_CALM, which gRPC maps to resource_exhausted.
   */
  abort(): void {
    const request = this.#request;
    if ("stream" in request) request.stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    else request.socket.destroy();
  }
}

const DEFAULT_PORTS = { http: ":80", https: ":443" } as const;

/** Returns an origin as browsers send it: without the default port, which some proxies add to `Host` (RFC 6454 section 6.2). */
function originOf(scheme: keyof typeof DEFAULT_PORTS, authority: string): string {
  const port = DEFAULT_PORTS[scheme];
  const host = authority.toLowerCase();
  return `${scheme}://${host.endsWith(port) ? host.slice(0, -port.length) : host}`;
}

/** Keeps the last origin. Nearly all requests are sent to one origin, and building its text takes 1 % of the time of a refused call. */
let last = { scheme: "", authority: "", origin: "" };

/** Returns the first group of a header field; undefined if the field does not match, is missing or occurs several times. */
function matched(header: string | readonly string[] | undefined, form: RegExp): string | undefined {
  return typeof header === "string" ? form.exec(header)?.[1] : undefined;
}

/** Returns the scheme with which the client called the outermost trusted proxy, if that proxy reports it. */
export function forwardedScheme(request: Request, trustedProxies: number): "http" | "https" | undefined {
  const scheme = forwarded(request, "x-forwarded-proto", trustedProxies)?.toLowerCase();
  return scheme === "http" || scheme === "https" ? scheme : undefined;
}

/**
 * Returns the outermost trusted proxy's entry in a forwarding header. Every proxy appends an entry, so entries further left may come from the
 * client itself.
 */
function forwarded(request: Request, name: string, trustedProxies: number): string | undefined {
  const header = trustedProxies > 0 ? request.headers[name] : undefined;
  if (typeof header !== "string") return undefined;
  const entries = header.split(",");
  return entries[Math.max(0, entries.length - trustedProxies)]?.trim();
}

/** Returns a forwarded IP address without the port that some proxies add; undefined for anything else. */
function parseAddress(text: string): string | undefined {
  if (text.length > MAX_ADDRESS_LENGTH) return undefined;
  if (isIP(text) !== 0) return text;
  const address = /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1];
  return address !== undefined && isIP(address) !== 0 ? address : undefined;
}
