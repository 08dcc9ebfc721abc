/** Cases about the encoding of a token: its segments, its JSON, its signature. */
import { CLAIMS, casesOf, claimsAfter, type Forge, HEAD, json, type Row, raw, type VectorCase } from "./format.ts";
import { EDWARDS } from "./keys.ts";

/** The orders of P-256 (SEC 2 section 2.4.2) and of Ed25519 (RFC 8032 section 5.1). */
const P256_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const ED25519_ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/** The greatest depth of nested objects and lists in claims. `MAX_LENGTH` is the greatest length of a token. */
const MAX_DEPTH = 128;
const MAX_LENGTH = 16_384;

const text = JSON.stringify(CLAIMS);
const toHex = (value: bigint) => value.toString(16).padStart(64, "0");
const withBytes = (token: string, bytes: Uint8Array) => `${token.slice(0, token.lastIndexOf(".") + 1)}${raw(bytes)}`;
/** Encodes the same bytes differently, by setting unused bits in the last character of a segment. */
const withSpareBit = (segment: string) =>
  segment.slice(0, -1) + ALPHABET[ALPHABET.indexOf(segment.at(-1) as string) ^ 1];

export function encodingCases(forge: Forge): VectorCase[] {
  return casesOf([...signatureRows(forge), ...segmentRows(forge), ...jsonRows(forge), ...sizeRows(forge)]);
}

function signatureRows({ token }: Forge): Row[] {
  const good = token();
  const input = good.slice(0, good.lastIndexOf("."));
  const bytes = Buffer.from(good.slice(input.length + 1), "base64url");
  const [r, s] = [bytes.subarray(0, 32), bytes.subarray(32)];
  const mirrored = Buffer.from(toHex(P256_ORDER - BigInt(`0x${s.toString("hex")}`)), "hex");
  const zero = Buffer.alloc(32);
  const order = Buffer.from(toHex(P256_ORDER), "hex");
  const edwards = token({ alg: "EdDSA", kid: EDWARDS.kid }, {}, EDWARDS);
  const edBytes = Buffer.from(edwards.slice(edwards.lastIndexOf(".") + 1), "base64url");
  const edS = BigInt(`0x${Buffer.from(edBytes.subarray(32)).reverse().toString("hex")}`) + ED25519_ORDER;
  const both = (first: Uint8Array, second: Uint8Array) => withBytes(good, Buffer.concat([first, second]));
  // The signature is refused because of its form (DER), so r and s may be any numbers of the right length.
  const der = Buffer.concat([Buffer.from("30440220", "hex"), r, Buffer.from("0220", "hex"), s]);
  return [
    ["the mirrored signature, s → n − s, which is as valid", both(r, mirrored), "accepted"],
    ["the null signature", both(zero, zero), "forged"],
    ["r = 0", both(zero, s), "forged"],
    ["s = 0", both(r, zero), "forged"],
    ["r = s = n", both(order, order), "forged"],
    ["r > n", both(Buffer.alloc(32, 0xff), s), "forged"],
    ["s > n", both(r, Buffer.alloc(32, 0xff)), "forged"],
    ["r and s exchanged", both(s, r), "forged"],
    [
      "one bit of the signature",
      both(r, Buffer.from(s.map((byte, index) => (index === 9 ? byte ^ 4 : byte)))),
      "forged",
    ],
    ["a signature in DER", withBytes(good, der), "malformed"],
    ["a signature of 63 bytes", withBytes(good, bytes.subarray(1)), "malformed"],
    ["a signature of 65 bytes", withBytes(good, Buffer.concat([bytes, Buffer.alloc(1)])), "malformed"],
    ["half a signature", withBytes(good, r), "malformed"],
    ["no signature", `${input}.`, "malformed"],
    [
      "Ed25519: S + L",
      withBytes(edwards, Buffer.concat([edBytes.subarray(0, 32), Buffer.from(toHex(edS), "hex").reverse()])),
      "forged",
    ],
    ["Ed25519: the null signature", withBytes(edwards, Buffer.alloc(64)), "forged"],
    ["Ed25519: S = 0", withBytes(edwards, Buffer.concat([edBytes.subarray(0, 32), zero])), "forged"],
    ...[1, 5, 15].map(
      (spare): Row => [
        `spare bits ${spare} of the signature`,
        good.slice(0, -1) + ALPHABET[ALPHABET.indexOf(good.at(-1) as string) + spare],
        "malformed",
      ],
    ),
  ];
}

function segmentRows({ token, signed }: Forge): Row[] {
  const good = token();
  const [header, payload, signature] = good.split(".") as [string, string, string];
  const padded = [0, 1, 2].map((length) => json({ ...CLAIMS, pad: "x".repeat(length) }));
  return [
    ["nothing", "", "malformed"],
    ["a word", "token", "malformed"],
    ["dots alone", "..", "malformed"],
    ["dots and a signature", `..${signature}`, "malformed"],
    ["no header", `.${payload}.${signature}`, "malformed"],
    ["no payload", `${header}..${signature}`, "forged"],
    ["no dots", raw(good), "malformed"],
    ["two segments", `${header}.${payload}`, "malformed"],
    ["two segments, of header and signature", `${header}.${signature}`, "malformed"],
    ["four segments", `${good}.${signature}`, "malformed"],
    ["five segments, as if encrypted", `${header}..${payload}.${payload}.${signature}`, "malformed"],
    ["a dot after", `${good}.`, "malformed"],
    ["a dot before", `.${good}`, "malformed"],
    ["the JSON serialization", JSON.stringify({ payload, protected: header, signature }), "malformed"],
    ["Bearer before", `Bearer ${good}`, "malformed"],
    ["padding after the signature", `${good}==`, "malformed"],
    ["padding after the header", `${header}=.${payload}.${signature}`, "malformed"],
    ["padding after the payload", `${header}.${payload}=.${signature}`, "malformed"],
    ["padding in the place of the signature's end", `${good.slice(0, -2)}==`, "malformed"],
    ["the other alphabet", `${header}.${payload}.${signature.slice(0, 84)}+/`, "malformed"],
    ["the other alphabet, in the payload", `${header}.${payload.slice(0, -2)}+/.${signature}`, "malformed"],
    ...[" ", "\n", "\r\n", "\t", "\0", "\u00a0", "\ufeff"].flatMap((space): Row[] => [
      [`${JSON.stringify(space)} before`, space + good, "malformed"],
      [`${JSON.stringify(space)} after`, good + space, "malformed"],
      [
        `${JSON.stringify(space)} in the payload`,
        `${header}.${payload.slice(0, 8)}${space}${payload.slice(8)}.${signature}`,
        "malformed",
      ],
      [
        `${JSON.stringify(space)} in the header`,
        `${header.slice(0, 8)}${space}${header.slice(8)}.${payload}.${signature}`,
        "malformed",
      ],
      [
        `${JSON.stringify(space)} in the place of a character of the signature`,
        `${header}.${payload}.${space.slice(0, 1)}${signature.slice(1)}`,
        "malformed",
      ],
    ]),
    ["a letter that looks alike in the header", good.replace("e", "е"), "malformed"],
    ["a letter that looks alike in the payload", `${header}.${payload.replace("e", "е")}.${signature}`, "malformed"],
    ["a surrogate alone", `${header}.${payload.slice(1)}\ud800.${signature}`, "malformed"],
    ...padded
      .filter(({ length }) => length % 4 !== 0)
      .flatMap((segment, index): Row[] => [
        [`a payload with ${index + 1} bytes at the end`, signed(header, segment), "accepted"],
        [
          `a payload with ${index + 1} bytes and a spare bit, signed`,
          signed(header, withSpareBit(segment)),
          "malformed",
        ],
      ]),
    [
      "a payload of one character more, signed",
      signed(header, `${padded.find(({ length }) => length % 4 === 0)}A`),
      "malformed",
    ],
    ["a header with a space at its end", signed(raw(`${JSON.stringify(HEAD)} `), payload), "accepted"],
  ];
}

function jsonRows({ withPayload, signed }: Forge): Row[] {
  const header = json(HEAD);
  const bytes = (...more: number[]) =>
    Buffer.concat([Buffer.from(text.slice(0, -1)), Buffer.from(',"x":"'), Buffer.from(more), Buffer.from('"}')]);
  const member = (members: string) => signed(header, claimsAfter(members));
  return [
    ...[
      "[",
      "]",
      "{",
      "}",
      "null",
      "true",
      "1",
      '"a"',
      "",
      " ",
      "[]",
      "{sub:1}",
      "{'sub':1}",
      `[${text}]`,
      `${text}{}`,
      `${text},`,
      `${text.slice(0, -1)},}`,
      `\ufeff${text}`,
      `${text}\0`,
      `/**/${text}`,
      `\u00a0${text}`,
      `\f${text}`,
      `\v${text}`,
    ].map(
      (payload): Row => [
        `the payload ${JSON.stringify(payload.replace(text, "…"))}`,
        withPayload(payload),
        "malformed",
      ],
    ),
    ["a payload that is cut", withPayload(text.slice(0, -1)), "malformed"],
    ["white space of every kind", withPayload(` \t\r\n${text.replaceAll(",", " ,\n\t\r ")} \t\r\n`), "accepted"],
    ["claims in UTF-16", withPayload(Buffer.from(text, "utf16le")), "malformed"],
    ...(
      [
        ["a byte alone", [0xff]],
        ["a continuation alone", [0x80]],
        ["a cut sequence", [0xe2, 0x82]],
        ["an overlong form", [0xc0, 0x80]],
        ["an overlong slash", [0xe0, 0x80, 0xaf]],
        ["a surrogate in UTF-8", [0xed, 0xa0, 0x80]],
        ["a pair of surrogates in UTF-8", [0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80]],
        ["beyond U+10FFFF", [0xf4, 0x90, 0x80, 0x80]],
      ] as const
    ).map(([name, more]): Row => [`not UTF-8: ${name}`, withPayload(bytes(...more)), "malformed"]),
    ["U+FFFD, which is valid", withPayload(bytes(0xef, 0xbf, 0xbd)), "accepted"],
    ["U+10FFFF and U+007F, which are valid", withPayload(bytes(0xf4, 0x8f, 0xbf, 0xbf, 0x7f)), "accepted"],
    ...[
      "01",
      "+1",
      ".5",
      "1.",
      "-",
      "1e",
      "1e+",
      "0x10",
      "1_0",
      "NaN",
      "Infinity",
      "-Infinity",
      "undefined",
      "True",
      "None",
      "nul",
      "TRUE",
      "'a'",
      '"a',
      '"\\x41"',
      '"\\u00zz"',
      '"\\u12"',
      '"\\"',
      '"\t"',
      '"\n"',
      '"\u0000"',
      '"\u001f"',
      "[1,]",
      "[1 2]",
      "[,1]",
      '{"a"}',
      '{"a":1,}',
      '{"a" 1}',
      "{1:1}",
      "{null:1}",
      "١",
    ].map((value): Row => [`no JSON value: ${JSON.stringify(value)}`, member(`"x":${value}`), "malformed"]),
    ...[
      "-0",
      "0",
      "1E5",
      "1e-5",
      "-1.5e+3",
      '"\\/\\b\\f\\n\\r\\t\\"\\\\"',
      '"\\u0000"',
      '"\\ud83d\\ude00"',
      '"\\uFFFF"',
      '"é"',
      "[]",
      "{}",
      "[[],{}]",
      '{"a:b":"c:d"}',
      '{"\\"":":"}',
      '""',
    ].map((value): Row => [`the JSON value ${value}`, member(`"x":${value}`), "accepted"]),
    ...[
      '"\\ud800"',
      '"\\udc00"',
      '"\\udc00\\ud800"',
      '"a\\ud83d"',
      '"\\ud83dx"',
      '"\\ud83d\\n"',
      '["\\uDBFF"]',
      '{"\\ud800":1}',
      '{"a":{"\\udfff":1}}',
    ].map((value): Row => [`a surrogate alone: ${value}`, member(`"x":${value}`), "malformed"]),
    ["a number of 400 digits", member(`"x":1${"0".repeat(400)}`), "accepted"],
    ["a number of 5,000 digits", member(`"x":${"1".repeat(5000)}`), "accepted"],
    ["a number of 5,000 digits after the point", member(`"x":0.${"1".repeat(5000)}`), "accepted"],
    ["a number beyond the range", member('"x":-1e999'), "accepted"],
    ["a number of an exponent of many digits", member(`"x":1e${"9".repeat(50)}`), "accepted"],
    ...[
      '"sub":"root"',
      '"sub":"user-1"',
      '"s\\u0075b":"root"',
      '"exp":1',
      '"a":1,"a":1',
      '"a":[{"b":1,"b":2}]',
      '"a":{"":1,"":1}',
      '"__proto__":1,"__proto__":2',
      '"é":1,"\\u00e9":1',
      '"\\ud83d\\ude00":1,"😀":1',
      '"a":{"b":{"c":1,"d":2,"c":3}}',
    ].map((members): Row => [`duplicate members: ${members}`, member(members), "malformed"]),
    [
      "no duplicates: in different cases, forms and objects",
      member('"SUB":1,"e\u0301":1,"é":2,"a":{"sub":1},"b":[{"x":1},{"x":2}]'),
      "accepted",
    ],
  ];
}

function sizeRows({ token, withPayload, signed }: Forge): Row[] {
  const nested = (depth: number, open: string, close: string) =>
    signed(json(HEAD), claimsAfter(`"x":${open.repeat(depth - 1)}1${close.repeat(depth - 1)}`));
  const room = Math.floor(((MAX_LENGTH - token({}, { x: "" }).length) * 3) / 4);
  const bySize = Array.from({ length: 8 }, (_, more) => token({}, { x: "x".repeat(room - 3 + more) }));
  const fits = bySize.filter(({ length }) => length <= MAX_LENGTH);
  return [
    ["objects in objects, to the greatest depth", nested(MAX_DEPTH, '{"a":', "}"), "accepted"],
    ["objects in objects, one too many", nested(MAX_DEPTH + 1, '{"a":', "}"), "malformed"],
    ["lists in lists, to the greatest depth", nested(MAX_DEPTH, "[", "]"), "accepted"],
    ["lists in lists, one too many", nested(MAX_DEPTH + 1, "[", "]"), "malformed"],
    ["lists in lists, thousands", nested(5000, "[", "]"), "malformed"],
    ["thousands of lists that are open", withPayload("[".repeat(10_000)), "malformed"],
    ["brackets in a string, thousands", signed(json(HEAD), claimsAfter(`"x":"${"[{".repeat(2000)}"`)), "accepted"],
    ["the longest token", fits.at(-1) as string, "accepted"],
    ["a token that is too long", bySize[fits.length] as string, "malformed"],
    ["a huge token", token({}, { pad: "x".repeat(20_000) }), "malformed"],
  ];
}
