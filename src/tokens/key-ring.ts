import { followFile, type Taken } from "../files/follow.ts";
import { generateRing } from "./generate-key.ts";
import type { SigningAlg } from "./jws.ts";
import { type Keys, readyKeys } from "./keys.ts";
import { KeyRingFault, parseRing } from "./ring.ts";
import { atPath, createRingFile, readRingText } from "./ring-file.ts";

type RingEvents = {
  /** Called when a changed ring is in use. */
  readonly onChange: (keys: Keys) => void;
  /** Called when the file is broken or missing; the old ring stays in use. Each fault is reported once. */
  readonly onRefusal: (fault: KeyRingFault) => void;
  /** Called when the file is valid again. */
  readonly onRecovery?: () => void;
};

/** The key ring in use. It follows its file after `watch` has been called. */
export interface KeyRing {
  /** The current keys. */
  readonly current: Keys;
  /**
   * Whether the file was missing in two readings in a row. Tokens that are issued now become invalid when this process ends, unless the
   * file is restored.
   */
  readonly lost: boolean;
  /**
   * Follows the file until the returned function is called. It does not keep the process running.
   * A file that is replaced in one step, as `session-service keys` does, is read at once. A file that is written in parts is read when it
   * is complete.
   *
   * @param everyMs how often the file is read without a notification of the file system
   */
  watch(events: RingEvents, everyMs?: number): () => void;
}

/** Reads the ring at `path`. @throws KeyRingFault */
export async function loadKeyRing(path: string): Promise<KeyRing> {
  const text = await readRingText(path, "service");
  return createKeyRing(path, text);
}

type NewRing = {
  readonly alg: SigningAlg;
  readonly now: number;
  /** Returns whether sessions exist already. A new ring would end them all, so none is made in that case. */
  readonly hasSessions: () => boolean | Promise<boolean>;
};

/** Works as loadKeyRing, but makes the ring if the service starts for the first time. */
export async function loadOrCreateKeyRing(path: string, { alg, now, hasSessions }: NewRing): Promise<KeyRing> {
  try {
    return await loadKeyRing(path);
  } catch (error) {
    if (!(error instanceof KeyRingFault && error.absent)) throw error;
    // If several processes start at once, another may be faster. Its ring is then used.
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
    events.onChange(current);
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
        onRefusal(fault) {
          lost = fault.absent;
          events.onRefusal(fault);
        },
        onRecovery: events.onRecovery,
        everyMs,
      }),
  };
}
