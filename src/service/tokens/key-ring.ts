import { type Followed, loadFollowed } from "../../platform/files/follow.ts";
import { generateRing } from "./generate-key.ts";
import type { SigningAlg } from "./jws.ts";
import { type Keys, readyKeys } from "./keys.ts";
import { KeyRingFault, parseRing } from "./ring.ts";
import { atPath, createRingFile, readRingText } from "./ring-file.ts";

/** The key ring in use. After `watch` has been called, changes of the ring's file take effect. */
export interface KeyRing extends Followed<Keys, KeyRingFault> {
  /** Returns whether the file was missing in two readings. Unless restored, tokens issued now become invalid when this process ends. */
  isLost(): boolean;
}

export async function loadKeyRing(path: string): Promise<KeyRing> {
  let lost = false;
  const file = await loadFollowed<Keys, KeyRingFault>({
    path,
    async read(flag) {
      const text = await readRingText(path, "service", flag);
      lost = false;
      return text;
    },
    parse(text) {
      try {
        return readyKeys(parseRing(text));
      } catch (error) {
        throw error instanceof KeyRingFault ? atPath(path, error) : error;
      }
    },
    faultOf: (error) => (error instanceof KeyRingFault ? error : atPath(path, new KeyRingFault("cannot be used"))),
  });
  const watchFile = file.watch;
  return Object.assign(file, {
    isLost: () => lost,
    watch(...[events, everyMs]: Parameters<KeyRing["watch"]>) {
      const onRefusal = (fault: KeyRingFault) => {
        lost = fault.absent;
        events.onRefusal(fault);
      };
      return watchFile({ ...events, onRefusal }, everyMs);
    },
  });
}

type NewRing = {
  readonly alg: SigningAlg | undefined;
  readonly now: number;
  /** Returns whether sessions exist already. A new ring would end them all, so no ring is created in that case. */
  readonly hasSessions: () => boolean | Promise<boolean>;
};

/** Works as loadKeyRing, but makes the ring if the service starts for the first time. */
export async function loadOrCreateKeyRing(path: string, { alg, now, hasSessions }: NewRing): Promise<KeyRing> {
  try {
    return await loadKeyRing(path);
  } catch (error) {
    if (!(error instanceof KeyRingFault && error.absent)) throw error;
    // If several processes start at once, another process may create the ring first. Its ring is then used.
    if (!(await hasSessions())) await createRingFile(path, generateRing(alg, now));
    return loadKeyRing(path).catch((again: unknown) => {
      throw again instanceof KeyRingFault && again.absent ? atPath(path, new KeyRingFault(LOST)) : again;
    });
  }
}

const LOST =
  "the file is gone, and the sessions in the store are of no use without it. Restore it from a backup; " +
  "or log out all users and start anew with `session-service keys create`";
