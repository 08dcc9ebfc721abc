/** Reads and writes the Length-Prefixed-Message of gRPC (PROTOCOL-HTTP2.md): a byte of flags, 32 bits of length, the message. */
import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import type { Exchange } from "../call/exchange.ts";
import { toUtf8 } from "../codec/bytes.ts";
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

/** The flag of the envelope that holds the trailers (PROTOCOL-WEB.md). */
export const TRAILERS_FLAG = 0b1000_0000;

/** Encodes trailers as an envelope. @param lines names and values, alternating */
export function encodeTrailers(lines: readonly string[]): Uint8Array {
  const fields: { readonly name: string; readonly text: string }[] = [];
  for (let i = 0; i < lines.length; i += 2) {
    const name = lines[i] as string;
    fields.push({ name, text: `${name}: ${lines[i + 1]}\r\n` });
  }
  // The fields have the order in which connect-es sends them.
  fields.sort((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)));
  return toUtf8(fields.map(({ text }) => text).join(""));
}
