/** Receives the tokens with which providers and transmitters end sessions. */
import { type HttpRequest, type HttpResponse, respond, retryAfter } from "../../platform/listener/handler.ts";
import { sendJson } from "../../platform/listener/json.ts";

/** With 503, the sender may repeat the request, which then takes effect. */
export type Received = { readonly status: 200 | 202 | 503 } | { readonly status: 400; readonly error: object };

export const UNAVAILABLE: Received = { status: 503 };

export type ReceiverDeps = {
  /** Counts a bad token of a sender; returns for how long the sender is to wait, in ms, if it has sent too many. */
  readonly takeFailure: (request: HttpRequest) => number | undefined;
  readonly onError: (error: unknown) => void;
};

/** Returns the handler of a path that takes POST alone. A valid token takes effect, however many bad ones its sender has sent. */
export function createReceiver(receive: (request: HttpRequest) => Promise<Received>, deps: ReceiverDeps) {
  const reply = (request: HttpRequest, response: HttpResponse, received: Received) => {
    const waitMs = received.status === 400 ? deps.takeFailure(request) : undefined;
    if (received.status === 400 && waitMs === undefined) return sendJson(response, 400, received.error);
    const status = waitMs === undefined ? received.status : 429;
    const retry = status === 503 ? "1" : waitMs === undefined ? undefined : retryAfter(waitMs);
    const headers = { "cache-control": "no-store", "content-length": 0, ...(retry && { "retry-after": retry }) };
    respond(response, status, headers);
  };
  return (request: HttpRequest, response: HttpResponse) => {
    if (request.method !== "POST") {
      return respond(response, request.method === "OPTIONS" ? 204 : 405, { allow: "POST, OPTIONS" });
    }
    receive(request)
      .catch((error: unknown) => {
        deps.onError(error);
        return UNAVAILABLE;
      })
      .then((received) => reply(request, response, received))
      .catch(() => response.destroy());
  };
}
