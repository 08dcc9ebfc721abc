/** The verifiers in all languages report a refusal with the same reason and the same texts. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { decodeProtectedHeader } from "jose";
import { expect, onTestFinished, test } from "vitest";
import { createVerifier } from "../../src/verifier/index.ts";
import { createVerifier as createWebVerifier } from "../../src/verifier/web/index.ts";
import { scratch, startService } from "../support/service.ts";
import { logIn } from "../support/sessions.ts";
import { type FollowOptions, LANGUAGES, runRefusals, startFollower } from "../support/verifier/languages.ts";
import { createForge, ISSUER, json, NOW_MS, type VectorCase, type VectorFile } from "../vectors/format.ts";
import { createSign } from "../vectors/keys.ts";
import { recordsOf } from "../vectors/run.ts";

const AUDIENCE = "https://api.example";
const file: VectorFile = JSON.parse(readFileSync(join(import.meta.dirname, "../vectors/verifier.json"), "utf8"));
const { token } = createForge(createSign([]));

/** Tokens whose members have unusual values. */
const UNUSUAL: Record<string, string> = {
  "a long issuer with control characters": token({}, { iss: `a\u202E\r\n\u0000\u{1F600}${"x".repeat(300)}` }),
  "an issuer of exactly the greatest length": token({}, { iss: "y".repeat(200) }),
  "an issuer of control characters only": token({}, { iss: "\n\u200E" }),
  "an issuer that is null": token({}, { iss: null }),
  "an issuer that is a list": token({}, { iss: ["a", "b"] }),
  "an issuer that is a number": token({}, { iss: -1.5 }),
  "an issuer that is a great number": token({}, { iss: 2 ** 53 }),
  "an issuer that is a boolean": token({}, { iss: true }),
  "an empty list of audiences": token({}, { aud: [] }),
  "no signature": "e30.e30.",
  "a text that is JSON": `${json({ secret: 1 })}`,
  nothing: "",
};
const cases: readonly VectorCase[] = [
  ...file.cases,
  ...Object.entries(UNUSUAL).map(([name, token]) => ({ name, token, nowMs: NOW_MS, verdict: "malformed" as const })),
];

test("every case of the vectors, and every unusual token, has the same record in all verifiers", async () => {
  const path = join(scratch(), "refusals.json");
  writeFileSync(path, JSON.stringify({ ...file, cases }));
  const others = await Promise.all(LANGUAGES.map(async ({ build }) => runRefusals(await build(), path)));
  for (const [index, one] of cases.entries()) {
    const here = await recordsOf(createVerifier, file, one);
    const elsewhere = [await recordsOf(createWebVerifier, file, one), ...others.map((records) => records[index])];
    for (const records of elsewhere) expect(records, one.name).toEqual(here);
    if (index < file.cases.length && one.verdict !== "accepted") expect(Object.keys(here)).toContain(one.verdict);
  }
});

test("a wrong issuer, audience or key set of a real service is reported in each language", async () => {
  const start = async () => {
    const service = await startService({ ISSUER, AUDIENCE });
    onTestFinished(async () => void (await service.kill9()));
    return service;
  };
  const [service, another] = [await start(), await start()];
  const { accessToken } = await logIn(service);
  const jwksUrl = `${another.publicUrl}/.well-known/jwks.json`;
  const { keys } = (await (await fetch(jwksUrl)).json()) as { keys: { kid: string; token_types?: string[] }[] };
  const kids = keys.filter(({ token_types = ["at+jwt"] }) => token_types.includes("at+jwt")).map(({ kid }) => kid);
  const wrong: readonly (readonly [Partial<FollowOptions>, string, object, object])[] = [
    [{ issuer: `${ISSUER}/` }, "wrong_issuer", { iss: `${ISSUER}/` }, { iss: ISSUER }],
    [{ audience: "https://b.example" }, "wrong_audience", { aud: "https://b.example" }, { aud: AUDIENCE }],
    [
      ...([{ jwksUrl }, "unknown_key", { kid: kids.sort().join(", "), iss: ISSUER }] as const),
      { kid: decodeProtectedHeader(accessToken).kid, iss: ISSUER },
    ],
  ];
  for (const { build, name } of LANGUAGES) {
    const command = await build();
    for (const [options, reason, expected, received] of wrong) {
      const { adminUrl, adminToken } = service;
      const follower = startFollower(command, {
        ...{ adminUrl, adminToken, issuer: ISSUER, audience: AUDIENCE },
        ...options,
      });
      onTestFinished(() => follower.stop());
      await follower.reported("ready");
      expect(await follower.verdictOf(accessToken)).toBe(reason);
      expect(await follower.verdictOf(accessToken)).toBe(reason);
      expect(follower.refusals, name).toEqual([{ reason, count: 1, expected, received }]);
    }
  }
});
