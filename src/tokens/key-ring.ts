import { followFile, type Taken } from "../files/follow.ts";
import { generateRing } from "./generate-key.ts";
import type { SigningAlg } from "./jws.ts";
import { type Keys, readyKeys } from "./keys.ts";
import { KeyRingFault, parseRing } from "./ring.ts";
import { atPath, createRingFile, readRingText } from "./ring-file.ts";

type RingEvents = {
  /** A changed ring is in force. */
  readonly changed: (keys: Keys) => void;
  /** The file is broken or gone; the ring that was in force stays. Reported once per fault. */
  readonly refused: (fault: KeyRingFault) => void;
  /** The file is valid again. */
  readonly recovered?: () => void;
};

/** A key ring in force, which follows its file once it is watched. */
export interface KeyRing {
  /** The keys of this moment. */
  readonly current: Keys;
  /** The file is gone, two readings in a row: what is issued now dies with this process unless it is restored. */
  readonly lost: boolean;
  /**
   * Follows the file until the returned function is called. Keeps no process alive. Whoever replaces the file at
   * one stroke, as `session-service keys` does, is seen at once; one that is written in pieces is taken when it is whole.
   *
   * @param everyMs how often to look without a notice of the file system
   */
  watch(events: RingEvents, everyMs?: number): () => void;
}

/** Reads the ring at `path`. Throws KeyRingFault. */
export async function loadKeyRing(path: string): Promise<KeyRing> {
  const text = await readRingText(path, "service");
  return createKeyRing(path, text);
}

type NewRing = {
  readonly alg: SigningAlg;
  readonly now: number;
  /** Whether there are sessions already: a new ring would end them all, so none is made. */
  readonly hasSessions: () => boolean | Promise<boolean>;
};

/** As loadKeyRing, but a service that starts for the first time makes the ring. */
export async function loadOrCreateKeyRing(path: string, { alg, now, hasSessions }: NewRing): Promise<KeyRing> {
  try {
    return await loadKeyRing(path);
  } catch (error) {
    if (!(error instanceof KeyRingFault && error.absent)) throw error;
    // Of several processes that start at once another may be faster: its ring is ours.
    if (!(await hasSessions())) await createRingFile(path, generateRing(alg, now));
    return loadKeyRing(path).catch((again: unknown) => {
      throw again instanceof KeyRingFault && again.absent ? atPath(path, new KeyRingFault(LOST)) : again;
    });
  }
}

const LOST =
  "the file is gone, and the sessions in the store are of no use without it. Restore it from a backup; " +
  "or log out all users and start anew with `session-service keys create`";

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
  let lost = false;

  const take = async (events: RingEvents): Promise<Taken<KeyRingFault>> => {
    try {
      const text = await readRingText(path, "service");
      lost = false;
      if (text === inForce) return { ok: true };
      current = ready(text);
      inForce = text;
    } catch (error) {
      const fault = error instanceof KeyRingFault ? error : atPath(path, new KeyRingFault("cannot be used"));
      return { ok: false, reason: fault };
    }
    events.changed(current);
    return { ok: true };
  };

  return {
    get current() {
      return current;
    },
    get lost() {
      return lost;
    },
    watch: (events, everyMs) =>
      followFile({
        path,
        take: () => take(events),
        refused(fault) {
          lost = fault.absent;
          events.refused(fault);
        },
        recovered: events.recovered,
        everyMs,
      }),
  };
}
