/** A store of signals in memory, for searches. The calls of an instance can fail, and an instance can die in the middle of a call. */
import type { SessionId } from "../../../../src/service/session/model.ts";
import { StoreUnavailable } from "../../../../src/service/session/ports.ts";
import { storeMs, wallMs } from "../../../../src/service/session/time.ts";
import {
  definitionOf,
  type Signal,
  type SignalReason,
  type Subscription,
  signalId,
} from "../../../../src/service/signals/model.ts";
import type {
  Cursor,
  Lease,
  SignalLog,
  SignalStore,
  SubscriptionStore,
} from "../../../../src/service/signals/ports.ts";

const cursor = (position: number) => String(position) as Cursor;

export class MemoryStore {
  readonly partitions = 2;
  readonly logs: Signal[][] = Array.from({ length: this.partitions }, () => []);
  /** For each partition, the position of the oldest entry that is kept. */
  readonly starts = this.logs.map(() => 0);
  readonly cursors = this.logs.map(() => new Map<string, number>());
  readonly subscriptions = new Map<string, Subscription>();
  readonly #leases = this.logs.map(() => ({ holder: "", fence: 0, until: 0 }));
  now = 0;
  available = true;
  /** Whether replies are lost although the calls take effect. */
  losesReplies = false;

  add(id: string, changes: Partial<Subscription> = {}): void {
    const counts = { failures: 0, delivered: 0, deadLetters: 0 };
    const target = {
      kind: "webhook",
      endpoint: `https://${id}.example/`,
      sealedSecret: `whsec_${"A".repeat(32)}`,
    } as const;
    const one = {
      id,
      ...target,
      filter: {},
      audience: [],
      state: "active",
      createdAt: wallMs(0),
      ...counts,
      ...changes,
    };
    this.subscriptions.set(id, one as Subscription);
    for (const [partition, cursors] of this.cursors.entries()) cursors.set(id, this.logs[partition]?.length ?? 0);
  }

  append(session: number, reason: SignalReason = "logout"): Signal {
    const log = this.logs[session % this.partitions] as Signal[];
    const happenedAt = storeMs(this.now * 1_000 + log.length);
    const ending = { sessionId: `session-${session}` as SessionId, reason, happenedAt };
    const signal = { id: signalId(ending), ...ending };
    log.push(signal);
    return signal;
  }

  /** Returns the store for one instance. Its calls stop working when the instance dies. */
  seenBy(instance: { readonly alive: boolean }): SignalStore {
    return { log: guarded(this.#log(), this, instance), subscriptions: guarded(this.#subscriptions(), this, instance) };
  }

  #log(): SignalLog {
    const { partitions, logs, starts, cursors } = this;
    const held = ({ partition, holder, fence }: Lease) => {
      const lease = this.#leases[partition];
      return lease?.holder === holder && lease.fence === fence && lease.until > this.now;
    };
    return {
      partitions,
      partitionOf: () => 0,
      lease: async (wanted, holder, ms) =>
        wanted.flatMap((partition) => {
          const lease = this.#leases[partition];
          if (lease === undefined || (lease.holder !== holder && lease.until > this.now)) return [];
          if (lease.holder !== holder || lease.until <= this.now) lease.fence++;
          Object.assign(lease, { holder, until: this.now + ms });
          return [{ partition, holder, fence: lease.fence }];
        }),
      release: async (leases) => {
        for (const lease of leases.filter(held)) Object.assign(this.#leases[lease.partition] ?? {}, { until: 0 });
      },
      ends: async () => logs.map(({ length }) => cursor(length)),
      read: async (partition, after, limit) => {
        const [log = [], start = 0, from] = [logs[partition], starts[partition], Number(after)];
        if (from > log.length) return { ok: false, reason: "rewound" };
        if (from < start) return { ok: false, reason: "behind", oldest: cursor(start), lost: start - from };
        const signals = log.slice(from, from + limit).map((signal, i) => ({ signal, cursor: cursor(from + i + 1) }));
        return { ok: true, signals, more: log.length > from + limit };
      },
      cursors: async (partition) =>
        new Map([...(cursors[partition] ?? [])].map(([id, position]) => [id, cursor(position)])),
      positions: async () => [],
      oldestWaiting: async () => new Map(),
      ofSubject: async () => ({ signals: [], next: undefined }),
      pass: async () => false,
      advance: async (lease, id, to, { delivered, deadLetters }) => {
        const one = this.subscriptions.get(id);
        if (!held(lease) || one === undefined) return { ok: false, reason: "lost" };
        if (Number(to) > (logs[lease.partition]?.length ?? 0)) return { ok: false, reason: "rewound" };
        cursors[lease.partition]?.set(id, Number(to));
        const counts = { delivered: one.delivered + delivered, deadLetters: one.deadLetters + deadLetters };
        this.subscriptions.set(id, { ...one, ...counts });
        return { ok: true };
      },
    };
  }

  #subscriptions(): SubscriptionStore {
    const change = async (id: string, changes: object) => {
      const one = this.subscriptions.get(id);
      if (one !== undefined) this.subscriptions.set(id, { ...one, ...changes });
      return one !== undefined;
    };
    return {
      create: async () => false,
      get: async (id) => this.subscriptions.get(id),
      list: async () => [...this.subscriptions.values()],
      known: async () => [...this.subscriptions.values()],
      repair: async () => {},
      define: async (id, definition, before) => {
        const one = this.subscriptions.get(id);
        if (one === undefined || JSON.stringify(definitionOf(one)) !== JSON.stringify(before)) return false;
        const names = Object.keys(definitionOf(one));
        const status = Object.fromEntries(Object.entries(one).filter(([name]) => !names.includes(name)));
        this.subscriptions.set(id, { ...definition, ...status } as Subscription);
        return true;
      },
      setState: async (id, state, before) => {
        const one = this.subscriptions.get(id);
        return (before === undefined || one?.state === before.state) && change(id, state);
      },
      restart: async () => false,
      recordAttempt: (id, failure) =>
        change(
          id,
          failure === undefined
            ? { failures: 0 }
            : { failures: (this.subscriptions.get(id)?.failures ?? 0) + 1, lastError: failure.error },
        ),
      delete: async (id) => this.subscriptions.delete(id),
    };
  }
}

/** Wraps a store. Its calls fail while the store is not available, and never return once the instance has died. */
function guarded<T extends object>(port: T, store: MemoryStore, instance: { readonly alive: boolean }): T {
  return new Proxy(port, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function" || name === "partitionOf") return member;
      return async (...args: readonly unknown[]) => {
        if (!instance.alive) return new Promise(() => {});
        if (!store.available) throw new StoreUnavailable("not available");
        const result: unknown = await member(...args);
        if (!instance.alive) return new Promise(() => {});
        if (store.losesReplies) throw new StoreUnavailable("the reply is lost");
        return result;
      };
    },
  });
}
