/** Cases about the claims of a token, its times, and the order in which faults are reported. */
import { AUDIENCE, CLAIMS, casesOf, type Forge, ISSUER, NOW, NOW_MS, type Row, type VectorCase } from "./format.ts";

const STRANGE = [null, true, false, 0, 1.5, {}, [], ["x"], "", undefined];
const show = (value: unknown) => JSON.stringify(value) ?? "absent";
const text = JSON.stringify(CLAIMS);

export function claimsCases(forge: Forge): VectorCase[] {
  const { token, withPayload } = forge;
  const rows: Row[] = [
    ...["sub", "jti", "sid", "client_id"].flatMap((name) =>
      STRANGE.map((value): Row => [`${name} ${show(value)}`, token({}, { [name]: value }), "malformed"]),
    ),
    ...STRANGE.concat([[ISSUER], "https://evil.example", `${ISSUER}/`, ISSUER.toUpperCase(), ` ${ISSUER}`]).map(
      (iss): Row => [`iss ${show(iss)}`, token({}, { iss }), "wrong_issuer"],
    ),
    ...[null, true, 0, {}, undefined, [AUDIENCE, 1], [AUDIENCE, null], [[AUDIENCE]], [{ aud: AUDIENCE }]].map(
      (aud): Row => [`aud ${show(aud)}`, token({}, { aud }), "malformed"],
    ),
    ...["", [], ["other"], ["a", "b"], `${AUDIENCE}.evil.example`, `${AUDIENCE} other`, AUDIENCE.toUpperCase()].map(
      (aud): Row => [`aud ${show(aud)}`, token({}, { aud }), "wrong_audience"],
    ),
    ...[[AUDIENCE], ["other", AUDIENCE], [AUDIENCE, AUDIENCE]].map(
      (aud): Row => [`aud ${show(aud)}`, token({}, { aud }), "accepted"],
    ),
    ...[null, false, "", 0, {}, [], { jkt: "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I" }].map(
      (cnf): Row => [`cnf ${show(cnf)}`, token({}, { cnf }), "not_bearer"],
    ),
    ...["exp", "iat"].flatMap((name) =>
      [null, true, false, {}, [], "", [NOW + 600], String(NOW + 600), undefined].map(
        (value): Row => [`${name} ${show(value)}`, token({}, { [name]: value }), "malformed"],
      ),
    ),
    ...[null, true, false, {}, [], "", "0", String(NOW)].map(
      (nbf): Row => [`nbf ${show(nbf)}`, token({}, { nbf }), "not_yet_valid"],
    ),
    ...["1e999", "-1e999", `1${"0".repeat(400)}`].flatMap((number): Row[] => [
      [`exp ${number.slice(0, 9)}`, withPayload(text.replace(/"exp":\d+/, `"exp":${number}`)), "malformed"],
      [`iat ${number.slice(0, 9)}`, withPayload(text.replace(/"iat":\d+/, `"iat":${number}`)), "malformed"],
      [`nbf ${number.slice(0, 9)}`, withPayload(`{"nbf":${number},${text.slice(1)}`), "not_yet_valid"],
    ]),
    ...["1800000600.0", "1.8000006e9", "1.8000006E+9", "18000006000e-1", "1e300"].map(
      (exp): Row => [`exp ${exp}`, withPayload(text.replace(/"exp":\d+/, `"exp":${exp}`)), "accepted"],
    ),
    ...[NOW, NOW - 1, 0, -1, -1.5].map(
      (exp): Row => [`exp ${exp}, in the past`, token({}, { exp, iat: Math.min(exp, NOW) }), "expired"],
    ),
    ["nbf in the future", token({}, { nbf: NOW + 60 }), "not_yet_valid"],
    ["nbf a millisecond ahead", token({}, { nbf: NOW + 0.001 }), "not_yet_valid"],
    ["nbf now", token({}, { nbf: NOW }), "accepted"],
    ["nbf negative", token({}, { nbf: -1 }), "accepted"],
    ["iat when it expires", token({}, { iat: NOW + 600 }), "accepted"],
    ["iat after it expires", token({}, { iat: NOW + 601 }), "malformed"],
    ["iat in the future", token({}, { iat: NOW + 300 }), "accepted"],
    ["claims of all types", token({}, { role: { admin: false }, list: [1, "2", null, [true]], "": 0 }), "accepted"],
    ["claims in any script", token({}, { name: "Ωμέγα 漢字 🎉 \u2028 \ufffd", ключ: 1 }), "accepted"],
    [
      "claims with names that objects have",
      withPayload(`{"__proto__":{"a":1},"constructor":2,${text.slice(1)}`),
      "accepted",
    ],
    ["sub with a NUL", token({}, { sub: "user\0" }), "accepted"],
  ];
  return [
    ...casesOf(rows),
    ...casesOf([...versionRows(forge), ...actorRows(forge), ...narrowedRows(forge)]),
    ...timeCases(forge),
    ...deviceCases(forge),
    ...orderCases(forge),
  ];
}

/** Rows about `sv`, how often what the session says has changed. */
function versionRows({ token, withPayload }: Forge): Row[] {
  const withText = (number: string) => withPayload(`{"sv":${number},${text.slice(1)}`);
  return [
    ...[null, true, false, "", "1", {}, [], [1], -1, 0.5, 1.5, 2 ** 32].map(
      (sv): Row => [`sv ${show(sv)}`, token({}, { sv }), "malformed"],
    ),
    ...["1e999", "-1e999", "1e10", "4294967295.5", `1${"0".repeat(400)}`].map(
      (number): Row => [`sv ${number.slice(0, 12)}`, withText(number), "malformed"],
    ),
    ...[0, 1, 2 ** 32 - 1].map((sv): Row => [`sv ${sv}`, token({}, { sv }), "accepted"]),
    ...["1.0", "1e2", "-0", "4294967295.0"].map((number): Row => [`sv ${number}`, withText(number), "accepted"]),
  ];
}

/** Rows about `act`, who acts for the subject (RFC 8693 section 4.1). */
function actorRows({ token, withPayload }: Forge): Row[] {
  const nested = (depth: number): object => ({ sub: `actor-${depth}`, ...(depth > 1 && { act: nested(depth - 1) }) });
  const malformed = [
    ...[null, true, 1, "", "support-1", [], [{ sub: "support-1" }], {}],
    ...[null, true, 1, "", ["support-1"]].map((sub) => ({ sub })),
    ...[null, "", "agent-1", {}, { sub: "" }, { act: { sub: "agent-1" } }].map((act) => ({ sub: "support-1", act })),
  ];
  return [
    ...malformed.map((act): Row => [`act ${show(act)}`, token({}, { act }), "malformed"]),
    [
      "act that has its sub by another name",
      withPayload(`{"act":{"__proto__":{"sub":"support-1"}},${text.slice(1)}`),
      "malformed",
    ],
    ["act", token({}, { act: { sub: "support-1" } }), "accepted"],
    ["act with members of its own", token({}, { act: { iss: ISSUER, sub: "support-1", reason: 7 } }), "accepted"],
    ["act of two", token({}, { act: nested(2) }), "accepted"],
    ["act of four", token({}, { act: nested(4) }), "accepted"],
    ["act of ten", token({}, { act: nested(10) }), "accepted"],
    ["act of four, the last without sub", token({}, { act: { sub: "a", act: { sub: "b", act: {} } } }), "malformed"],
    ["act in another claim is nobody's", token({}, { role: { act: "support-1" } }), "accepted"],
  ];
}

/** Rows about a token of an exchange (RFC 8693), whose `aud` is a part of that of the session. */
function narrowedRows({ token }: Forge): Row[] {
  const exchanged = (aud: unknown) => token({}, { aud, sv: 3, act: { sub: "agent-1", act: { sub: "support-1" } } });
  return [
    ["exchanged, for this service alone", exchanged(AUDIENCE), "accepted"],
    ["exchanged, for a list of this service", exchanged([AUDIENCE]), "accepted"],
    ["exchanged, for another service", exchanged("https://other.example"), "wrong_audience"],
    ["exchanged, for no service", exchanged([]), "wrong_audience"],
  ];
}

function timeCases({ token }: Forge): VectorCase[] {
  const rows: readonly [string, object, number, VectorCase["verdict"]][] = [
    ["valid from this millisecond", { nbf: NOW }, NOW_MS, "accepted"],
    ["valid from the next millisecond", { nbf: NOW }, NOW_MS - 1, "not_yet_valid"],
    ["in its last millisecond", { exp: NOW + 1 }, NOW_MS + 999, "accepted"],
    ["expired in this millisecond", { exp: NOW + 1 }, NOW_MS + 1000, "expired"],
    ["in the last millisecond of a fraction", { exp: NOW + 0.5 }, NOW_MS + 499, "accepted"],
    ["expired in the millisecond of a fraction", { exp: NOW + 0.5 }, NOW_MS + 500, "expired"],
    ["issued in the future", { iat: NOW + 100 }, NOW_MS - 1_000_000, "accepted"],
  ];
  return rows.map(([name, claims, nowMs, verdict]) => ({ name, token: token({}, claims), nowMs, verdict }));
}

function deviceCases({ token }: Forge): VectorCase[] {
  const withOption = (name: string, claims: object, verdict: VectorCase["verdict"]): VectorCase => ({
    ...{ name: `a device key is required: ${name}`, token: token({}, claims), nowMs: NOW_MS },
    ...{ options: { requireDeviceBound: true }, verdict },
  });
  const another = (
    name: string,
    audience: string | readonly string[],
    aud: unknown,
    verdict: VectorCase["verdict"],
  ) => ({
    ...{
      name: `the option audience: ${name}`,
      token: token({}, { aud }),
      nowMs: NOW_MS,
      options: { audience },
      verdict,
    },
  });
  return [
    withOption("it was proven", { device_bound: true }, "accepted"),
    ...[undefined, false, null, "true", 1, [true]].map((value) =>
      withOption(`device_bound ${show(value)}`, { device_bound: value }, "not_device_bound"),
    ),
    withOption("a token that is expired anyway", { exp: NOW - 1, iat: NOW - 2 }, "expired"),
    ...casesOf([["device_bound true, where it is not required", token({}, { device_bound: true }), "accepted"]]),
    another("one of several", ["a", "b"], "b", "accepted"),
    another("several of several", ["a", "b"], ["c", "b", "a"], "accepted"),
    another("none of several", ["a", "b"], ["c", AUDIENCE], "wrong_audience"),
  ];
}

/** Faults in the order in which they are reported. Two faults with the same subject change the same claim, so no token has both. */
const FAULTS: readonly (readonly [name: string, subject: string, claims: object, verdict: VectorCase["verdict"]])[] = [
  ["no sub", "sub", { sub: undefined }, "malformed"],
  ["exp as text", "exp", { exp: "1" }, "malformed"],
  ["another issuer", "iss", { iss: "https://evil.example" }, "wrong_issuer"],
  ["an audience that is a number", "aud", { aud: [1] }, "malformed"],
  ["another audience", "aud", { aud: "https://other.example" }, "wrong_audience"],
  ["bound to a key", "cnf", { cnf: {} }, "not_bearer"],
  ["not valid yet", "nbf", { nbf: NOW + 1 }, "not_yet_valid"],
  ["expired", "exp", { exp: NOW - 1 }, "expired"],
  ["issued after its end", "iat", { iat: NOW + 601 }, "malformed"],
  ["a version as text", "sv", { sv: "1" }, "malformed"],
  ["an actor without sub", "act", { act: {} }, "malformed"],
  ["without a device key", "device", {}, "not_device_bound"],
];

function orderCases({ token }: Forge): VectorCase[] {
  return FAULTS.flatMap(([first, subject, claims, verdict], index) =>
    FAULTS.slice(index + 1)
      .filter(([, other]) => other !== subject)
      .map(([second, , others]) => ({
        ...{ name: `two faults: ${first}, ${second}`, token: token({}, { ...others, ...claims }), nowMs: NOW_MS },
        ...{ options: { requireDeviceBound: true }, verdict },
      })),
  );
}
