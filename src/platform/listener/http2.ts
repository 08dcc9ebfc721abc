import {
  constants,
  createServer,
  type Http2Session,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type ServerOptions,
} from "node:http2";
import type { Socket } from "node:net";
import { TURN_MS, turns } from "../clock/turns.ts";
import { endSession } from "../http2/end-session.ts";
import type { Refusal } from "./connections.ts";
import type { Handler, HttpRequest, HttpResponse } from "./handler.ts";
import type { Protocol } from "./http1.ts";
import {
  FRAMES_PER_REQUEST,
  type ListenerLimits,
  MAX_CONTROL_FRAMES,
  MAX_HEAD_BYTES,
  MAX_HEAD_FIELDS,
  MAX_PROXY_RESETS,
  MAX_RESETS,
  MAX_STREAMS,
  NGHTTP2_RESETS,
} from "./limits.ts";
import { createPendingBodies } from "./pending-bodies.ts";
import { createStreamTimeouts } from "./stream-timeouts.ts";
import { UnauthenticatedRequests } from "./unauthenticated-requests.ts";

type Session = {
  readonly socket: Socket;
  /** The limit of `resets`. */
  readonly maxResets: number;
  /** When a stream was last opened or closed, in ms. */
  usedAt: number;
  openStreams: number;
  /** The PING and SETTINGS frames of the current second for which no request was served. */
  controlFrames: number;
  /** The streams of the current second that were reset before the end of their response, and for which no other request was served. */
  resets: number;
};

const { NGHTTP2_ENHANCE_YOUR_CALM } = constants;
/** How often timeouts are checked, in ms. */
const CHECK_MS = 1000;
/** The largest limit that Node accepts. */
const UNLIMITED = 2 ** 32 - 1;

function serverOptions({ isProxy }: ListenerLimits): ServerOptions {
  const resets = isProxy === undefined ? NGHTTP2_RESETS : UNLIMITED;
  return {
    maxSessionMemory: 10,
    maxHeaderListPairs: MAX_HEAD_FIELDS,
    streamResetBurst: resets,
    streamResetRate: resets,
    // Streams count as open until Node has handled their reset, and those beyond the limit are refused. By default 100 of them end the
    // connection.
    ...(isProxy !== undefined && { maxSessionRejectedStreams: UNLIMITED }),
    settings: { maxConcurrentStreams: MAX_STREAMS, maxHeaderListSize: MAX_HEAD_BYTES, enablePush: false },
  };
}

export function createHttp2(limits: ListenerLimits, handle: Handler, onRefused: (reason: Refusal) => void): Protocol {
  const sessions = new Map<Http2Session, Session>();
  const timeouts = createStreamTimeouts(limits.requestTimeoutMs, limits.writeTimeoutMs);
  const pending = createPendingBodies(limits.maxPendingBodies);
  const unauthenticated = limits.needsCredential && new UnauthenticatedRequests(limits.needsCredential);
  let draining = false;
  let taken: Socket | undefined;
  /** The time of the last check, in ms, by a clock that runs only while this process can read from clients. */
  let nowMs = turns.ranMs();

  const server = createServer(serverOptions(limits), (request, response) => {
    const { stream } = response;
    // A response may be complete before its request is. The rest of the request is read and dropped, since the stream would not close
    // otherwise. (RFC 9113 section 8.1 allows RST_STREAM instead, but then Node loses trailers.)
    stream.once("finish", dropRest);
    if (!stream.endAfterHeaders) pending.add(request);
    const session = stream.session && sessions.get(stream.session);
    if (session === undefined) return;
    session.usedAt = nowMs;
    // A client that keeps to the limit of its streams has reset those that are over it, in the bytes that are being read.
    const tooMany = ++session.openStreams > MAX_STREAMS + session.maxResets;
    if (tooMany) return calm(stream.session as Http2Session);
    timeouts.add(stream, request, response, nowMs);
    stream.once("close", onStreamClose);
    handle(request as HttpRequest, response as HttpResponse);
  });
  function onStreamClose(this: ServerHttp2Stream) {
    const open = timeouts.remove(this);
    const known = open?.session && sessions.get(open.session);
    if (open === undefined || known === undefined) return;
    known.usedAt = nowMs;
    known.openStreams--;
    const isTooMuch = countEnd(this, known) || unauthenticated?.isTooMuch(open, known.socket);
    if (isTooMuch) calm(open.session as Http2Session);
  }

  server.on("session", (session: ServerHttp2Session) => {
    const known = sessionOn(taken as Socket, limits, nowMs);
    sessions.set(session, known);
    session.once("close", () => sessions.delete(session));
    limitSession(session, known, limits.keepAliveTimeoutMs);
    if (draining) endSession(session, known.socket);
  });
  // Node has already closed the connection of a client that violates the protocol or disconnects.
  server.on("sessionError", () => {});
  const stopChecks = everyMs(Math.min(CHECK_MS, limits.requestTimeoutMs / 4), () => {
    nowMs = turns.ranMs();
    timeouts.check(nowMs);
    checkSessions(sessions, nowMs, limits.keepAliveTimeoutMs);
  });

  return {
    take(socket) {
      if (unauthenticated?.bars(socket)) return onRefused("requests");
      taken = socket;
      server.emit("connection", socket); // `emit` calls the listener of the event "session", which reads `taken`.
      taken = undefined;
    },
    drain() {
      draining = true;
      for (const [session, { socket }] of sessions) endSession(session, socket);
    },
    // A draining connection closes by itself as soon as its client cannot have a request on the way.
    closeIdle() {},
    close() {
      stopChecks();
      server.close();
    },
  };
}

function sessionOn(socket: Socket, limits: ListenerLimits, nowMs: number): Session {
  const maxResets = limits.isProxy?.(socket.remoteAddress ?? "") === true ? MAX_PROXY_RESETS : MAX_RESETS;
  return { socket, maxResets, usedAt: nowMs, openStreams: 0, controlFrames: 0, resets: 0 };
}

/** Calls `look` each time after this process ran for `ms` milliseconds. @returns a function that stops it */
function everyMs(ms: number, look: () => void): () => void {
  const turnsPerLook = Math.ceil(ms / TURN_MS);
  let turnsLeft = turnsPerLook;
  return turns.follow(() => {
    if (--turnsLeft > 0) return;
    turnsLeft = turnsPerLook;
    look();
  });
}

function limitSession(session: Http2Session, known: Session, keepAliveTimeoutMs: number): void {
  const count = () => {
    if (++known.controlFrames > MAX_CONTROL_FRAMES) calm(session);
  };
  session.on("ping", count).on("remoteSettings", count);
  // If nothing is sent or received for this time, the client may be dead. Then the session is closed, which lets its streams finish. After
  // the same time without activity it is destroyed.
  session.setTimeout(keepAliveTimeoutMs, () =>
    session.closed ? session.destroy() : endSession(session, known.socket),
  );
}

/** Closes idle sessions. It runs once per second, so it also resets the counts of frames. */
function checkSessions(sessions: ReadonlyMap<Http2Session, Session>, nowMs: number, keepAliveTimeoutMs: number): void {
  for (const [session, known] of sessions) {
    known.controlFrames = 0;
    known.resets = 0;
    const isIdle = known.openStreams === 0 && nowMs - known.usedAt > keepAliveTimeoutMs;
    if (isIdle) endSession(session, known.socket);
  }
}

/** Counts a stream that has ended. @returns whether its connection must end */
function countEnd(stream: ServerHttp2Stream, known: Session): boolean {
  // A response that is complete, but not yet sent, was reset just as one that has not begun.
  if (!stream.aborted && stream.writableFinished) noteServed(known);
  else known.resets++;
  return known.resets > known.maxResets;
}

/**
 * Takes into account that a request was served. Clients send control frames and resets because of it: the flow control of grpc-go sends a
 * PING with the data that it reads (BDP estimation), and calls of the same client end by their deadlines. An attack by such frames has few
 * or no requests served (CVE-2019-9512, CVE-2019-9515, CVE-2023-44487, CVE-2025-8671): each request pays for only a few of them.
 */
function noteServed(known: Session): void {
  if (known.controlFrames > 0) known.controlFrames -= Math.min(known.controlFrames, FRAMES_PER_REQUEST);
  if (known.resets > 0) known.resets--;
}

/** Ends a connection with ENHANCE_YOUR_CALM, so that the client learns why. */
function calm(session: Http2Session): void {
  if (session.destroyed) return;
  session.goaway(NGHTTP2_ENHANCE_YOUR_CALM);
  session.destroy(undefined, NGHTTP2_ENHANCE_YOUR_CALM);
}

function dropRest(this: ServerHttp2Stream) {
  this.removeAllListeners("data").resume();
}
