/** The log goes to standard error in every case. Each test runs a separate process and reads its standard error. */
import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";

/** Returns what a process logs that runs `code` with a logger named `log`. */
function logged(level: string, code: string): Record<string, unknown>[] {
  const logger = new URL("../../../src/service/observability/logger.ts", import.meta.url).href;
  const script = `import { createLogger } from ${JSON.stringify(logger)};\nconst { log, reportSuppressed, flush } = await createLogger("${level}");\n${code}`;
  const run = spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" });
  expect([run.status, run.stdout]).toEqual([0, ""]);
  return run.stderr
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}

test("what may carry a credential is redacted, wherever it stands", () => {
  const [first, second] = logged(
    "info",
    `const secrets = { token: "s3cret", cookie: "s3cret", authorization: "s3cret", accessToken: "s3cret",
       refreshToken: "s3cret", password: "s3cret", secret: "s3cret", privateJwk: { d: "s3cret" } };
     log.info({ ...secrets, subject: "alice" }, "first");
     log.info({ request: secrets }, "second");`,
  );
  expect(first).toMatchObject({ level: "info", subject: "alice", msg: "first", time: expect.stringMatching(/T.*Z$/) });
  expect(JSON.stringify([first, second])).not.toContain("s3cret");
});

test("what an attacker wrote is bounded and carries no control characters, wherever it stands", () => {
  const evil = `\\u009b2J\\u202e\\u2028${"x".repeat(14_000)}`;
  const [line] = logged(
    "info",
    `const evil = "${evil}";
     const nested = { a: { b: { c: { d: { e: evil } } } } };
     log.warn({ event: evil, value: evil, list: [evil], many: Array(1000).fill("y"), nested, err: new Error(evil, { cause: evil }) }, evil);`,
  );
  const text = JSON.stringify(line);
  expect(text.length).toBeLessThan(8_000);
  expect(text).not.toMatch(/[\x7f-\x9f\u2028\u202e]/);
  expect(line).toMatchObject({ value: expect.stringMatching(/^\ufffd2J\ufffd\ufffdx+… \(14005 characters\)$/) });
});

test("refusals of one reason do not use up the lines of another, nor the public API's those of admin tokens", () => {
  const lines = logged(
    "debug",
    `for (let n = 0; n < 50; n++) {
       log.debug({ event: "authn_failed", reason: "expired" }, "authn_failed");
       log.warn({ event: "authn_failed", reason: "forged" }, "authn_failed");
       log.warn({ event: "authn_failed", reason: "forged", admin: true }, "authn_failed");
     }
     await flush();`,
  );
  const count = (wanted: object) =>
    lines.filter((line) => Object.entries(wanted).every(([name, value]) => line[name] === value)).length;
  expect(count({ reason: "expired" })).toBeLessThanOrEqual(20);
  expect(count({ reason: "forged", admin: undefined })).toBeGreaterThanOrEqual(10);
  expect(count({ reason: "forged", admin: true })).toBeGreaterThanOrEqual(10);
  const suppressed = lines.reduce((sum, line) => sum + Number(line.suppressed ?? line.lines ?? 0), 0);
  expect(count({ event: "authn_failed" }) + suppressed).toBe(150);
  expect(lines.at(-1)).toMatchObject({ event: "log_lines_suppressed", level: "warn", lines: expect.any(Number) });
});

test("an error is logged with its type, text, code, stack and cause, and no other property", () => {
  const [line] = logged(
    "error",
    `const cause = Object.assign(new TypeError("inner"), { code: "E_INNER", command: { args: ["s3cret"] } });
     log.error({ err: new Error("outer", { cause }) }, "failed");
     log.info("too quiet to be heard");`,
  );
  expect(line).toMatchObject({
    err: { type: "Error", message: "outer", stack: expect.any(String), cause: { type: "TypeError", code: "E_INNER" } },
  });
  expect(JSON.stringify(line)).not.toContain("s3cret");
});

test("silent is silent", () => {
  expect(logged("silent", `log.fatal("nothing");`)).toEqual([]);
});

test("an audit collects the fields of a line only if the line is written, and counts it either way", () => {
  const audit = new URL("../../../src/service/observability/audit.ts", import.meta.url).href;
  const lines = logged(
    "info",
    `import { createAudit } from ${JSON.stringify(audit)};
     let lookedUp = 0;
     const audit = createAudit(log, { count() {} }, () => 0);
     for (let n = 0; n < 100; n++)
       audit({ event: "authn_failed", operation: "Refresh", reason: "forged" }, { address: () => String(++lookedUp), adminName: undefined });
     reportSuppressed();
     log.error({ event: "lookedUp", lookedUp });`,
  );
  const refused = lines.filter(({ event }) => event === "authn_failed");
  const { lines: suppressed } = lines.find(({ event }) => event === "log_lines_suppressed") ?? {};
  expect(refused.at(0)).toMatchObject({ reason: "forged", address: "1", msg: "authn_failed" });
  // If a new second begins in the meantime, it has a new budget of lines, and a line reports those suppressed in the second before.
  const reported = refused.reduce((sum, line) => sum + Number(line.suppressed ?? 0), Number(suppressed ?? 0));
  expect(refused.length + reported).toBe(100);
  expect(lines.at(-1)).toMatchObject({ lookedUp: refused.length });
  expect(refused.length).toBeLessThan(100);
});

test("an audit suppresses lines by their kind, also where kinds of one reason take turns", () => {
  const audit = new URL("../../../src/service/observability/audit.ts", import.meta.url).href;
  const lines = logged(
    "debug",
    `import { createAudit } from ${JSON.stringify(audit)};
     const audit = createAudit(log, { count() {} }, () => 0);
     const requester = { address: () => "", adminName: undefined };
     for (let n = 0; n < 50; n++) {
       for (const admin of [undefined, true]) audit({ event: "authn_failed", operation: "o", reason: "forged", admin }, requester);
       audit({ event: "authn_failed", operation: "o", reason: "expired" }, requester);
       for (const limit of ["failures", "refresh"]) audit({ event: "rate_limited", limit }, requester);
     }
     reportSuppressed();`,
  );
  const kinds = [
    ["warn authn_failed forged", { reason: "forged", admin: undefined }],
    ["warn authn_failed forged admin", { reason: "forged", admin: true }],
    ["debug authn_failed expired", { reason: "expired" }],
    ["warn rate_limited failures", { limit: "failures" }],
    ["warn rate_limited refresh", { limit: "refresh" }],
  ] as const;
  for (const [kind, fields] of kinds) {
    const own = lines.filter((line) => Object.entries(fields).every(([name, value]) => line[name] === value));
    const written = own.filter(({ event }) => event !== "log_lines_suppressed");
    const reported = lines.find((line) => line.kind === kind)?.lines;
    const suppressed = written.reduce((sum, line) => sum + Number(line.suppressed ?? 0), Number(reported ?? 0));
    expect([kind, written.length + suppressed]).toEqual([kind, 50]);
    expect(written.length).toBeLessThan(50);
  }
});
