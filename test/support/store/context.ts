/** A store that is open during the tests of a `describe`, with steps that many tests need. */
import { afterAll, beforeAll } from "vitest";
import type { NewSession, SessionId } from "../../../src/service/session/model.ts";
import type { RotateOutcome } from "../../../src/service/session/ports.ts";
import type { TokenFields } from "../../../src/service/session/rotation/rotation.ts";
import { storeMs } from "../../../src/service/session/time.ts";
import type { StoreWithSignals } from "../../../src/service/signals/ports.ts";
import type { Backend } from "./backends.ts";
import { newSession, nonce } from "./sessions.ts";

/** The cap on sessions of a subject in these tests. */
export const CAP = 100;

export type Login = { readonly sid: SessionId; readonly first: TokenFields };

export type Context = {
  readonly backend: Backend;
  readonly store: StoreWithSignals;
  /** Creates a session and its first token. */
  login(user: string, more?: Partial<NewSession>): Promise<Login>;
  /** Presents a token, which must be accepted. */
  refresh(sid: SessionId, token: TokenFields): Promise<Extract<RotateOutcome, { ok: true }>>;
  /** Returns the reason of each entry that the revocation log has for the session. */
  logged(sid: SessionId): Promise<string[]>;
};

/** @returns a function that returns the context while the tests run */
export function openContext(start: () => Promise<Backend>): () => Context {
  let context: Context | undefined;
  beforeAll(async () => {
    const backend = await start();
    context = contextOf(backend, await backend.open());
  });
  afterAll(() => context?.backend.stop());
  return () => {
    if (context === undefined) throw new Error("the store is not open yet");
    return context;
  };
}

function contextOf(backend: Backend, store: StoreWithSignals): Context {
  return {
    backend,
    store,
    async login(user, more = {}) {
      const first = nonce();
      const session = newSession(user, more);
      await store.create(session, first, { cap: CAP });
      return { sid: session.sid, first: { generation: 1, nonce: first, issuedAt: storeMs(0) } };
    },
    async refresh(sid, token) {
      const result = await store.rotate(sid, token, nonce());
      if (!result.ok) throw new Error(result.reason);
      return result;
    },
    async logged(sid) {
      const { revocations } = await store.revocations(undefined);
      return revocations.filter((entry) => entry.sid === sid).map((entry) => entry.reason);
    },
  };
}
