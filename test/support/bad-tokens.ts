/** Ways in which a refresh token is none: every text here must be refused without asking the store. */
import { createHmac, randomBytes } from "node:crypto";

/** Where the parts of a refresh token begin, bytes. */
const PARTS = { version: 0, "key id": 1, "session id": 5, generation: 22, nonce: 26, "time of issue": 34, MAC: 40 };

export function badRefreshTokens(good: string): readonly (readonly [what: string, text: string])[] {
  const bytes = Buffer.from(good, "base64url");
  const flipped = (at: number) => {
    const copy = Buffer.from(bytes);
    copy.writeUInt8((copy.at(at) ?? 0) ^ 1, at);
    return copy.toString("base64url");
  };
  const foreign = Buffer.from(bytes);
  createHmac("sha256", randomBytes(32)).update(foreign.subarray(0, PARTS.MAC)).digest().copy(foreign, PARTS.MAC);
  const unknownKey = Buffer.from(bytes);
  randomBytes(4).copy(unknownKey, PARTS["key id"]);
  return [
    ["empty", ""],
    ["a word", "token"],
    ["truncated by one character", good.slice(0, -1)],
    ["truncated by four characters", good.slice(0, -4)],
    ["without its MAC", bytes.subarray(0, PARTS.MAC).toString("base64url")],
    ["longer by a character", `${good}A`],
    ["padded", `${good}====`],
    ["quoted", `"${good}"`],
    ["percent-encoded", `%${good.charCodeAt(0).toString(16)}${good.slice(1)}`],
    ["in hexadecimal", bytes.toString("hex")],
    [
      "in the other base64 alphabet",
      `${good.slice(0, 40).replaceAll("-", "+")}+/${good.slice(42).replaceAll("_", "/")}`,
    ],
    ["twice", good + good],
    ...Object.entries(PARTS).map(([part, at]) => [`with another ${part}`, flipped(at)] as const),
    ["with another last byte", flipped(bytes.length - 1)],
    ["under a foreign key", foreign.toString("base64url")],
    ["under a key that is not in the ring", unknownKey.toString("base64url")],
  ];
}
