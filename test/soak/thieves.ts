/**
 * Simulates two holders of one stolen token. Each presents the newest token that it received, and any two requests are more than the reuse
 * interval (R) apart. The holder whose requests succeed may change twice; at the third change, the session must have ended.
 */

import type { SessionId } from "../../src/service/session/model.ts";
import type { TokenFields } from "../../src/service/session/rotation/rotation.ts";
import { storeMs } from "../../src/service/session/time.ts";
import type { Dice } from "../support/dice.ts";
import { newSession, nonce, REUSE_INTERVAL, subject } from "../support/store/sessions.ts";
import type { World } from "./world.ts";

const R = REUSE_INTERVAL;
const GAPS = [R + 1, 1.1 * R, 1.5 * R, 2 * R, 3 * R, 3 * R + 1, 10 * R];
const PRESENTATIONS = 9;

type Theft = {
  readonly sid: SessionId;
  /** Which of the two holders of the token presents it in each turn: one bit for each turn. */
  readonly order: number;
  readonly holds: [TokenFields, TokenFields];
  last: 0 | 1 | undefined;
  served: number;
  changes: number;
  dead: boolean;
};

export class UnseenTheft extends Error {
  override readonly name = "UnseenTheft";
}

/** Plays every order of the two holders. Returns the number of thefts. @throws UnseenTheft */
export async function steal(world: World, dice: Dice): Promise<number> {
  const [store] = world.instances;
  if (store === undefined) throw new Error("no instance");
  const thefts = await Promise.all(
    Array.from({ length: 2 ** PRESENTATIONS }, async (_, order): Promise<Theft> => {
      const session = newSession(subject());
      const first = nonce();
      await store.create(session, first, { cap: 10 });
      const token = { generation: 1, nonce: first, issuedAt: storeMs(0) };
      return { sid: session.sid, order, holds: [token, token], last: undefined, served: 0, changes: 0, dead: false };
    }),
  );
  // Some tokens are stolen before their first use, and others after it.
  await Promise.all(
    thefts.map(async (theft) => {
      if (!dice.chance(0.5)) return;
      const response = await store.rotate(theft.sid, theft.holds[0], nonce());
      if ("child" in response && dice.chance(0.5)) theft.holds.fill(response.child);
    }),
  );
  for (let turn = 0; turn < PRESENTATIONS; turn++) {
    await world.advance(dice.pick(GAPS));
    await Promise.all(
      thefts.map(async (theft) => {
        const holder = ((theft.order >> turn) & 1) as 0 | 1;
        const response = await store.rotate(theft.sid, theft.holds[holder], nonce());
        if (theft.last !== undefined && theft.last !== holder) theft.changes++;
        theft.last = holder;
        if (response.ok) {
          if (theft.dead) throw new UnseenTheft(`order ${theft.order}: a dead session was served`);
          if (theft.changes > 2)
            throw new UnseenTheft(`order ${theft.order}: change of hands ${theft.changes} was served`);
          theft.holds[holder] = response.child;
          theft.served++;
        } else {
          if (response.reason !== (theft.dead ? "revoked" : "reuse"))
            throw new UnseenTheft(`unexpected: ${response.reason}`);
          if (theft.changes === 0) throw new UnseenTheft(`order ${theft.order}: a single holder was refused`);
          theft.dead = true;
        }
      }),
    );
  }
  const unseen = thefts.find(({ changes, dead }) => changes > 2 && !dead);
  if (unseen !== undefined) throw new UnseenTheft(`order ${unseen.order} is still served`);
  return thefts.length;
}
