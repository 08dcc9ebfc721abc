/**
 * Ends HTTP/2 streams whose client does not finish its request or does not read its response: after a time, and sooner if those that wait
 * for their clients hold too much memory. All streams of a listener are in one list, ordered by time, because a timer for each would cost
 * more.
 */
import {
  constants,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type Http2Session,
  type ServerHttp2Stream,
} from "node:http2";
import { MAX_UNREAD_BYTES } from "./limits.ts";

/** The memory of an open stream beside the head of its request, in bytes. */
const STREAM_BYTES = 10 * 1024;

type OpenStream = {
  readonly session: Http2Session | undefined;
  readonly request: Http2ServerRequest;
  readonly response: Http2ServerResponse;
  readonly openedAt: number;
  /** When the stream was opened or last checked. */
  since: number;
  /** Since when the response has waited only for the client. */
  writtenAt: number | undefined;
  /** Since when the client has not read that the stream was reset. */
  resetAt: number | undefined;
};

/** How often a stream is checked within the shorter one of the two time limits. With four checks it exceeds no limit by more than half. */
const CHECKS_PER_LIMIT = 4;

/** @param maxUnreadBytes how much memory the streams may hold that wait for their clients, about */
export function createStreamTimeouts(
  requestTimeoutMs: number,
  writeTimeoutMs: number,
  maxUnreadBytes = MAX_UNREAD_BYTES,
) {
  /** How often each stream is checked, in ms. */
  const checkMs = Math.min(requestTimeoutMs, writeTimeoutMs) / CHECKS_PER_LIMIT;
  const streams = new Map<ServerHttp2Stream, OpenStream>();

  function judge(stream: ServerHttp2Stream, open: OpenStream, nowMs: number): void {
    if (stream.closed) {
      open.resetAt ??= nowMs;
      if (nowMs - open.resetAt < writeTimeoutMs) return;
      open.session?.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM);
    } else if (!open.request.complete && nowMs - open.openedAt >= requestTimeoutMs) reset(stream, open, nowMs);
    // While the handler works, the stream may stay open for any time: a stream of messages may be long.
    else if (!open.response.writableEnded) return;
    else if (open.writtenAt === undefined) open.writtenAt = nowMs;
    else if (nowMs - open.writtenAt >= writeTimeoutMs) reset(stream, open, nowMs);
  }

  return {
    add(stream: ServerHttp2Stream, request: Http2ServerRequest, response: Http2ServerResponse, nowMs: number): void {
      const { session } = stream;
      streams.set(stream, {
        session,
        request,
        response,
        openedAt: nowMs,
        since: nowMs,
        writtenAt: undefined,
        resetAt: undefined,
      });
    },

    /** Removes a stream. @returns its entry */
    remove(stream: ServerHttp2Stream): OpenStream | undefined {
      const open = streams.get(stream);
      streams.delete(stream);
      return open;
    },

    check(nowMs: number): void {
      endUnread(streams, maxUnreadBytes, nowMs);
      for (const [stream, open] of streams) {
        if (nowMs - open.since < checkMs) return;
        judge(stream, open, nowMs);
        // The stream was checked now, so its entry moves to the end of the list, which is ordered by the time of the last check.
        open.since = nowMs;
        if (streams.delete(stream)) streams.set(stream, open);
      }
    },
  };
}

function reset(stream: ServerHttp2Stream, open: OpenStream, nowMs: number): void {
  stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  open.resetAt = nowMs;
}

/** If the streams that wait for their clients hold too much, ends them, from the oldest on, until they hold half of what they may. */
function endUnread(streams: ReadonlyMap<ServerHttp2Stream, OpenStream>, maxBytes: number, nowMs: number): void {
  const unread = [...streams].filter(([stream, { response }]) => response.writableEnded || stream.writableNeedDrain);
  let left = unread.reduce((sum, [, { request }]) => sum + bytesOf(request), 0);
  if (left <= maxBytes) return;
  // The list is in the order of checks.
  for (const [stream, open] of unread.sort(([, one], [, other]) => one.openedAt - other.openedAt)) {
    if (left <= maxBytes / 2) return;
    left -= bytesOf(open.request);
    // A stream that was reset at an earlier check is still there: its client reads nothing at all.
    if (stream.closed) open.session?.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM);
    else reset(stream, open, nowMs);
  }
}

/** Returns how much memory a stream holds, about. */
function bytesOf(request: Http2ServerRequest): number {
  return request.rawHeaders.reduce((sum, text) => sum + text.length, STREAM_BYTES);
}
