/** The log goes to standard error whatever happens: it is looked at from outside. */
import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";

/** What a process logs that runs `code` with a logger named `log`. */
function logged(level: string, code: string): Record<string, unknown>[] {
  const logger = new URL("../../src/observability/logger.ts", import.meta.url).href;
  const script = `import { createLogger } from ${JSON.stringify(logger)};\nconst log = await createLogger("${level}");\n${code}`;
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

test("an error is told with its type, text, code, stack and cause, and nothing else that hangs on it", () => {
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
