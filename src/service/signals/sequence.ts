/** Returns a function that runs work under a key once all earlier work under this key has ended, even if that work failed. */
export function createSequences(): <T>(key: string, work: () => Promise<T>) => Promise<T> {
  const latest = new Map<string, Promise<unknown>>();
  return async (key, work) => {
    const before = latest.get(key);
    const own = (async () => {
      await before?.catch(() => {});
      return work();
    })();
    latest.set(key, own);
    try {
      return await own;
    } finally {
      if (latest.get(key) === own) latest.delete(key);
    }
  };
}
