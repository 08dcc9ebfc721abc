/** Cases about a proof: its form, its claims, its token, its replay, and the order in which faults are reported. */
import { AUDIENCE, json, NOW, NOW_MS, raw, SID, type VectorCase } from "./format.ts";
import { CLIENT, OTHER_CLIENT, type ProofChange, type Prover, URL_OF_REQUEST } from "./prover.ts";

type Verdict = VectorCase["verdict"];
const show = (value: unknown) => JSON.stringify(value) ?? "absent";
const shorten = (name: string) =>
  name.length > 80 ? `${Array.from(name).slice(0, 10).join("")}… of ${name.length}` : name;
const MAX_LENGTH = 8192;
const STRANGE = [null, true, 0, 1.5, [], {}, ["x"]];

export function proofCases(prover: Prover): VectorCase[] {
  const parts = [formCases, jsonCases, claimsCases, timeCases, tokenCases, replayCases, feedCases, orderCases];
  return parts.flatMap((create) => create(prover));
}

function formCases({ proof, presented, changed, signed, headerOf, payloadOf, bound }: Prover): VectorCase[] {
  const good = proof("a proof to be changed");
  const of = (
    name: string,
    change: (whole: string, ...segments: string[]) => string,
    verdict: Verdict = "proof_malformed",
  ) => presented(name, [change(good, ...good.split("."))], verdict);
  /** Makes a proof with exactly `length` characters. In base64url a segment cannot have every length, so both segments are varied. */
  const ofLength = (length: number, verdict: Verdict) => {
    const name = `of ${length} characters`;
    for (let more = 0; more < 4; more++) {
      for (let most = 5000; most < 6000; most++) {
        const header = headerOf(CLIENT, { more: "m".repeat(more) });
        const payload = payloadOf(bound(), name, { more: "m".repeat(most) });
        if (header.length + payload.length + 88 === length) return presented(name, [signed(header, payload)], verdict);
      }
    }
    throw new Error("no such length");
  };
  return [
    of("as it is", () => good, "accepted"),
    of("there is none", () => "", "proof_absent"),
    of("two of them", () => `${good}, ${good}`, "proof_ambiguous"),
    of("a comma behind it", () => `${good},`, "proof_ambiguous"),
    of("a comma alone", () => ",", "proof_ambiguous"),
    ...["x", ".", "..", "...", "a.b.c", " ", "é.é.é"].map((text) => of(`the text ${show(text)}`, () => text)),
    of("without its signature", (_, header, payload) => `${header}.${payload}.`),
    of("without its payload", (_, header, __, signature) => `${header}..${signature}`),
    of("of four segments", () => `${good}.a`),
    of("padding", () => `${good}=`),
    ...[" ", "\n", "\t", "\0", "é"].flatMap((unit) => [
      of(`${show(unit)} before it`, () => unit + good),
      of(`${show(unit)} behind it`, () => good + unit),
      of(
        `${show(unit)} in its payload`,
        (_, header, payload = "", signature) =>
          `${header}.${payload.slice(0, 4)}${unit}${payload.slice(4)}.${signature}`,
      ),
    ]),
    of(
      "the alphabet of base64",
      (_, header, payload, signature = "") => `${header}.${payload}.+/${signature.slice(2)}`,
    ),
    of("spare bits in the signature", () => `${good.slice(0, -1)}${"QRgh".includes(good.slice(-1)) ? "B" : "_"}`),
    of(
      "a header that is one character longer",
      (_, header, payload, signature) => `${header}A.${payload}.${signature}`,
    ),
    ofLength(MAX_LENGTH, "accepted"),
    ofLength(MAX_LENGTH + 1, "proof_malformed"),
    ...["at+jwt", "DPOP+JWT", "application/dpop+jwt", "dbsc+jwt", "", ...STRANGE, undefined].map((typ) =>
      changed(`typ ${show(typ)}`, { header: { typ } }, "proof_wrong_type"),
    ),
    ...["crit", "b64"].flatMap((name) =>
      [null, false, true, []].map((value) =>
        changed(`${name} ${show(value)}`, { header: { [name]: value } }, "proof_malformed"),
      ),
    ),
    changed("further members of its header", { header: { kid: "1", nonce: {}, jku: "https://a.example" } }, "accepted"),
  ];
}

function jsonCases({ presented, signed, headerOf, payloadOf, bound }: Prover): VectorCase[] {
  const payload = (
    name: string,
    change: (text: string) => string | Uint8Array,
    verdict: Verdict = "proof_malformed",
  ) => {
    const text = Buffer.from(payloadOf(bound(), name), "base64url").toString();
    return presented(name, [signed(headerOf(CLIENT), raw(change(text)))], verdict);
  };
  const header = (name: string, change: (text: string) => string, verdict: Verdict = "proof_malformed") => {
    const text = Buffer.from(headerOf(CLIENT), "base64url").toString();
    return presented(name, [signed(raw(change(text)), payloadOf(bound(), name))], verdict);
  };
  const nested = (depth: number) => (text: string) =>
    `{"a":${"[".repeat(depth - 1)}${"]".repeat(depth - 1)},${text.slice(1)}`;
  const value = (name: string, text: string) =>
    presented(name, [signed(headerOf(CLIENT), raw(text))], "proof_malformed");
  return [
    payload("a claim twice", (text) => `{"htm":"POST",${text.slice(1)}`),
    header("a member of its header twice", (text) => `{"typ":"dpop+jwt",${text.slice(1)}`),
    header("a member of its key twice", (text) => text.replace('"jwk":{', '"jwk":{"kty":"EC",')),
    payload("a byte order mark", (text) => `\ufeff${text}`),
    payload("bytes that are not UTF-8", (text) => Buffer.concat([Buffer.from(text), Buffer.from([255])])),
    payload("an unpaired surrogate", (text) => `{"a":"\\ud800",${text.slice(1)}`),
    payload("nested as deep as it may be", nested(128), "accepted"),
    payload("nested too deep", nested(129)),
    header("a header nested too deep", nested(129)),
    payload("white space around its claims", (text) => ` ${text}\n`, "accepted"),
    payload("something behind its claims", (text) => `${text}x`),
    ...["null", "[]", "1", '"x"', "", "{}"].map((text) => value(`the claims ${text}`, text)),
    header("a header that is a list", () => "[]"),
    payload("claims with escapes", (text) => text.replace('"htm"', '"\\u0068tm"'), "accepted"),
  ];
}

function claimsCases({ changed }: Prover): VectorCase[] {
  const texts = (name: string, values: readonly unknown[], verdict: Verdict) =>
    values.map((value) => changed(shorten(`${name} ${show(value)}`), { claims: { [name]: value } }, verdict));
  return [
    ...texts("jti", [...STRANGE, "", undefined, "j".repeat(257), `${"🎉".repeat(128)}j`], "proof_malformed"),
    ...texts("jti", ["j", "j".repeat(256), "🎉".repeat(128), "Ωμέγα\0"], "accepted"),
    ...["htm", "htu"].flatMap((name) => texts(name, [...STRANGE, undefined], "proof_malformed")),
    ...texts("iat", [null, true, false, [], {}, "", String(NOW), undefined], "proof_malformed"),
    ...texts("ath", STRANGE, "proof_malformed"),
    ...texts("ath", ["", "x", undefined], "proof_wrong_token"),
    ...texts("nonce", STRANGE, "proof_malformed"),
    ...texts("nonce", ["", "n"], "accepted"),
    ...texts("exp", [0, "x"], "accepted"),
  ];
}

function timeCases({ changed, presented, signed, headerOf, payloadOf, bound }: Prover): VectorCase[] {
  const written = (number: string, verdict: Verdict) => {
    const name = `iat written as ${number.slice(0, 12)}`;
    const text = Buffer.from(payloadOf(bound(), name), "base64url")
      .toString()
      .replace(/"iat":\d+/, `"iat":${number}`);
    return presented(name, [signed(headerOf(CLIENT), raw(text))], verdict);
  };
  return [
    ...[0, 60, -60, 59.999, -59.999, 0.5].map((seconds) =>
      changed(`made ${seconds} s ahead`, { claims: { iat: NOW + seconds } }, "accepted"),
    ),
    ...[60.001, -60.001, 61, -61, -NOW, -2 * NOW].map((seconds) =>
      changed(`made ${seconds} s ahead`, { claims: { iat: NOW + seconds } }, "proof_stale"),
    ),
    ...["1.8e9", "1800000000.0", "18000000000E-1"].map((number) => written(number, "accepted")),
    ...["1e999", "-1e999", `1${"0".repeat(400)}`].map((number) => written(number, "proof_malformed")),
    written("1e300", "proof_stale"),
  ];
}

function tokenCases({ bound, proof, presented, forge }: Prover): VectorCase[] {
  const of = (name: string, token: string, verdict: Verdict, change: ProofChange = {}) =>
    presented(`the token: ${name}`, [proof(name, { token, ...change })], verdict, token);
  const { thumbprint } = CLIENT;
  const good = bound();
  return [
    of("bound to its key", good, "accepted"),
    of("of another proof", good, "proof_wrong_token", { token: bound(OTHER_CLIENT) }),
    of("bound to another key", bound(OTHER_CLIENT), "proof_other_key"),
    of("a bearer token", forge.token(), "proof_other_key"),
    ...[
      null,
      true,
      "",
      thumbprint,
      [],
      [thumbprint],
      {},
      { jkt: null },
      { jkt: [thumbprint] },
      { jkt: `${thumbprint}=` },
    ].map((cnf) => of(`cnf ${show(cnf)}`, bound(CLIENT, { cnf }), "proof_other_key")),
    of("further members of cnf", bound(CLIENT, { cnf: { jkt: thumbprint, "x5t#S256": "x" } }), "accepted"),
    of("expired", bound(CLIENT, { exp: NOW - 1 }), "expired"),
    of("not valid yet", bound(CLIENT, { nbf: NOW + 1 }), "not_yet_valid"),
    of("of another issuer", bound(CLIENT, { iss: "https://evil.example" }), "wrong_issuer"),
    of("for another audience", bound(CLIENT, { aud: `${AUDIENCE}/` }), "wrong_audience"),
    of("forged", `${good.slice(0, -4)}AAAA`, "forged"),
    of("malformed", good.slice(1), "malformed"),
    of("empty", "", "malformed"),
    ...[true, undefined].map((device_bound) => {
      const token = bound(CLIENT, { device_bound });
      const name = `a device key is required, and it is ${show(device_bound)}`;
      const verdict = device_bound ? "accepted" : "not_device_bound";
      return presented(name, [proof(name, { token })], verdict, token, { options: { requireDeviceBound: true } });
    }),
  ];
}

function replayCases({ proof, presented, changed }: Prover): VectorCase[] {
  const [once, wrong] = [proof("once"), proof("refused before", { claims: { htm: "GET" } })];
  return [
    presented("presented twice", [once, once], "proof_replayed"),
    presented("presented three times", [proof("thrice"), proof("thrice"), proof("thrice")], "proof_replayed"),
    presented("another one follows", [proof("first"), proof("second")], "accepted"),
    presented(
      "the same jti for another URL",
      [proof("reused"), proof("reused", { claims: { htu: `${URL_OF_REQUEST}?a` } })],
      "proof_replayed",
    ),
    presented("the jti of one that was refused", [wrong, proof("refused before")], "accepted"),
    presented("refused again, for what was wrong", [wrong, wrong], "proof_wrong_method"),
    changed("a jti that another key has used", { key: CLIENT, claims: { jti: "shared" } }, "accepted"),
    presented("a jti that differs in case", [proof("case"), proof("CASE")], "accepted"),
  ];
}

function feedCases({ bound, proof, presented }: Prover): VectorCase[] {
  const of = (name: string, atMs: number, content: object, verdict: Verdict) => {
    const feed = [{ atMs, batch: { cursor: "1", caughtUp: true, ...content } }];
    return presented(`the feed: ${name}`, [proof(`the feed: ${name}`)], verdict, bound(), { feed });
  };
  const expireTime = new Date(NOW_MS + 900_000).toISOString();
  return [
    of("nothing is revoked", NOW_MS, {}, "accepted"),
    of("the session has ended", NOW_MS, { revocations: [{ sessionId: SID, expireTime }] }, "revoked"),
    of("all sessions have ended", NOW_MS, { revokedUntilTime: new Date(NOW_MS).toISOString() }, "revoked"),
    of("its key was revoked", NOW_MS, { revokedKeyIds: ["es256-signing"] }, "revoked_key"),
    of("it is stale", NOW_MS - 5001, {}, "unavailable"),
  ];
}

/**
 * Faults in the order in which verifiers report them. Two faults with the same subject change the same part, so one proof cannot have
 * both.
 */
const FAULTS: readonly (readonly [name: string, subject: string, change: ProofChange, verdict: Verdict])[] = [
  ["crit", "crit", { header: { crit: [] } }, "proof_malformed"],
  ["another type", "typ", { header: { typ: "jwt" } }, "proof_wrong_type"],
  ["another algorithm", "alg", { header: { alg: "none" } }, "proof_wrong_algorithm"],
  ["no key", "jwk", { header: { jwk: null } }, "proof_bad_key"],
  ["no jti", "jti", { claims: { jti: "" } }, "proof_malformed"],
  ["ath is null", "ath", { claims: { ath: null } }, "proof_malformed"],
  ["another method", "htm", { claims: { htm: "GET" } }, "proof_wrong_method"],
  ["another URL", "htu", { claims: { htu: "https://other.example/" } }, "proof_wrong_url"],
  ["an old time", "iat", { claims: { iat: NOW - 100 } }, "proof_stale"],
  ["for another token", "ath", { claims: { ath: "x" } }, "proof_wrong_token"],
  ["a point not on the curve", "jwk", { header: { jwk: { ...CLIENT.jwk, y: CLIENT.jwk.x } } }, "proof_bad_key"],
  ["signed by another key", "by", { by: OTHER_CLIENT }, "proof_forged"],
];

function orderCases({ changed, bound, headerOf, presented, signed }: Prover): VectorCase[] {
  const pairs = FAULTS.flatMap(([first, subject, change, verdict], index) =>
    FAULTS.slice(index + 1)
      .filter(([, other]) => other !== subject)
      .map(([second, , other]) => {
        const both = { header: { ...other.header, ...change.header }, claims: { ...other.claims, ...change.claims } };
        return changed(`two faults: ${first}, ${second}`, { ...other, ...change, ...both }, verdict);
      }),
  );
  const noClaims = signed(headerOf(CLIENT, { jwk: null }), json([]));
  return [...pairs, presented("two faults: no key, no claims", [noClaims], "proof_bad_key", bound())];
}
