import { type FSWatcher, watch } from "node:fs";
import { dirname } from "node:path";
import { generateRing } from "./generate-key.ts";
import type { SigningAlg } from "./jws.ts";
import { type Keys, readyKeys } from "./keys.ts";
import { KeyRingFault, parseRing } from "./ring.ts";
import { atPath, createRingFile, readRingText } from "./ring-file.ts";

/** How often a watched ring is looked at, ms. Notices of the file system only make it sooner. */
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
   */
  watch(events: RingEvents): () => void;
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

  /** A fault is told when it is still there at the next look: a file half written is no broken file. */
  const look = async (events: RingEvents): Promise<void> => {
    try {
      const text = await readRingText(path);
      if (text !== inForce) {
        current = ready(text);
        inForce = text;
        events.changed(current);
      }
      lastFault = told = "";
    } catch (error) {
      const fault = error instanceof KeyRingFault ? error : atPath(path, new KeyRingFault("cannot be read"));
      if (fault.message === lastFault && fault.message !== told) {
        told = fault.message;
        events.refused(fault);
      }
      lastFault = fault.message;
    }
  };

  return {
    get current() {
      return current;
    },
    watch: (events) => follow(path, () => look(events)),
  };
}

/** Calls `look` every POLL ms and after each notice, one call at a time, until stopped. */
function follow(path: string, look: () => Promise<void>): () => void {
  let looking = Promise.resolve();
  const queue = (): void => {
    looking = looking.then(look);
  };
  const timer = setInterval(queue, POLL).unref();
  let watcher: FSWatcher | undefined;
  try {
    // The directory, since a ring is replaced by a new file. Where it cannot be watched, the poll is enough.
    watcher = watch(dirname(path), { persistent: false }, queue).on("error", () => watcher?.close());
  } catch {}
  return () => {
    clearInterval(timer);
    watcher?.close();
  };
}
