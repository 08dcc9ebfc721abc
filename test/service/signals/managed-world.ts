/** The operations on subscriptions and streams, on an embedded store of their own and with receivers that record what they are sent. */
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { AuditEvent, Requester } from "../../../src/service/session/audit.ts";
import { wallMs } from "../../../src/service/session/time.ts";
import type { SubscriptionStore } from "../../../src/service/signals/ports.ts";
import type { OutgoingRequest, SendResult } from "../../../src/service/signals/send/sender.ts";
import { createStream, type StreamDeps } from "../../../src/service/signals/streams/manage.ts";
import { createEmbeddedStore } from "../../../src/service/store/embedded/store.ts";
import { scratch } from "../../support/service.ts";

export const NOW = wallMs(1_700_000_000_500);
export const ISSUER = "https://auth.example";
export const PUSH = "urn:ietf:rfc:8935";
export const POLL = "urn:ietf:rfc:8936";
export const ENDPOINT = "https://receiver.example/events";
export const receiver = { adminName: "receiver" } as Requester;
export const operator = { adminName: "operator" } as Requester;

type Claims = { readonly typ: string; readonly alg: string | undefined } & Readonly<Record<string, unknown>>;

/** Opens an empty store. Some steps of its subscriptions are replaced. A sealed secret is its text backwards. */
export function openSignals(replaced: (subscriptions: SubscriptionStore) => Partial<SubscriptionStore> = () => ({})) {
  const path = join(scratch(), "sessions.db");
  const store = createEmbeddedStore({ path, clock: () => NOW, reuseIntervalMs: 0, markerLifeMs: 1 });
  onTestFinished(() => store.close());
  const subscriptions = { ...store.signals.subscriptions, ...replaced(store.signals.subscriptions) };
  const sent: OutgoingRequest[] = [];
  const audited: (readonly [AuditEvent, Requester])[] = [];
  const failures: unknown[] = [];
  const backwards = (text: string) => [...text].reverse().join("");
  const world = {
    store,
    sent,
    audited,
    failures,
    /** Responds to a request. Tests may replace this function. */
    respond: async (_request: OutgoingRequest): Promise<SendResult> => ({ ok: true, status: 202 }),
    deps: {
      issuer: ISSUER,
      url: "https://signals.example",
      verificationIntervalMs: 0,
      forInterop: false,
      subscriptions,
      seal: backwards,
      openSecret: backwards,
      targets: { allowPrivate: false },
      audit: (event, requester) => void audited.push([event, requester]),
      wallClock: () => NOW,
      signingAlgs: () => ["ES256", "RS256"],
      signClaims: (typ, claims, alg) => JSON.stringify({ typ, alg, ...claims }),
      sender: {
        send(request: OutgoingRequest): Promise<SendResult> {
          sent.push(request);
          return world.respond(request);
        },
        close() {},
      },
      events: { onFailure: (error) => void failures.push(error) },
    } satisfies StreamDeps as StreamDeps,
    /** Returns the claims of the tokens that were sent. */
    claims: () => sent.map(({ body }) => JSON.parse(body) as Claims),
    /** Creates a stream of `receiver`, by push or by poll. */
    async stream(kind: "push" | "poll"): Promise<string> {
      const delivery = kind === "push" ? { method: PUSH, endpointUrl: ENDPOINT } : { method: POLL, endpointUrl: "" };
      const { streamId } = await createStream(world.deps, { eventsRequested: [], delivery }, receiver);
      audited.splice(0);
      return streamId;
    },
  };
  return world;
}

/** Waits until all work is done that waits for nothing outside of the process. */
export async function quiet(): Promise<void> {
  for (let turn = 0; turn < 12; turn++) await new Promise((resolve) => setImmediate(resolve));
}
