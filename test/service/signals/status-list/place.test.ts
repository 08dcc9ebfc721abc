/** The list and the index that represent a session in the status lists. Both follow from the session id. */
import { inflateSync } from "node:zlib";
import { expect, test } from "vitest";
import { parseSessionId } from "../../../../src/service/session/model.ts";
import { encodeList, NONE_REVOKED, setBits } from "../../../../src/service/signals/status-list/encode.ts";
import { LIST_SIZE, placeOf } from "../../../../src/service/signals/status-list/place.ts";
import { createListedRandom } from "../../../../src/service/signals/status-list/session-ids.ts";
import { createRandom, systemEntropy } from "../../../../src/service/tokens/random.ts";
import vectors from "./vectors.json" with { type: "json" };

const entropy = systemEntropy();
const newList = () => entropy.text(6);

test("sessions of one process have different, random places in one list, and ids in the partition of their subject", () => {
  const plain = createRandom(entropy);
  const random = createListedRandom(plain, newList);
  const sids = Array.from({ length: 10_000 }, (_, n) => random.sessionId(`user-${n % 7}`));
  const places = sids.map(placeOf);
  expect(new Set(places.map(({ list }) => list)).size).toBe(1);
  expect(new Set(places.map(({ index }) => index)).size).toBe(sids.length);
  expect(sids.every((sid) => parseSessionId(sid) === sid)).toBe(true);
  const partitionOf = (sid: string) => Buffer.from(sid, "base64url")[0];
  expect(sids.slice(0, 7).map(partitionOf)).toEqual(
    Array.from({ length: 7 }, (_, n) => partitionOf(plain.sessionId(`user-${n}`))),
  );
  // The indices are not consecutive but spread at random, so each eighth of the list contains about an eighth of them.
  const shares = Map.groupBy(places, ({ index }) => Math.floor((index * 8) / LIST_SIZE));
  for (let eighth = 0; eighth < 8; eighth++) expect(shares.get(eighth)?.length).toBeGreaterThan(1_000);
});

test("a list takes half of its size, and the next list begins with nothing taken", () => {
  let drawn = 0;
  // These ids have successive indices, so none repeats before the list is full.
  const counting = {
    sessionId: () => {
      const bytes = Buffer.alloc(17);
      bytes.writeUIntBE(drawn++ % LIST_SIZE, 9, 3);
      return bytes.toString("base64url") as ReturnType<typeof random.sessionId>;
    },
    nonce: () => "",
  };
  let lists = 0;
  const random = createListedRandom(counting, () => `list-${String(lists++).padStart(3, "0")}`);
  for (let n = 0; n < LIST_SIZE / 2; n++) random.sessionId("");
  expect(lists).toBe(1);
  drawn = 0;
  expect(placeOf(random.sessionId(""))).toEqual({ list: "list-001", index: 0 });
  drawn = 0;
  expect(placeOf(random.sessionId(""))).toEqual({ list: "list-001", index: 1 });
});

test("every session id has a place, also one that was made while the option was off", () => {
  const sid = createRandom(entropy).sessionId("alice");
  const { list, index } = placeOf(sid);
  expect([list.length, index >= 0 && index < LIST_SIZE]).toEqual([8, true]);
});

test("a list is encoded as in the test vectors of the draft", () => {
  const [vector] = vectors.vectors.filter(({ bits }) => bits === 1);
  const bytes = setBits(vector?.statuses.map(([index]) => index as number) ?? []);
  expect(inflateSync(Buffer.from(vector?.lst ?? "", "base64url")).equals(bytes)).toBe(true);
  expect(inflateSync(Buffer.from(encodeList(bytes), "base64url")).equals(bytes)).toBe(true);
  expect(inflateSync(Buffer.from(NONE_REVOKED, "base64url")).equals(Buffer.alloc(LIST_SIZE / 8))).toBe(true);
});
