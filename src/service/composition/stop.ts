/** Stops the service in an order in which no client that follows HTTP sees a failure (docs/tasks/operations.md). */
import type { Listener } from "../../platform/listener/listener.ts";
import type { Config } from "../config/config.ts";

/** Whether clients and load balancers get time to switch to other instances. */
export type StopMode = "drain" | "now";

type Deps = {
  readonly listeners: readonly Pick<Listener, "close">[];
  /** Called first, so that load balancers notice that this instance stops. */
  readonly onDrain: () => void;
  /** Called when streams and other requests that wait must end. */
  readonly onDrained: () => Promise<void>;
  /** Called when no connection is left. */
  readonly onClosed: () => Promise<void>;
};

export function createStop(
  { drainDelayMs, shutdownTimeoutMs }: Pick<Config, "drainDelayMs" | "shutdownTimeoutMs">,
  deps: Deps,
): (manner: StopMode) => Promise<void> {
  const { listeners } = deps;
  const close = (lingerMs: number) => listeners.map((listener) => listener.close(shutdownTimeoutMs, lingerMs));
  const hurry = Promise.withResolvers<void>();
  let isHurried = false;
  let isClosing = false;
  let stopped: Promise<void> | undefined;

  async function stop(): Promise<void> {
    deps.onDrain();
    const delay = setTimeout(hurry.resolve, drainDelayMs);
    await hurry.promise;
    clearTimeout(delay);
    await deps.onDrained();
    isClosing = true;
    // Idle connections stay open for a further drain delay, because clients may still send requests on them.
    await Promise.all(close(isHurried ? 0 : drainDelayMs));
    await deps.onClosed();
  }

  return (mode) => {
    if (mode === "now") {
      isHurried = true;
      hurry.resolve();
      if (isClosing) close(0);
    }
    stopped ??= stop();
    return stopped;
  };
}
