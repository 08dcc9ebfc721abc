/**
 * Limits HTTP/2 requests of one address that have no authentic credential. A request of 26 bytes takes up to a millisecond, mostly in
 * Node's HTTP/2, so even refusing it is expensive. HTTP/1.1 takes a tenth of the time per byte, and needs no such limit.
 */
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { subnetOf } from "../net/subnet.ts";
import type { HttpRequest } from "./handler.ts";

/** How many HTTP/2 requests without an authentic credential an address may make in a burst. */
export const MAX_UNAUTHENTICATED = 200;
export const UNAUTHENTICATED_PER_SECOND = 200;
/** How long an address with too many requests without an authentic credential may not open HTTP/2 connections, in ms. */
export const CALM_MS = 5_000;
/** How many addresses are counted at the same time; each takes some 130 bytes. */
const MAX_ADDRESSES = 50_000;

/** Addresses of this machine are not limited: a proxy on it sends the requests of many clients. */
const THIS_MACHINE = new Set(["127.0.0.1", "::1", "::ffff:127.0.0.1"]);

/** Requests that had no authentic credential, although the status of their responses is that of a success. */
const noted = new WeakSet<object>();

export function noteUnauthenticated(request: HttpRequest): void {
  noted.add(request);
}

type Exchange = { readonly request: Http2ServerRequest; readonly response: Http2ServerResponse };

/** A leaky bucket that counts the recent requests of an address. `level` is the count at the time `atMs`, and decreases from then on. */
type Bucket = { level: number; atMs: number };

export class UnauthenticatedRequests {
  readonly #buckets = new Map<string, Bucket>();
  readonly #needsCredential: (path: string) => boolean;
  readonly #clock: () => number;

  /** @param needsCredential whether requests to a path are refused without an authentic credential */
  constructor(needsCredential: (path: string) => boolean, clock = () => performance.now()) {
    this.#needsCredential = needsCredential;
    this.#clock = clock;
  }

  /** Counts a request. @returns whether its address has made too many */
  count(address: string): boolean {
    if (THIS_MACHINE.has(address)) return false;
    const bucket = this.#bucketOf(subnetOf(address));
    const now = this.#clock();
    // The address is blocked until `atMs`. Requests on its older connections do not prolong that.
    if (bucket.atMs > now) return true;
    bucket.level = Math.max(0, bucket.level - ((now - bucket.atMs) / 1000) * UNAUTHENTICATED_PER_SECOND) + 1;
    bucket.atMs = now;
    if (bucket.level <= MAX_UNAUTHENTICATED) return false;
    bucket.level = MAX_UNAUTHENTICATED;
    // The address may not connect until this time, and its count does not decrease before.
    bucket.atMs = now + CALM_MS;
    return true;
  }

  /** Counts a finished request if it had no authentic credential. @returns whether its connection must end */
  isTooMuch({ request, response }: Exchange, { remoteAddress = "" }: Socket): boolean {
    return this.#isUnauthenticated(request, response) && this.count(remoteAddress);
  }

  /** Ends a new connection if its address has made too many requests. @returns whether it did */
  bars(socket: Socket): boolean {
    if (!this.isBarred(socket.remoteAddress ?? "")) return false;
    socket.destroy();
    return true;
  }

  isBarred(address: string): boolean {
    return (this.#buckets.get(subnetOf(address))?.atMs ?? 0) > this.#clock();
  }

  /** Whether a request counts as one without an authentic credential. Any request for a plain page does, because pages check none. */
  #isUnauthenticated(request: Http2ServerRequest, { statusCode, stream }: Http2ServerResponse): boolean {
    const { method, url } = request;
    if (!this.#needsCredential(url) || method === "OPTIONS" || noted.has(request)) return true;
    const grpcStatus = grpcStatusOf(stream);
    // A response that reports an outage says nothing about the credential, so the request is not counted.
    if (statusCode === 503 || grpcStatus === UNAVAILABLE) return false;
    return statusCode >= 400 || grpcStatus !== OK;
  }

  /** If there are too many buckets, the oldest is dropped: among so many addresses a single one matters little. */
  #bucketOf(network: string): Bucket {
    const known = this.#buckets.get(network);
    if (known !== undefined) return known;
    if (this.#buckets.size >= MAX_ADDRESSES) this.#buckets.delete(this.#buckets.keys().next().value as string);
    const bucket = { level: 0, atMs: this.#clock() };
    this.#buckets.set(network, bucket);
    return bucket;
  }
}

const OK = "0";
const UNAVAILABLE = "14";

function grpcStatusOf({ sentHeaders, sentTrailers }: ServerHttp2Stream): string {
  return String(sentTrailers?.["grpc-status"] ?? sentHeaders?.["grpc-status"] ?? OK);
}
