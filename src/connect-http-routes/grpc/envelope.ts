/** Reads and writes the Length-Prefixed-Message of gRPC (PROTOCOL-HTTP2.md): a byte of flags, 32 bits of length, the message. */
import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import type { Exchange } from "../call/exchange.ts";
import { FailureError } from "../response/failure.ts";

const PREFIX_BYTES = 5;
const COMPRESSED_FLAG = 1;

/**
 * Reads the only message of a request, with the same errors as connect-es.
 * @param ignoredFlag envelopes with this flag are skipped
 * @throws ConnectError
 */
export async function readMessage(
  exchange: Exchange<unknown>,
  readMaxBytes: number,
  ignoredFlag: number,
): Promise<Uint8Array> {
  const body = await readBody(exchange, readMaxBytes);
  let message: Uint8Array | undefined;
  for (let at = 0; at < body.byteLength; ) {
    const end = endOfMessage(body, at, readMaxBytes);
    const flags = body[at] ?? 0;
    if ((flags & COMPRESSED_FLAG) !== 0) {
      throw new ConnectError("received compressed envelope, but do not know how to decompress", Code.Internal);
    }
    if ((flags & ignoredFlag) === 0) {
      if (message !== undefined) {
        throw new ConnectError("protocol error: received extra input message for unary method", Code.Unimplemented);
      }
      message = body.subarray(at + PREFIX_BYTES, end);
    }
    at = end;
  }
  if (message !== undefined) return message;
  throw new ConnectError("protocol error: missing input message for unary method", Code.Unimplemented);
}

async function readBody(exchange: Exchange<unknown>, readMaxBytes: number): Promise<Uint8Array> {
  try {
    return await exchange.read(readMaxBytes + PREFIX_BYTES, true);
  } catch (reason) {
    if (!(reason instanceof FailureError)) throw reason;
    const text = `message size is larger than configured readMaxBytes ${readMaxBytes}`;
    throw new ConnectError(text, reason.failure.error.code, undefined, undefined, reason);
  }
}

/** Returns the index after a message. @throws ConnectError if the message is incomplete or too long */
function endOfMessage(body: Uint8Array, at: number, readMaxBytes: number): number {
  const left = body.byteLength - at - PREFIX_BYTES;
  const length = left < 0 ? 0 : new DataView(body.buffer, body.byteOffset + at).getUint32(1);
  if (length > readMaxBytes) {
    const text = `message size ${length} is larger than configured readMaxBytes ${readMaxBytes}`;
    throw new ConnectError(text, Code.ResourceExhausted);
  }
  if (left < length) throw new ConnectError("protocol error: incomplete envelope", Code.InvalidArgument);
  return at + PREFIX_BYTES + length;
}

/** Returns a message, compressed if requested, with the flags and its length in front. */
export async function encodeMessage(
  message: Uint8Array,
  compression: Compression | null,
  flags = 0,
): Promise<Uint8Array> {
  const data = compression === null ? message : await compression.compress(message);
  const framed = new Uint8Array(PREFIX_BYTES + data.byteLength);
  framed[0] = compression === null ? flags : flags | COMPRESSED_FLAG;
  new DataView(framed.buffer).setUint32(1, data.byteLength);
  framed.set(data, PREFIX_BYTES);
  return framed;
}
