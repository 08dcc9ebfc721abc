import type { DescMethod } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { type Compression, compressionNegotiate } from "@connectrpc/connect/protocol";
import { parseContentType, protocolVersion } from "@connectrpc/connect/protocol-connect";
import type { Exchange } from "../call/exchange.ts";
import type { HeaderMap } from "../call/header-map.ts";
import { FailureError } from "../response/failure.ts";

/** The form in which a unary call of the Connect protocol carries its message. */
export interface ConnectForm {
  /** Whether messages are in the binary form of protobuf; otherwise they are JSON. */
  readonly binary: boolean;
  /** The query of a GET, which holds the message; undefined for POST, whose body is the message. */
  readonly query: URLSearchParams | undefined;
}

/** Returns the form of a call; undefined if it is not a unary call of the Connect protocol. */
export function readConnectForm(exchange: Exchange<unknown>, { idempotency }: DescMethod): ConnectForm | undefined {
  const contentType = exchange.headers.get("content-type");
  if (exchange.method === "POST") {
    const type = parseContentType(contentType);
    if (type === undefined || type.stream) return undefined;
    return type.binary ? POSTED_BINARY : POSTED_JSON;
  }
  // A GET has no content, so one with a content type is left to the fallback.
  if (exchange.method !== "GET" || contentType) return undefined;
  if (idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS) return undefined;
  const query = new URL(exchange.url).searchParams;
  const encoding = query.get("encoding");
  return encoding === "json" || encoding === "proto" ? { binary: encoding === "proto", query } : undefined;
}

const POSTED_JSON: ConnectForm = { binary: false, query: undefined };
const POSTED_BINARY: ConnectForm = { binary: true, query: undefined };

/** Returns the compression of the request message; null if it is not compressed. @throws ConnectError for one that is not accepted */
export function requestCompression(accepted: Compression[], headers: HeaderMap, form: ConnectForm): Compression | null {
  const requested = requestedCompression(headers, form);
  if (requested === null) return null;
  const { request, error } = compressionNegotiate(accepted, requested, null, "accept-encoding");
  if (error !== undefined) throw error;
  return request;
}

/** Returns the compression that the client accepts for the response; null if there is none. */
export function responseCompression(
  accepted: Compression[],
  headers: HeaderMap,
  form: ConnectForm,
): Compression | null {
  const requested = requestedCompression(headers, form);
  return compressionNegotiate(accepted, requested, headers.get("accept-encoding"), "accept-encoding").response;
}

function requestedCompression(headers: HeaderMap, { query }: ConnectForm): string | null {
  return query === undefined ? headers.get("content-encoding") : query.get("compression");
}

/** Checks the version of the protocol, as connect-es does with `requireConnectProtocolHeader`. @throws ConnectError */
export function requireVersion(headers: HeaderMap, { query }: ConnectForm): void {
  const given = query === undefined ? headers.get("connect-protocol-version") : query.get("connect");
  const expected = query === undefined ? protocolVersion : `v${protocolVersion}`;
  if (given === expected) return;
  const place = query === undefined ? "header Connect-Protocol-Version" : "parameter connect";
  throw new ConnectError(`the ${place} must be "${expected}"`, Code.InvalidArgument);
}

/**
 * Reads the bytes of the request message.
 * @throws ConnectError if there are more than `readMaxBytes` of them, or if they are not in the form that the request names
 */
export async function readMessage(
  exchange: Exchange<unknown>,
  { binary, query }: ConnectForm,
  compression: Compression | null,
  readMaxBytes: number,
): Promise<Uint8Array> {
  const bytes = query === undefined ? await readBody(exchange, readMaxBytes, binary) : messageIn(query);
  return compression === null || exchange.isReadBefore ? bytes : compression.decompress(bytes, readMaxBytes);
}

function messageIn(query: URLSearchParams): Uint8Array {
  const message = query.get("message") ?? "";
  if (query.get("base64") !== "1") return new TextEncoder().encode(message);
  try {
    return base64Decode(message);
  } catch (cause) {
    throw new ConnectError("the message is not base64", Code.InvalidArgument, undefined, undefined, cause);
  }
}

async function readBody(exchange: Exchange<unknown>, readMaxBytes: number, raw: boolean): Promise<Uint8Array> {
  try {
    return await exchange.read(readMaxBytes, raw);
  } catch (reason) {
    throw reason instanceof FailureError ? reason.failure.error : reason;
  }
}
