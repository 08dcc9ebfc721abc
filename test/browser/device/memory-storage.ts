/** The part of IndexedDB that the kit uses, in memory: requests are asynchronous, and transactions exclude each other. */
import type { KeysRealm } from "../../../src/browser/device/keys.ts";

export type MemoryStorage = {
  readonly indexedDB: KeysRealm["indexedDB"];
  /** The number of requests under way. */
  readonly pending: number;
  /** The number of databases that are open. */
  readonly connections: number;
  /** Removes all keys, as when a user deletes the data of a site. */
  clear(): void;
  /** How the storage behaves. `broken`: it rejects. `stalled`: it never responds. */
  state: "up" | "broken" | "stalled";
};

type Request<T> = {
  result: T;
  error: unknown;
  onsuccess: (() => void) | null;
  onerror: (() => void) | null;
  onupgradeneeded: (() => void) | null;
};

export function createMemoryStorage(): MemoryStorage {
  const databases = new Map<string, Map<number, unknown>>();
  /** The names of the databases that have a store. */
  const created = new Set<string>();
  let pending = 0;
  let connections = 0;
  let nextId = 1;
  /**
   * The transactions, in the order in which they were opened. Only the first one runs. It is complete when it makes no request for one turn
   * of the event loop.
   */
  const transactions: { waiting: (() => void)[]; isRunning: boolean }[] = [];

  function run(): void {
    const [current] = transactions;
    if (!current || current.isRunning) return;
    current.isRunning = true;
    setImmediate(() => {
      const work = current.waiting.shift();
      current.isRunning = false;
      if (work) work();
      else transactions.shift();
      // The callbacks of the request run first, because they may add requests to its transaction.
      setImmediate(run);
    });
  }

  function request<T>(work: () => T, begin: (step: () => void) => void): Request<T> {
    const made = { error: undefined, onsuccess: null, onerror: null, onupgradeneeded: null } as unknown as Request<T>;
    if (storage.state === "stalled") return made;
    pending++;
    begin(() => {
      pending--;
      if (storage.state === "broken") {
        made.error = new Error("no storage here");
        made.onerror?.();
        return;
      }
      made.result = work();
      made.onupgradeneeded?.();
      made.onsuccess?.();
    });
    return made;
  }

  function transactionOn(rows: Map<number, unknown>) {
    const own = { waiting: [] as (() => void)[], isRunning: false };
    transactions.push(own);
    const begin = (step: () => void) => {
      own.waiting.push(step);
      run();
    };
    return {
      getAll: () => request(() => [...rows.values()], begin),
      getAllKeys: () => request((): unknown[] => [...rows.keys()], begin),
      add: (value: unknown) => request<unknown>(() => void rows.set(nextId++, value), begin),
      delete: (key: unknown) => request<unknown>(() => void rows.delete(key as number), begin),
    };
  }

  const storage: { -readonly [K in keyof MemoryStorage]: MemoryStorage[K] } = {
    state: "up",
    get pending() {
      return pending;
    },
    get connections() {
      return connections;
    },
    clear() {
      databases.clear();
      created.clear();
    },
    indexedDB: {
      open(name) {
        const rows = databases.get(name) ?? new Map<number, unknown>();
        databases.set(name, rows);
        const database = {
          // Only a store that makes keys itself takes values without one.
          createObjectStore: (_store: string, { autoIncrement }: { readonly autoIncrement?: boolean }) =>
            autoIncrement && created.add(name),
          transaction: () => ({
            objectStore() {
              if (!created.has(name)) throw new DOMException("there is no such store", "NotFoundError");
              return transactionOn(rows);
            },
          }),
          close: () => {
            connections--;
          },
        };
        const open = () => {
          connections++;
          return database;
        };
        return request(open, (step) => void setImmediate(step));
      },
    },
  };
  return storage;
}
