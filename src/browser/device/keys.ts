/** Keeps the key pairs of this browser in IndexedDB. A script can use the private key, and cannot read it. */

export type KeyPair = { readonly privateKey: CryptoKey; readonly publicKey: CryptoKey };

export type DeviceRecord = { readonly sid: string; readonly keys: KeyPair };

export interface DeviceKeys {
  /** Returns the newest key pairs, the newest one at the end. */
  all(): Promise<readonly DeviceRecord[]>;
  /** Returns the key pair for a session, and makes one if there is none. Tabs that do this at the same time all get the same pair. */
  obtain(sid: string): Promise<DeviceRecord>;
}

/** The used part of IndexedDB, as structural types. */
type Callback = ((...args: never[]) => void) | null;
type RequestLike<T> = {
  readonly result: T;
  readonly error: unknown;
  onsuccess: Callback;
  onerror: Callback;
};
type StoreLike = {
  getAll(): RequestLike<unknown[]>;
  getAllKeys(): RequestLike<unknown[]>;
  add(value: unknown): RequestLike<unknown>;
  delete(key: unknown): RequestLike<unknown>;
};
type DatabaseLike = {
  createObjectStore(name: string, options: { autoIncrement: true }): unknown;
  transaction(name: string, mode: "readwrite"): { objectStore(name: string): StoreLike };
  close(): void;
};

export type KeysRealm = {
  readonly indexedDB: {
    open(name: string): RequestLike<DatabaseLike> & { onupgradeneeded: Callback };
  };
  readonly crypto: Pick<Crypto, "subtle">;
};

const STORE = "keys";
/** How many sessions keep their keys: users may share the browser, and one may sign in while a response to another is under way. */
const MAX_KEYS = 4;

function settled<T>(request: RequestLike<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** @param name of the database. All calls reject if the browser has no storage for keys. */
export function createDeviceKeys({ indexedDB, crypto }: KeysRealm, name: string): DeviceKeys {
  async function inStore<T>(work: (store: StoreLike) => Promise<T>): Promise<T> {
    const opening = indexedDB.open(name);
    opening.onupgradeneeded = () => opening.result.createObjectStore(STORE, { autoIncrement: true });
    const database = await settled(opening);
    try {
      return await work(database.transaction(STORE, "readwrite").objectStore(STORE));
    } finally {
      // The database closes when its transactions are complete.
      database.close();
    }
  }

  const read = (store: StoreLike) => settled(store.getAll()) as Promise<DeviceRecord[]>;

  return {
    all: () => inStore(read),

    async obtain(sid) {
      const algorithm = { name: "ECDSA", namedCurve: "P-256" };
      const keys = (await crypto.subtle.generateKey(algorithm, false, ["sign"])) as KeyPair;
      return inStore(async (store) => {
        // The key is read and written in one transaction: another tab may have been faster, and its key may be registered already.
        const known = (await read(store)).find((record) => record.sid === sid);
        if (known) return known;
        const record = { sid, keys };
        await settled(store.add(record));
        const ids = await settled(store.getAllKeys());
        for (const id of ids.slice(0, -MAX_KEYS)) await settled(store.delete(id));
        return record;
      });
    },
  };
}
