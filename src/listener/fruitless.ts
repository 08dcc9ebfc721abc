/**
 * Bounds what one address costs by HTTP/2 requests without an authentic credential. Each takes 26 bytes and up to a millisecond of
 * processor time, most of it in Node's HTTP/2, so even a refusal would be too dear. HTTP/1.1 costs a tenth for its bytes and needs no
 * such bound.
 */
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { subnetOf } from "../net/subnet.ts";
import type { Request } from "./exchange.ts";

/** How many such requests an address may make at once. */
export const MAX_FRUITLESS = 200;
export const FRUITLESS_PER_SECOND = 200;
/** For how long an address that made more gets no HTTP/2 connection, ms. */
export const CALM_MS = 5_000;
/** Addresses that are counted at the same time, some 130 bytes each. */
const MAX_ADDRESSES = 50_000;

/** A proxy on this machine speaks for many. */
const THIS_MACHINE = new Set(["127.0.0.1", "::1", "::ffff:127.0.0.1"]);

/** Requests that were of no use although their responses do not say so. */
const fruitless = new WeakSet<object>();

/** Notes that a request was fruitless, whatever the status of its response. */
export function noteFruitless(request: Request): void {
  fruitless.add(request);
}

type Exchange = { readonly request: Http2ServerRequest; readonly response: Http2ServerResponse };

/** How many requests an address has made recently, as a bucket that leaks, from `atMs` on. */
type Bucket = { level: number; atMs: number };

export class Fruitless {
  readonly #buckets = new Map<string, Bucket>();
  readonly #needsCredential: (path: string) => boolean;
  readonly #clock: () => number;

  /** @param needsCredential whether requests to a path are refused without an authentic credential */
  constructor(needsCredential: (path: string) => boolean, clock = () => performance.now()) {
    this.#needsCredential = needsCredential;
    this.#clock = clock;
  }

  /** Counts a request. @returns whether the address has made too many */
  count(address: string): boolean {
    if (THIS_MACHINE.has(address)) return false;
    const bucket = this.#bucketOf(subnetOf(address));
    const now = this.#clock();
    // What comes on connections that were open before does not bar the address for longer.
    if (bucket.atMs > now) return true;
    bucket.level = Math.max(0, bucket.level - ((now - bucket.atMs) / 1000) * FRUITLESS_PER_SECOND) + 1;
    bucket.atMs = now;
    if (bucket.level <= MAX_FRUITLESS) return false;
    bucket.level = MAX_FRUITLESS;
    // It begins to leak when the address is let in again.
    bucket.atMs = now + CALM_MS;
    return true;
  }

  /** Counts a request that is over, if it was fruitless. @returns whether its connection has to end */
  isTooMuch({ request, response }: Exchange, { remoteAddress = "" }: Socket): boolean {
    return this.#isFruitless(request, response) && this.count(remoteAddress);
  }

  /** Ends a new connection if its address made too many requests. @returns whether it did */
  bars(socket: Socket): boolean {
    if (!this.isBarred(socket.remoteAddress ?? "")) return false;
    socket.destroy();
    return true;
  }

  isBarred(address: string): boolean {
    return (this.#buckets.get(subnetOf(address))?.atMs ?? 0) > this.#clock();
  }

  /** A credential in the headers says nothing: a page is the same with a made-up one. */
  #isFruitless(request: Http2ServerRequest, { statusCode, stream }: Http2ServerResponse): boolean {
    const { method, url } = request;
    if (!this.#needsCredential(url) || method === "OPTIONS" || fruitless.has(request)) return true;
    const grpcStatus = grpcStatusOf(stream);
    // An outage is no fault of its callers.
    if (statusCode === 503 || grpcStatus === UNAVAILABLE) return false;
    return statusCode >= 400 || grpcStatus !== OK;
  }

  /** The address that was seen first is forgotten first; at this many a single one matters little. */
  #bucketOf(network: string): Bucket {
    const known = this.#buckets.get(network);
    if (known !== undefined) return known;
    if (this.#buckets.size >= MAX_ADDRESSES) this.#buckets.delete(this.#buckets.keys().next().value as string);
    const bucket = { level: 0, atMs: this.#clock() };
    this.#buckets.set(network, bucket);
    return bucket;
  }
}

/** Status codes of gRPC. */
const OK = "0";
const UNAVAILABLE = "14";

function grpcStatusOf({ sentHeaders, sentTrailers }: ServerHttp2Stream): string {
  return String(sentTrailers?.["grpc-status"] ?? sentHeaders?.["grpc-status"] ?? OK);
}
