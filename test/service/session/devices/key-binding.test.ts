/** Who may end a session that is bound to a key which each request proves. */
import { expect, test } from "vitest";
import { boundKey, judgeEnd, NO_PRESENTATION } from "../../../../src/service/session/devices/binding.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import { someProof } from "../../../support/store/device.ts";

const CREATED = storeMs(1_000);
const BOUND = storeMs(5_000);
const OWN = someProof(1);

function judge(boundAt: number, issuedAt: number, proof?: typeof OWN) {
  const session = { device: undefined, createdAt: CREATED };
  const device = boundKey(session, { ...NO_PRESENTATION, proof: OWN }, storeMs(boundAt));
  return judgeEnd({ device, createdAt: CREATED }, { issuedAt: storeMs(issuedAt) }, proof);
}

test("a token that was issued before the key was bound needs no proof, to the millisecond", () => {
  expect([judge(BOUND, BOUND - 1), judge(BOUND, BOUND)]).toEqual(["allowed", "proof_missing"]);
});

test("of a session that was bound from its creation on, every token needs the proof", () => {
  expect([judge(CREATED, 0), judge(CREATED, BOUND)]).toEqual(["proof_missing", "proof_missing"]);
});

test("the proof has to be of the session's key", () => {
  expect([judge(BOUND, BOUND, OWN), judge(BOUND, BOUND, someProof(2))]).toEqual(["allowed", "other_key"]);
});
