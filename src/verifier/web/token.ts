import type { KeySet } from "../key-set.ts";
import {
  type Checked,
  checkClaims,
  type Expectations,
  findKey,
  type Refused,
  refuse,
  SIGNATURE_BYTES,
  splitToken,
} from "../token-rules.ts";
import type { Key } from "./key.ts";
import { decodeBytes, decodeText } from "./segment.ts";

const encoder = new TextEncoder();

/** Checks a token like `checkToken` for Node (src/verifier/token.ts), but with the WebCrypto of the runtime. */
export async function checkToken(token: string, keys: KeySet<Key>, expected: Expectations): Promise<Checked | Refused> {
  const parts = splitToken(token);
  if (parts === undefined) return refuse("malformed");
  const payload = decodeText(token.slice(parts.dot + 1, parts.end));
  const signature = decodeBytes(token.slice(parts.end + 1));
  if (payload === undefined || signature?.length !== SIGNATURE_BYTES) return refuse("malformed");
  const found = findKey(decodeText(token.slice(0, parts.dot)), keys);
  if (!found.ok) return found;
  const input = encoder.encode(token.slice(0, parts.end));
  if (!(await found.key.verifies(input, signature))) return refuse("forged");
  // The key may have been withdrawn while the signature was verified. The second check then no longer finds the key.
  return found.key.withdrawn ? checkToken(token, keys, expected) : checkClaims(payload, found.key, expected);
}
