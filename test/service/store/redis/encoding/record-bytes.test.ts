/** The size in Redis of a client's key (DPoP). A session without a key takes no byte for it. */
import { expect, test } from "vitest";
import type { NewSession } from "../../../../../src/service/session/model.ts";
import { encodeBody, flagsOf } from "../../../../../src/service/store/redis/encoding/record.ts";
import { someProof } from "../../../../support/store/device.ts";
import { newSession } from "../../../../support/store/sessions.ts";

/**
 * The size of a client's key in a record, in bytes: the time of the binding, the thumbprint, a time and a length that only older versions
 * read, and the kind of the key.
 */
const KEY_BYTES = 6 + 32 + 6 + 2 + 1;

/**
 * Returns the size of the texts of a record, in bytes. The length of the subject takes two bytes, and the lengths of five further texts
 * take one byte each. There are no claims.
 */
const textBytes = ({ subject, clientId, audience, client }: NewSession) =>
  2 + subject.length + 5 + [clientId, audience, ...Object.values(client)].join("").length;

test("a session without a key takes no byte for one", () => {
  const session = newSession("alice");
  expect(encodeBody(session)).toHaveLength(textBytes(session));
  expect(flagsOf(session)).toBe(1);
  const bound = { ...session, dpopJkt: someProof().thumbprint };
  expect(encodeBody(bound)).toHaveLength(textBytes(session) + KEY_BYTES);
});
