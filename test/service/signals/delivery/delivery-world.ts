/** Instances that deliver signals from one store, receivers with faults, and a clock that tests move. */
import { wallMs } from "../../../../src/service/session/time.ts";
import { Delivery } from "../../../../src/service/signals/delivery/delivery.ts";
import type { DeliveryError, PauseReason } from "../../../../src/service/signals/model.ts";
import type { OutgoingRequest, Sender, SendResult } from "../../../../src/service/signals/send/sender.ts";
import { MemoryStore } from "./memory-store.ts";

/** How a receiver behaves. `lost`: it accepts the signal, but its response is lost. `hold`: it responds when `release` is called. */
export type Behaviour = "accept" | "fail" | "lost" | "hold" | number | DeliveryError;

type Receipt = { readonly to: string; readonly id: string };

export function createWorld({ behaviour = "accept" as Behaviour, fraction = 0.5 } = {}) {
  const store = new MemoryStore();
  const receipts: Receipt[] = [];
  const paused: [string, PauseReason][] = [];
  const losses: [string, number][] = [];
  const givenUp: [string, number][] = [];
  const failures: unknown[] = [];
  let held: (() => void)[] = [];
  let instances = 0;
  const world = {
    store,
    receipts,
    paused,
    losses,
    givenUp,
    /** What instances have reported as failures of the store. */
    failures,
    /** Returns how the receiver of a signal behaves. Tests may replace this function. */
    behaviour: (_receipt: Receipt): Behaviour => behaviour,
    attempts: 0,
    release() {
      for (const respond of held) respond();
      held = [];
    },
    instance: (sender: Sender = scripted) => startInstance(`instance${instances++}`, sender),
    /** Waits until all work is done that can be done without advancing the clock. */
    async quiet() {
      for (let turn = 0; turn < 12; turn++) await new Promise((resolve) => setImmediate(resolve));
    },
  };

  async function receive({ url, headers }: OutgoingRequest): Promise<SendResult> {
    const receipt = { to: new URL(url).hostname.split(".")[0] as string, id: headers["webhook-id"] as string };
    world.attempts++;
    const does = world.behaviour(receipt);
    if (typeof does === "number") return { ok: true, status: does };
    if (does === "fail") return { ok: true, status: 500 };
    if (does !== "accept" && does !== "lost" && does !== "hold") return { ok: false, error: does };
    receipts.push(receipt);
    if (does === "hold") await new Promise<void>((resolve) => held.push(resolve));
    return does === "lost" ? { ok: false, error: "timeout" } : { ok: true, status: 200 };
  }

  const scripted: Sender = { send: receive, close() {} };

  function startInstance(holder: string, sender: Sender) {
    const life = { alive: true };
    const delivery = new Delivery({
      ...store.seenBy(life),
      holder,
      sender: {
        send: async (request) => {
          if (!life.alive) return new Promise<never>(() => {});
          const result = await sender.send(request);
          return life.alive ? result : new Promise<never>(() => {});
        },
        close() {},
      },
      issuer: "https://auth.example",
      signClaims: () => "",
      openSecret: (sealed) => sealed,
      store: { onRevocation: () => () => {}, shiftMs: () => 0 },
      clock: () => store.now,
      wallClock: () => wallMs(store.now),
      fraction: () => fraction,
      events: {
        onAttempt() {},
        onPause: (id, because) => paused.push([id, because]),
        onLoss: (id, signals) => losses.push([id, signals]),
        onGivenUp: (id, signals) => givenUp.push([id, signals]),
        onFailure: (error) => failures.push(error),
      },
    });
    return {
      delivery,
      /** Starts a round of deliveries without waiting for it, because the store may never reply. */
      async round() {
        if (life.alive) void delivery.round();
        await world.quiet();
      },
      kill() {
        life.alive = false;
      },
    };
  }
  return world;
}
