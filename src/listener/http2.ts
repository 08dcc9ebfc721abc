/** HTTP/2 on connections that the listener has accepted. */
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
import type { Handler, Request, Response } from "./exchange.ts";
import type { Protocol } from "./http1.ts";
import {
  type ListenerLimits,
  MAX_CONTROL_FRAMES,
  MAX_HEAD_BYTES,
  MAX_HEAD_FIELDS,
  MAX_RESETS,
  MAX_STREAMS,
  RESETS_PER_SECOND,
} from "./limits.ts";
import { PendingBodies } from "./pending-bodies.ts";
import { StreamTimeouts } from "./stream-timeouts.ts";

type Session = {
  readonly socket: Socket;
  /** When a stream was last opened or closed, ms. */
  usedAt: number;
  openStreams: number;
  /** PING and SETTINGS frames, and streams that were reset, within the second. */
  controlFrames: number;
};

const { NGHTTP2_ENHANCE_YOUR_CALM } = constants;
/** How often timeouts are looked for, ms. */
const CHECK_MS = 1000;

const SERVER_OPTIONS: ServerOptions = {
  maxSessionMemory: 10,
  maxHeaderListPairs: MAX_HEAD_FIELDS,
  streamResetBurst: MAX_RESETS,
  streamResetRate: RESETS_PER_SECOND,
  settings: { maxConcurrentStreams: MAX_STREAMS, maxHeaderListSize: MAX_HEAD_BYTES, enablePush: false },
};

export function createHttp2(limits: ListenerLimits, handle: Handler): Protocol {
  const sessions = new Map<Http2Session, Session>();
  const timeouts = new StreamTimeouts(limits.requestTimeoutMs, limits.writeTimeoutMs);
  const pending = new PendingBodies(limits.maxPendingBodies);
  let draining = false;
  let taken: Socket | undefined;
  /** Time in which this process ran, and could see what clients sent. Read periodically, as it is looked at. */
  let nowMs = turns.ranMs();

  const server = createServer(SERVER_OPTIONS, (request, response) => {
    const { stream } = response;
    // A response may be complete before its request is. Nobody reads the rest, so the stream would never close (and
    // ending it with RST_STREAM, as RFC 9113 section 8.1 allows, loses trailers in Node): it is read and dropped.
    stream.once("finish", dropRest);
    if (!stream.endAfterHeaders) pending.add(request);
    const session = stream.session && sessions.get(stream.session);
    if (session === undefined) return;
    session.usedAt = nowMs;
    session.openStreams++;
    timeouts.add(stream, request, response, nowMs);
    stream.once("close", onStreamClose);
    handle(request as Request, response as Response);
  });
  function onStreamClose(this: ServerHttp2Stream) {
    const session = timeouts.remove(this);
    const known = session && sessions.get(session);
    if (known === undefined) return;
    known.usedAt = nowMs;
    known.openStreams--;
    // nghttp2 counts resets too, but acts on them only when it has handed over all that was read at once.
    if (this.aborted && session !== undefined) countFrame(session, known);
  }

  server.on("session", (session: ServerHttp2Session) => {
    const known: Session = { socket: taken as Socket, usedAt: nowMs, openStreams: 0, controlFrames: 0 };
    sessions.set(session, known);
    session.once("close", () => sessions.delete(session));
    limitSession(session, known, limits.keepAliveTimeoutMs);
    if (draining) endSession(session, known.socket);
  });
  // Node has closed the connection of a peer that breaks the protocol or leaves.
  server.on("sessionError", () => {});
  const stopChecks = everyMs(Math.min(CHECK_MS, limits.requestTimeoutMs / 4), () => {
    nowMs = turns.ranMs();
    timeouts.check(nowMs);
    checkSessions(sessions, nowMs, limits.keepAliveTimeoutMs);
  });

  return {
    take(socket) {
      taken = socket;
      server.emit("connection", socket); // and in it "session"
      taken = undefined;
    },
    drain() {
      draining = true;
      for (const [session, { socket }] of sessions) endSession(session, socket);
    },
    // A connection that drains closes by itself, as soon as its client cannot have a request on its way.
    closeIdle() {},
    close() {
      stopChecks();
      server.close();
    },
  };
}

/** Looks again and again, each time after so many ms in which this process ran. @returns how to stop */
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
  const count = () => countFrame(session, known);
  session.on("ping", count).on("remoteSettings", count);
  // A dead peer: first a close that lets streams finish (it counts as activity), then the end.
  session.setTimeout(keepAliveTimeoutMs, () =>
    session.closed ? session.destroy() : endSession(session, known.socket),
  );
}

/** Closes idle sessions, and starts the next second of control frames. */
function checkSessions(sessions: ReadonlyMap<Http2Session, Session>, nowMs: number, keepAliveTimeoutMs: number): void {
  for (const [session, known] of sessions) {
    known.controlFrames = 0;
    const isIdle = known.openStreams === 0 && nowMs - known.usedAt > keepAliveTimeoutMs;
    if (isIdle) endSession(session, known.socket);
  }
}

function countFrame(session: Http2Session, known: Session): void {
  if (++known.controlFrames <= MAX_CONTROL_FRAMES) return;
  if (!session.destroyed) session.destroy(undefined, NGHTTP2_ENHANCE_YOUR_CALM);
}

function dropRest(this: ServerHttp2Stream) {
  this.removeAllListeners("data").resume();
}
