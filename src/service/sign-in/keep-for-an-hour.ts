/** Keeps what a provider or a transmitter publishes about itself, such as the addresses of its endpoints. */

const LIFE_MS = 3_600_000;

interface Kept<T> {
  /** Returns the value, and loads it if it is older than an hour. If that fails, an earlier value stays in use. */
  (): Promise<T>;
  /** Makes the next call load the value. */
  renew(): void;
}

/** @param load concurrent callers share it @param monotonic a clock that is never set, in ms */
export function keepForAnHour<T>(load: () => Promise<T>, monotonic = () => performance.now()): Kept<T> {
  let known: { readonly value: T } | undefined;
  let loadedAtMs = Number.NEGATIVE_INFINITY;
  let loading: Promise<T> | undefined;

  async function loadOnce(): Promise<T> {
    const beganMs = monotonic();
    const value = await load();
    known = { value };
    loadedAtMs = beganMs;
    return value;
  }

  const get = async (): Promise<T> => {
    if (known !== undefined && monotonic() - loadedAtMs < LIFE_MS) return known.value;
    loading ??= loadOnce().finally(() => {
      loading = undefined;
    });
    return loading.catch((error: unknown) => known?.value ?? Promise.reject(error));
  };
  return Object.assign(get, {
    renew() {
      loadedAtMs = Number.NEGATIVE_INFINITY;
    },
  });
}
