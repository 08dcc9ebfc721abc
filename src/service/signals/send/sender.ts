/** An HTTP client for receivers of signals. It follows no redirect, keeps no response body, and checks each address. */
import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, request as requestHttp } from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import type { LookupFunction, Socket } from "node:net";
import { refuseUpgrade } from "../../../platform/net/refuse-upgrade.ts";
import type { DeliveryError } from "../model.ts";
import { createLookup, type Find, lookupFunction } from "./lookup.ts";
import { isAllowed, parseTarget, type TargetRules } from "./target.ts";

export type OutgoingRequest = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

/** The status of a response, or why there is none. */
export type SendResult =
  | { readonly ok: true; readonly status: number }
  | { readonly ok: false; readonly error: DeliveryError };

export interface Sender {
  /** Sends a request. It never rejects. */
  send(request: OutgoingRequest): Promise<SendResult>;
  close(): void;
}

export type SenderOptions = TargetRules & {
  /** The time limit for everything: looking up the name, connecting, sending and receiving, in ms. */
  readonly deadlineMs?: number;
  /** Further certificate authorities to trust, in PEM. */
  readonly ca?: string;
  readonly find?: Find;
};

const DEADLINE_MS = 10_000;
/** How many connections to one receiver are open at most. */
const MAX_SOCKETS = 8;
const IDLE_MS = 30_000;
const MAX_HEADER_BYTES = 8_192;
/** A longer body is not read to its end; the connection is closed. */
const MAX_BODY_BYTES = 16_384;
/** How many bytes a receiver may send in all, including its certificates. */
const MAX_RECEIVED_BYTES = 131_072;
/** How many interim responses (1xx) a receiver may send. */
const MAX_INTERIM = 8;
const LOOK_MS = 50;

class AddressRefused extends Error {}
class TooLarge extends Error {}

export function createSender(options: SenderOptions): Sender {
  const { deadlineMs = DEADLINE_MS, ca, find = createLookup({ maxWaitMs: deadlineMs }) } = options;
  const pool = { keepAlive: true, maxSockets: MAX_SOCKETS, maxFreeSockets: 2, timeout: IDLE_MS };
  const agents = { http: apart(new HttpAgent(pool)), https: apart(new HttpsAgent(pool)) };
  const lookups = { http: checkedLookup(find, false, options), https: checkedLookup(find, true, options) };

  function open(url: URL, { headers, body }: OutgoingRequest, signal: AbortSignal): ClientRequest {
    const fields = { ...headers, "user-agent": "session-service", "content-length": Buffer.byteLength(body) };
    const common = { method: "POST", headers: fields, maxHeaderSize: MAX_HEADER_BYTES, receiver: url.href, signal };
    return url.protocol === "https:"
      ? requestHttps(url, { ...common, agent: agents.https, lookup: lookups.https, ...(ca !== undefined && { ca }) })
      : requestHttp(url, { ...common, agent: agents.http, lookup: lookups.http });
  }

  async function send(request: OutgoingRequest): Promise<SendResult> {
    const url = parseTarget(request.url, options);
    if (url === undefined) return { ok: false, error: "address_refused" };
    const deadline = AbortSignal.timeout(deadlineMs);
    const attempt = () => exchange(open(url, request, deadline), request.body, url, options, deadline);
    const first = await attempt();
    if (first !== "stale") return first;
    // The receiver has closed a kept-alive connection. The request is sent once more, with the same id.
    const second = await attempt();
    return second === "stale" ? { ok: false, error: "unreachable" } : second;
  }

  return {
    send,
    close() {
      agents.http.destroy();
      agents.https.destroy();
    },
  };
}

/** Gives each receiver its own connections. Otherwise a stalled receiver would delay all other receivers on its host. */
function apart<A extends HttpAgent>(agent: A): A {
  const originOf = agent.getName.bind(agent);
  agent.getName = (options?: Parameters<typeof originOf>[0] & { readonly receiver?: string }) =>
    `${originOf(options)}:${options?.receiver}`;
  return agent;
}

/** Resolves a name. If any address of the name is not allowed, the name is refused. */
function checkedLookup(find: Find, secure: boolean, rules: TargetRules): LookupFunction {
  return lookupFunction(find, (addresses) => {
    const isRefused = addresses.length === 0 || addresses.some(({ address }) => !isAllowed(address, secure, rules));
    return isRefused ? new AddressRefused("the address is not allowed") : undefined;
  });
}

type Phase = "connecting" | "handshake" | "exchange";

/** Sends one request. The result `stale` means that a kept-alive connection was closed before a response arrived. */
function exchange(
  request: ClientRequest,
  body: string,
  url: URL,
  rules: TargetRules,
  deadline: AbortSignal,
): Promise<SendResult | "stale"> {
  const secure = url.protocol === "https:";
  let phase: Phase = "connecting";
  return new Promise((resolve) => {
    request.on("socket", (socket: Socket) => {
      limitReceived(request, socket);
      // A connection that was kept alive is used again. Its address was checked when it was made.
      if (!socket.connecting) {
        phase = "exchange";
        return;
      }
      socket.once("connect", () => {
        phase = secure ? "handshake" : "exchange";
        // The remote address of the socket is the address that is really used, however it was found.
        if (!isAllowed(socket.remoteAddress ?? "", secure, rules)) request.destroy(new AddressRefused());
      });
      socket.once("secureConnect", () => {
        phase = "exchange";
      });
    });
    request.on("response", (response) => {
      resolve({ ok: true, status: response.statusCode ?? 0 });
      discard(response);
    });
    refuseUpgrade(request, () => resolve({ ok: false, error: "invalid_response" }));
    request.on("error", (error: NodeJS.ErrnoException) => {
      if (deadline.aborted) return resolve({ ok: false, error: "timeout" });
      const stale = request.reusedSocket && ["ECONNRESET", "EPIPE"].includes(error.code ?? "");
      resolve(stale ? "stale" : { ok: false, error: errorOf(error, phase) });
    });
    request.on("close", () => {
      resolve({ ok: false, error: deadline.aborted ? "timeout" : "unreachable" });
    });
    request.end(body);
  });
}

/** Ends an exchange in which a receiver sends too much. Reading all of it would use up the processor until the deadline. */
function limitReceived(request: ClientRequest, socket: Socket): void {
  const before = socket.bytesRead;
  let interim = 0;
  request.on("information", () => {
    if (++interim > MAX_INTERIM) request.destroy(new TooLarge());
  });
  // The received bytes are polled with a timer, because blank lines before a response cause no event.
  const timer = setInterval(() => {
    if (socket.bytesRead - before > MAX_RECEIVED_BYTES) request.destroy(new TooLarge());
  }, LOOK_MS).unref();
  request.on("close", () => clearInterval(timer));
}

/** Reads a body to its end so that the connection can be used again, unless the body is too long. */
function discard(response: IncomingMessage): void {
  let length = 0;
  response.on("data", (chunk: Buffer) => {
    length += chunk.length;
    if (length > MAX_BODY_BYTES) response.destroy();
  });
  response.on("error", () => {});
}

function errorOf(error: NodeJS.ErrnoException, phase: Phase): DeliveryError {
  if (error instanceof AddressRefused) return "address_refused";
  if (error instanceof TooLarge || error.code === "HPE_HEADER_OVERFLOW") return "too_large";
  if (error.code?.startsWith("HPE_")) return "invalid_response";
  return phase === "handshake" ? "tls" : "unreachable";
}
