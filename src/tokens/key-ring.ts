import { type FSWatcher, watch } from "node:fs";
import { dirname } from "node:path";
import { generateRing } from "./generate-key.ts";
import type { SigningAlg } from "./jws.ts";
import { type Keys, readyKeys } from "./keys.ts";
import { KeyRingFault, parseRing } from "./ring.ts";
import { atPath, createRingFile, readRingText } from "./ring-file.ts";

/** How often a watched ring is looked at, ms; notices of the file system only make it sooner. */
const POLL = 1000;

export type RingEvents = {
  /** A changed ring is in force. */
  readonly changed: (keys: Keys) => void;
  /** The file is broken; the ring that was in force stays. Told once per fault. */
  readonly refused: (fault: KeyRingFault) => void;
};

/** A key ring in force, which follows its file once it is watched. */
export interface KeyRing {
  /** The keys of this moment. */
  readonly current: Keys;
  /**
   * Follows the file until the returned function is called. Keeps no process alive. Whoever replaces the file at
   * one stroke, as `npm run keys` does, is seen at once; one that is written in pieces is taken when it is whole.
   *
   * @param every how often to look without a notice of the file system, ms
   */
  watch(events: RingEvents, every?: number): () => void;
}

/** Reads the ring at `path`. Throws KeyRingFault. */
export async function loadKeyRing(path: string): Promise<KeyRing> {
  const text = await readRingText(path);
  return createKeyRing(path, text);
}

/** As loadKeyRing, but a service that starts for the first time makes the ring. */
export async function loadOrCreateKeyRing(path: string, alg: SigningAlg, now: number): Promise<KeyRing> {
  try {
    return await loadKeyRing(path);
  } catch (error) {
    if (!(error instanceof KeyRingFault && error.absent)) throw error;
    await createRingFile(path, generateRing(alg, now)); // or another process was faster: its ring is ours
    return loadKeyRing(path);
  }
}

function createKeyRing(path: string, firstText: string): KeyRing {
  const ready = (text: string): Keys => {
    try {
      return readyKeys(parseRing(text));
    } catch (error) {
      throw error instanceof KeyRingFault ? atPath(path, error) : error;
    }
  };
  let inForce = firstText;
  let current = ready(firstText);
  let lastFault = "";
  let told = "";

  const take = async (events: RingEvents): Promise<KeyRingFault | undefined> => {
    try {
      const text = await readRingText(path);
      if (text === inForce) return undefined;
      current = ready(text);
      inForce = text;
    } catch (error) {
      return error instanceof KeyRingFault ? error : atPath(path, new KeyRingFault("cannot be used"));
    }
    events.changed(current);
    return undefined;
  };

  /** A fault is told when the next poll finds it again: a file half written is no broken file. */
  const poll = async (events: RingEvents): Promise<void> => {
    const fault = await take(events);
    const message = fault?.message ?? "";
    if (fault !== undefined && message === lastFault && message !== told) events.refused(fault);
    if (message === lastFault) told = message;
    lastFault = message;
  };

  return {
    get current() {
      return current;
    },
    watch: (events, every = POLL) =>
      follow(
        dirname(path),
        () => take(events),
        () => poll(events),
        every,
      ),
  };
}

/** Calls `poll` every so many ms, and `notice` when the file system says that something changed; one call at a time. */
function follow(
  directory: string,
  notice: () => Promise<unknown>,
  poll: () => Promise<unknown>,
  every: number,
): () => void {
  let busy: Promise<unknown> = Promise.resolve();
  let stopped = false;
  const queue = (look: () => Promise<unknown>): void => {
    busy = busy.then(() => (stopped ? undefined : look()));
  };
  const timer = setInterval(() => queue(poll), every).unref();
  let watcher: FSWatcher | undefined;
  try {
    // The directory, since a ring is replaced by a new file. Where it cannot be watched, polling is enough.
    watcher = watch(directory, { persistent: false }, () => queue(notice)).on("error", () => watcher?.close());
  } catch {}
  return () => {
    stopped = true;
    clearInterval(timer);
    watcher?.close();
  };
}
