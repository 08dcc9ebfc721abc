/** Maps HTTP headers to the metadata of an upstream and back. */
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { peerAddress } from "../call/context-keys.ts";
import { HeaderMap } from "../call/header-map.ts";
import { METADATA_PREFIX } from "../call/metadata-prefix.ts";

/** Decides about a header by its lower-case name: it is dropped (false), kept (true), or kept under another name. */
export type HeaderMatcher = (name: string) => boolean | string;

export interface MetadataOptions {
  /** Which request headers become metadata. Default: `forwardRequestHeader`. */
  readonly requestHeaders?: HeaderMatcher;
  /** Which response headers and trailers become response headers. Default: `forwardResponseHeader`. */
  readonly responseHeaders?: HeaderMatcher;
  /**
   * Whether `X-Forwarded-*`, `Forwarded` and `X-Real-IP` of the request are trusted and extended. Set it only behind a proxy that sets
   * them. A function decides by the address from which the request comes. Default: false; these headers are dropped, whatever
   * `requestHeaders` decides.
   */
  readonly trustForwarded?: boolean | ((address: string) => boolean);
}

/** Connection headers (RFC 9110 section 7.6.1), and headers of HTTP, gRPC and Connect that belong to one hop. */
const OF_ONE_HOP =
  /^(?::.*|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|http2-settings|host|expect|content-.*|accept|accept-encoding|date|server|grpc-.*|connect-.*|x-server-timeout|x-http-method-override)$/;
/** The headers about the original request that are not copied, but written again for the upstream. */
const FORWARDED = /^(?:forwarded|x-forwarded-(?:for|host|proto))$/;
/** Only proxies may state these facts about a client: its address, its certificate, its identity. */
const OF_PROXIES = /^(?:x-forwarded-.*|x-real-ip)$/;

/**
 * The default for request headers: all end-to-end headers pass (cookies, authorization, tracing, …), but none that describe the
 * connection, the body or the protocol.
 */
export const forwardRequestHeader: HeaderMatcher = (name) => !OF_ONE_HOP.test(name);

/** The default for response headers and trailers: all pass to the client except CORS headers, `Alt-Svc`, HSTS and hop-by-hop headers. */
export const forwardResponseHeader: HeaderMatcher = (name) => isForwardedToClients(name);

export function isForwardedToClients(name: string): boolean {
  return !OF_ONE_HOP.test(name) && !/^(?:access-control-.*|alt-svc|strict-transport-security)$/.test(name);
}

/** Only browsers state these facts. */
const OF_BROWSERS = /^(?:origin|sec-.*)$/;

/**
 * Removes the prefix from the names of request headers. A header is dropped if, without the prefix, it would be one that only the
 * connection, a proxy or a browser may set, or if the request has that header: a proxy that sets a header, such as the identity of the
 * caller, replaces the one that the client sent, and knows of no prefix.
 */
export function unprefixMetadata(headers: Headers): void {
  const ofConnection = tokens(headers.get("connection"));
  const lines = [...headers];
  const given = new Set(lines.map(([name]) => name));
  for (const [name, value] of lines) {
    if (!name.startsWith(METADATA_PREFIX)) continue;
    headers.delete(name);
    const own = name.slice(METADATA_PREFIX.length);
    if (own === "" || given.has(own) || ofConnection.includes(name)) continue;
    if ([OF_ONE_HOP, FORWARDED, OF_PROXIES, OF_BROWSERS].some((names) => names.test(own))) continue;
    headers.append(own, value);
  }
}

/** ASCII-Value of gRPC (PROTOCOL-HTTP2.md). Metadata cannot carry other values. */
const ASCII_VALUE = /^[\x20-\x7e]*$/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}(?:,\s*[A-Za-z0-9+/]*={0,2})*$/;

/** Returns a function that makes the metadata of a call from its request headers. */
export function createMetadataReader(options: MetadataOptions): (context: HandlerContext) => [string, string][] {
  const { requestHeaders: decide = forwardRequestHeader, trustForwarded = false } = options;
  return (context) => {
    const trust = isTrusted(trustForwarded, context.values.get(peerAddress));
    const { requestHeader } = context;
    const metadata: [string, string][] = [];
    const ofConnection = tokens(requestHeader.get("connection"));
    const add = (name: string, value: string) => {
      if (!trust && OF_PROXIES.test(name)) return;
      const decision = !FORWARDED.test(name) && !ofConnection.includes(name) && decide(name);
      if (decision === false || !ASCII_VALUE.test(value)) return;
      const key = decision === true ? name : decision;
      if (key.endsWith("-bin") && !BASE64.test(value)) {
        throw new ConnectError(`header: ${name}: expected base64`, Code.InvalidArgument);
      }
      metadata.push([key, value]);
    };
    forEachLine(requestHeader, add);
    addForwarded(metadata, context, trust);
    return metadata;
  };
}

function isTrusted(trust: Exclude<MetadataOptions["trustForwarded"], undefined>, address: string | undefined): boolean {
  return typeof trust === "boolean" ? trust : address !== undefined && trust(address);
}

function addForwarded(metadata: [string, string][], context: HandlerContext, trust: boolean): void {
  const { requestHeader, url } = context;
  const given = (name: string) => (trust ? requestHeader.get(name) : null);
  const address = context.values.get(peerAddress);
  const addresses = [given("x-forwarded-for"), address].filter((part) => part);
  if (addresses.length > 0) metadata.push(["x-forwarded-for", addresses.join(", ")]);
  const end = url.indexOf("://");
  const authority = url.slice(end + 3, url.indexOf("/", end + 3));
  metadata.push(["x-forwarded-host", given("x-forwarded-host") ?? authority]);
  metadata.push(["x-forwarded-proto", given("x-forwarded-proto") ?? url.slice(0, end)]);
  const forwarded = given("forwarded");
  if (forwarded !== null) metadata.push(["forwarded", forwarded]);
}

function tokens(connection: string | null): readonly string[] {
  return connection === null ? [] : connection.split(",").map((token) => token.trim().toLowerCase());
}

/** Adds the headers or trailers of an upstream's response to the headers of the response to the client. */
export function copyResponseMetadata(from: Headers, to: Headers, matcher = forwardResponseHeader): void {
  forEachLine(from, (name, value) => {
    const decision = matcher(name);
    if (decision !== false) to.append(decision === true ? name : decision, value);
  });
}

/** Calls back for each line. To iterate a HeaderMap would create a real `Headers`, which costs more. */
function forEachLine(headers: Headers, callback: (name: string, value: string) => void): void {
  if (!(headers instanceof HeaderMap)) {
    for (const [name, value] of headers) callback(name, value);
    return;
  }
  const lines = headers.lines();
  for (let i = 0; i < lines.length; i += 2) callback(lines[i] ?? "", lines[i + 1] ?? "");
}
