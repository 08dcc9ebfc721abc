/** How a key set is read, and the time for which it is used. */
import { expect, test } from "vitest";
import { readKeys, readMaxAgeMs } from "../../../src/verifier/keys/jwks.ts";
import { importKey } from "../../../src/verifier/token.ts";

test.each([
  [undefined, 60_000],
  ["no-store", 60_000],
  ["max-age=90", 90_000],
  ["public, max-age=90, immutable", 90_000],
  ["public,max-age=90", 90_000],
  ["Public, Max-Age=90", 90_000],
  ['max-age="90"', 90_000],
  ["s-maxage=90", 60_000],
  ["x-max-age=90", 60_000],
  ["max-age=0", 1_000],
  ["max-age=1", 1_000],
  ["max-age=2", 2_000],
  ["max-age=300", 300_000],
  ["max-age=301", 300_000],
  ["max-age=999999999", 300_000],
])("with cache-control %s it is %i ms", (cacheControl, maxAgeMs) => {
  const headers = cacheControl === undefined ? {} : { "cache-control": cacheControl };
  expect(readMaxAgeMs(new Response("", { headers }))).toBe(maxAgeMs);
});

const KEY = JSON.stringify({ kid: "a", kty: "OKP", crv: "Ed25519", x: "C".repeat(42).concat("A") });
const nested = (depth: number) => `{"keys":[${KEY}],"x":${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}}`;

test.each<[name: string, body: string | Uint8Array<ArrayBuffer>, isRead: boolean]>([
  ["that is strict JSON", ` {"keys":[${KEY}]}\n`, true],
  ["with a duplicate member", `{"keys":[${KEY}],"keys":[${KEY}]}`, false],
  ["with a key that has a duplicate member", `{"keys":[${KEY.replace("{", '{"kid":"b",')}]}`, false],
  ["with an unpaired surrogate", `{"keys":[${KEY}],"x":"\\ud800"}`, false],
  ["of 128 levels", nested(128), true],
  ["of 129 levels", nested(129), false],
  ["with a number in its last level", nested(128).replace("[]", "[1]"), true],
  ["that is no object", "5", false],
  ["of 100 keys", `{"keys":[${Array(100).fill(KEY)}]}`, true],
  ["of 101 keys", `{"keys":[${Array(101).fill(KEY)}]}`, false],
  ["of 256 KiB", `{"keys":[${KEY}]}`.padEnd(262_144), true],
  ["of one byte more", `{"keys":[${KEY}]}`.padEnd(262_145), false],
  ["with a byte order mark", `\ufeff{"keys":[${KEY}]}`, false],
  [
    "that is not UTF-8",
    new Uint8Array([...new TextEncoder().encode(`{"keys":[${KEY}],"x":"`), 0xff, 0x22, 0x7d]),
    false,
  ],
])("a key set %s is read as the verifiers in other languages read it", async (_, body, isRead) => {
  const reading = readKeys(new Response(body), importKey);
  if (isRead) expect((await reading)[0]).toMatchObject({ kid: "a" });
  else await expect(reading).rejects.toThrow();
});

test("a key set is not read from the page of an error", async () => {
  const reading = readKeys(new Response(`{"keys":[${KEY}]}`, { status: 404 }), importKey);
  await expect(reading).rejects.toThrow("the key set responds 404");
});
