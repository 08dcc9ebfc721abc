import type { SessionId } from "../../../src/service/session/model.ts";
import type { SessionStore } from "../../../src/service/session/ports.ts";
import { newSession, nonce, subject } from "../../support/store/sessions.ts";

/** How many sessions are being created at a time. */
const AT_ONCE = 200;
const SID = 23;
const RECORD = SID + 11;

/**
 * The created sessions and their first nonces, 34 bytes for each session. They are stored as bytes, because objects for ten million
 * sessions would not fit into memory.
 */
export class Logins {
  readonly #records: Buffer;
  #left: number;

  private constructor(records: Buffer, count: number) {
    this.#records = records;
    this.#left = count;
  }

  /** @param user the subject of all sessions; if it is undefined, each session has a different subject */
  static async create(store: SessionStore, count: number, user?: string): Promise<Logins> {
    const records = Buffer.alloc(count * RECORD);
    let at = 0;
    const callers = Array.from({ length: AT_ONCE }, async () => {
      while (at < count) {
        const [position, session, first] = [RECORD * at++, newSession(user ?? subject()), nonce()];
        await store.create(session, first, { cap: user === undefined ? 1 : count });
        records.write(session.sid + first, position, "latin1");
      }
    });
    await Promise.all(callers);
    return new Logins(records, count);
  }

  /** Removes and returns random logins. */
  draw(count: number): { sid: SessionId; nonce: string }[] {
    return Array.from({ length: count }, () => {
      const position = RECORD * Math.floor(Math.random() * this.#left);
      const text = this.#records.toString("latin1", position, position + RECORD);
      const last = RECORD * --this.#left;
      this.#records.copy(this.#records, position, last, last + RECORD);
      return { sid: text.slice(0, SID) as SessionId, nonce: text.slice(SID) };
    });
  }
}
