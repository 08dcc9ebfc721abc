import fc from "fast-check";
import { expect, test } from "vitest";
import { KnownSignatures } from "../../../src/platform/jws/known-signatures.ts";

type Key = { readonly accepts: ReadonlySet<string> };

/** Returns a cache of verified signatures, with a count of the verifications. */
function counting() {
  const known = new KnownSignatures<Key>();
  let verified = 0;
  const ask = (token: string, key: Key) =>
    known.isValid(token, key, () => {
      verified++;
      return key.accepts.has(token);
    });
  return { ask, verified: () => verified };
}

test("returns what the key decides, whatever was asked before, and verifies a token once for a key", () => {
  const token = fc.constantFrom("a", "b", "c");
  const question = fc.tuple(token, fc.nat({ max: 2 }));
  fc.assert(
    fc.property(fc.array(fc.uniqueArray(token), { minLength: 3, maxLength: 3 }), fc.array(question), (sets, asked) => {
      const keys = sets.map((accepted): Key => ({ accepts: new Set(accepted) }));
      const { ask, verified } = counting();
      let changes = 0;
      const last = new Map<string, number>();
      for (const [text, at] of asked) {
        const key = keys[at] as Key;
        expect(ask(text, key)).toBe(key.accepts.has(text));
        if (last.get(text) !== at) changes++;
        last.set(text, at);
      }
      expect(verified()).toBe(changes);
    }),
  );
});

test("forgets: a flood of other tokens takes no more memory than its bound", () => {
  const { ask, verified } = counting();
  const key: Key = { accepts: new Set() };
  ask("first", key);
  for (let at = 0; at < 2048; at++) ask(`other ${at}`, key);
  const before = verified();
  ask("first", key);
  expect(verified()).toBe(before + 1);
});
