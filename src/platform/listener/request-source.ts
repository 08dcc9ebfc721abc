/** Determines where a request comes from and where it was sent to, from its connection and from the headers of trusted proxies. */
import { randomBytes } from "node:crypto";
import { constants } from "node:http2";
import { entryAt, forwardedClient, type ProxyTrust } from "../net/proxy-trust.ts";
import { clientCertificateOf, type PeerCertificate } from "./client-certificate.ts";
import type { HttpRequest } from "./handler.ts";
import { type Output, outputOf } from "./output.ts";
import { noteUnauthenticated } from "./unauthenticated-requests.ts";

const REQUEST_ID = /^([\w.:+/=-]{1,64})$/;
/** Matches the header `traceparent` (W3C Trace Context, section 3.2.2). Its trace-id is not all zeros. */
const TRACEPARENT = /^(?!ff)[\da-f]{2}-((?!0{32})[\da-f]{32})-(?!0{16})[\da-f]{16}-[\da-f]{2}(?:-|$)/;

/** The source of a request. The address, the origin and the ids are determined only when they are asked for: most requests need none. */
export class NodeRequestSource {
  readonly #request: HttpRequest;
  readonly #trust: ProxyTrust;
  readonly #traceId: (() => string | undefined) | undefined;
  #requestId: string | undefined;

  /** @param trust the proxies in front that are trusted (`TRUST_PROXY`) @param traceId returns the trace of the current request */
  constructor(request: HttpRequest, trust: ProxyTrust, traceId?: () => string | undefined) {
    this.#request = request;
    this.#trust = trust;
    this.#traceId = traceId;
  }

  /** Returns the origin that the request was sent to, such as `https://auth.example.com`; null if the request names no host. */
  origin(): string | null {
    const { headers, socket } = this.#request;
    const authority = headers[":authority"] ?? headers.host;
    if (typeof authority !== "string") return null;
    const secure = "encrypted" in socket && socket.encrypted === true;
    const scheme = forwardedScheme(this.#request, this.#trust) ?? (secure ? "https" : "http");
    return originOf(scheme, authority);
  }

  address(): string | undefined {
    return clientOf(this.#request, this.#trust).address;
  }

  /** Returns the header as it was sent: Node reads bytes that are not ASCII as characters of Latin-1. */
  userAgent(): string | undefined {
    return this.#request.headers["user-agent"];
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

  /** Notes that the request had no authentic credential: it counts as such (unauthenticated-requests.ts) even if its response succeeds. */
  noteUnauthenticated(): void {
    noteUnauthenticated(this.#request);
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

/** Returns the first group of a header field; undefined if the field does not match, is missing or occurs several times. */
function matched(header: string | readonly string[] | undefined, form: RegExp): string | undefined {
  return typeof header === "string" ? form.exec(header)?.[1] : undefined;
}

/** Returns the scheme with which the client called the outermost trusted proxy, if that proxy reports it. */
export function forwardedScheme(request: HttpRequest, trust: ProxyTrust): "http" | "https" | undefined {
  const header = trust === 0 ? undefined : textOf(request, "x-forwarded-proto");
  if (header === undefined) return undefined;
  const scheme = entryAt(header, typeof trust === "number" ? trust : clientOf(request, trust).proxies)?.toLowerCase();
  return scheme === "http" || scheme === "https" ? scheme : undefined;
}

const clientOf = (request: HttpRequest, trust: ProxyTrust) =>
  forwardedClient(request.socket.remoteAddress, textOf(request, "x-forwarded-for"), trust);

/** Returns the text of a header. Node joins the lines of these headers by commas. */
function textOf({ headers }: HttpRequest, name: "x-forwarded-for" | "x-forwarded-proto"): string | undefined {
  const header = headers[name];
  return typeof header === "string" ? header : undefined;
}
