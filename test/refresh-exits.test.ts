/** A table in docs/why/architecture.md lists how a refresh can fail. It has exactly the errors and reasons that exist in the code. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ERRORS } from "../src/service/session/errors.ts";
import type { refresh } from "../src/service/session/rotation/refresh.ts";
import { tableRows } from "./support/named-tests.ts";

type Exit = Extract<Awaited<ReturnType<typeof refresh>>, { readonly ok: false }>["reason"];

/** Whether a refresh can end with each reason. This does not compile if a reason is missing or no longer exists. */
const REASONS: Readonly<Record<Exit, boolean>> = {
  absent: true,
  ambiguous: true,
  malformed: true,
  unknown_key: true,
  forged: true,
  wrong_issuer: false,
  wrong_audience: false,
  expired: true,
  idle: true,
  revoked: true,
  stale: false,
  reuse: true,
  two_holders: true,
  device_proof_missing: true,
  device_required: true,
  proof_missing: true,
  other_key: true,
  wrong_transport: true,
  wrong_client: true,
  unknown_session: true,
  rate_limited: true,
  device_renewal_skipped: true,
  device_cookie_stale: true,
  invalid_target: true,
};

const PAGE = readFileSync(join(import.meta.dirname, "../docs/why/architecture.md"), "utf8");
const ROWS = tableRows(PAGE, "Every exit of a refresh").map(([, , exit = "", reasons = ""]) => {
  return {
    exit: exit.replaceAll("`", ""),
    reasons: [...reasons.matchAll(/`(\w+)`/g)].map(([, reason = ""]) => reason),
  };
});

test("every reason has a row, and no row has another one", () => {
  const described = [...new Set(ROWS.flatMap(({ reasons }) => reasons))];
  const expected = Object.entries(REASONS).flatMap(([reason, may]) => (may ? [reason] : []));
  expect(described.toSorted()).toEqual(expected.sort());
});

test("every error is an exit, but those of an unknown route and of the admin API", () => {
  const exits = new Set(ROWS.map(({ exit }) => exit));
  expect(
    [...exits, "E400_FAILED_PRECONDITION", "E404_NOT_FOUND", "E409_CONFLICT", "E429_SESSION_LIMIT"].sort(),
  ).toEqual(Object.keys(ERRORS).sort());
});

test("a reason for the log alone is E001_AUTH_FAILURE for the client, and what is to be tried again is not", () => {
  const again = new Set<string>([
    ...(["rate_limited", "device_renewal_skipped", "device_cookie_stale", "invalid_target"] satisfies Exit[]),
  ]);
  for (const { exit, reasons } of ROWS) {
    for (const reason of reasons) expect([reason, exit === "E001_AUTH_FAILURE"]).toEqual([reason, !again.has(reason)]);
  }
});
