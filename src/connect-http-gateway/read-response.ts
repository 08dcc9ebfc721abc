import { type ClientHttp2Stream, constants, type IncomingHttpHeaders } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { type GrpcResult, httpError, lost, messageOf, PREFIX_BYTES } from "./grpc-call.ts";

/** A response that is being read. */
interface Reading {
  readonly resolve: (result: GrpcResult) => void;
  readonly reject: (reason: unknown) => void;
  readonly onRead: () => void;
  readonly readMaxBytes: number;
  readonly chunks: Buffer[];
  length: number;
  header: IncomingHttpHeaders;
  trailer: IncomingHttpHeaders | undefined;
}

const READING = Symbol("reading");

/**
 * A stream whose response is being read. Node keeps streams, and what their listeners refer to, until the next full garbage collection. So
 * all streams share their listeners, which find the reading in a property that is cleared when the call ends.
 */
type ReadStream = ClientHttp2Stream & { [READING]?: Reading | undefined };

/**
 * Reads the response of a unary call, and calls `onRead` for each piece that arrives.
 * @throws ConnectError the server's error if it sent a status; `unavailable` if the connection was lost
 */
export function readResponse(stream: ReadStream, readMaxBytes: number, onRead: () => void): Promise<GrpcResult> {
  return new Promise((resolve, reject) => {
    const state = { chunks: [], length: 0, header: {}, trailer: undefined };
    stream[READING] = { resolve, reject, onRead, readMaxBytes, ...state };
    stream.on("response", onResponse);
    stream.on("trailers", onTrailers);
    stream.on("data", onData);
    stream.on("error", lose);
    stream.on("end", onEnd);
    stream.on("close", onClose);
  });
}

function onResponse(this: ReadStream, head: IncomingHttpHeaders): void {
  const reading = this[READING];
  if (reading !== undefined) reading.header = head;
}

function onTrailers(this: ReadStream, tail: IncomingHttpHeaders): void {
  const reading = this[READING];
  if (reading !== undefined) reading.trailer = tail;
}

function onData(this: ReadStream, chunk: Buffer): void {
  const reading = this[READING];
  if (reading === undefined) return;
  const { chunks, readMaxBytes } = reading;
  reading.onRead();
  reading.length += chunk.byteLength;
  if (reading.length - PREFIX_BYTES <= readMaxBytes) {
    chunks.push(chunk);
    return;
  }
  fail(this, new ConnectError(`the response is larger than ${readMaxBytes} bytes`, Code.ResourceExhausted));
  this.close(constants.NGHTTP2_CANCEL);
}

function onEnd(this: ReadStream): void {
  const reading = this[READING];
  if (reading === undefined) return;
  const { header, trailer, chunks } = reading;
  // Node emits `end` even if the response was cut. A response without a gRPC status is not complete, so it is not evaluated here.
  if (trailer === undefined && header["grpc-status"] === undefined) return;
  try {
    const message = messageOf(header, trailer ?? header, chunks);
    this[READING] = undefined;
    reading.resolve({ header, trailer: trailer ?? {}, message });
  } catch (error) {
    fail(this, error);
  }
}

function onClose(this: ReadStream): void {
  const reading = this[READING];
  if (reading === undefined) return;
  const error = httpError(reading.header);
  if (error === undefined) lose.call(this, undefined);
  else fail(this, error);
}

function lose(this: ReadStream, cause: unknown): void {
  fail(this, lost(cause));
}

function fail(stream: ReadStream, error: unknown): void {
  stream[READING]?.reject(error);
  stream[READING] = undefined;
}
