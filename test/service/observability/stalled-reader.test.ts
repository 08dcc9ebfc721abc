/** The process and its log while nobody reads the log: the process runs as in production, and the reader of its pipe stalls or exits. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, expect, test } from "vitest";
import { freePort } from "../../support/free-port.ts";
import { compiled, PROGRAM } from "../../support/program.ts";
import { request } from "../../support/raw-http.ts";
import { scratch } from "../../support/service.ts";
import { logIn } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

const ROOT = join(import.meta.dirname, "../../..");
const children = new Set<ChildProcess>();
afterEach(() => {
  for (const child of children) child.kill("SIGKILL");
  children.clear();
});

function run(args: readonly string[], env: Record<string, string> = {}): ChildProcess {
  const stdio = ["pipe", "pipe", "pipe"] as const;
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    env: { PATH: process.env.PATH, ...compiled(), ...env },
    stdio: [...stdio],
  });
  children.add(child);
  return child;
}

/** Returns a service whose standard error nobody reads. */
async function unreadService() {
  const dataDir = join(scratch(), "data");
  const child = run([PROGRAM], { PORT: "0", ADMIN_PORT: "0", DATA_DIR: dataDir });
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  const [line] = (await once(lines, "line")) as [string];
  const { public: publicUrl, admin: adminUrl } = JSON.parse(line) as { public: string; admin: string };
  const adminToken = readFileSync(join(dataDir, "admin-token"), "utf8").trim();
  return { child, publicUrl, adminUrl, adminToken };
}

/** Causes more log lines than a pipe can hold. */
async function fillPipe(service: { adminUrl: string; adminToken: string }) {
  for (let at = 0; at < 400; at++) await logIn(service, { subject: `${"s".repeat(240)}${at}` });
}

const FLOOD = `
import { createLogger } from "./src/service/observability/logger.ts";
const { log, counts, flush } = await createLogger("info");
const subject = "s".repeat(500);
let sent = 0;
process.stdin.on("data", (order) => {
  if (String(order).startsWith("end")) return void flush().then(() => process.exit(0));
  for (let line = 0; line < 40_000; line++) log.info({ event: "session_created", subject, n: sent++ }, "session_created");
  process.stdout.write(JSON.stringify({ sent, lost: counts.lost(), rss: process.memoryUsage.rss() }) + "\\n");
});
process.stdout.write("{}\\n");
`;

test("a reader that stalls costs lines, counted, and never memory", async () => {
  const child = run(["--input-type=module", "-e", FLOOD]);
  const responses = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
  const next = async () =>
    JSON.parse((await responses.next()).value ?? "") as { sent: number; lost: number; rss: number };
  await next();
  child.stdin?.write("flood\n");
  const first = await next();
  for (let time = 0; time < 3; time++) {
    child.stdin?.write("flood\n");
    await next();
  }
  child.stdin?.write("flood\n");
  const last = await next();
  expect(last.lost).toBeGreaterThan(190_000);
  // All log lines together have 100 MB, which the process must not keep. It may keep a buffer of 1 MB, and memory that is not yet
  // garbage-collected.
  expect(last.rss - first.rss).toBeLessThan(60e6);

  let text = "";
  child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  child.stdin?.write("end\n");
  await once(child, "close");
  const lines = text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const reported = lines
    .filter(({ event }) => event === "log_lines_lost")
    .reduce((sum, { lines: lost }) => sum + Number(lost), 0);
  const written = lines.filter(({ event }) => event === "session_created").length;
  expect([written + reported, reported]).toEqual([200_000, last.lost]);
});

test("the service serves and stops while the reader of its log stalls", async () => {
  const service = await unreadService();
  await fillPipe(service);
  expect((await request(service.publicUrl, { path: "/healthz" })).status).toBe(200);
  service.child.kill("SIGTERM");
  expect(await once(service.child, "exit")).toEqual([0, null]);
});

test("the service serves and stops when the readers of its output have left", async () => {
  const service = await unreadService();
  service.child.stdout?.destroy();
  service.child.stderr?.destroy();
  await fillPipe(service);
  const { body } = await request(service.adminUrl, { path: "/metrics" });
  expect(Number(/^session_log_lines_lost_total (\d+)$/m.exec(body)?.[1])).toBeGreaterThan(390);
  service.child.kill("SIGTERM");
  expect(await once(service.child, "exit")).toEqual([0, null]);
});

test("a start whose output nobody reads is a start", async () => {
  const [dataDir, port, adminPort] = [join(scratch(), "data"), await freePort(), await freePort()];
  const child = run([PROGRAM], { PORT: `${port}`, ADMIN_PORT: `${adminPort}`, DATA_DIR: dataDir });
  child.stdout?.destroy();
  child.stderr?.destroy();
  const adminUrl = `http://127.0.0.1:${adminPort}`;
  await until(async () => {
    if ((await request(adminUrl, { path: "/readyz" })).status !== 200) throw new Error("not ready");
  });
  await logIn({ adminUrl, adminToken: readFileSync(join(dataDir, "admin-token"), "utf8").trim() });
  child.kill("SIGTERM");
  expect(await once(child, "exit")).toEqual([0, null]);
});

test("an exception that nobody catches is a line of the log, and ends the process with code 1", async () => {
  const child = run([PROGRAM], {
    PORT: "0",
    ADMIN_PORT: "0",
    DATA_DIR: join(scratch(), "data"),
    NODE_OPTIONS: `--import="data:text/javascript,process.on('SIGUSR2',()=>{throw(new(Error)('unforeseen'))})"`,
  });
  let text = "";
  child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  await once(createInterface({ input: child.stdout as NodeJS.ReadableStream }), "line");
  child.kill("SIGUSR2");
  expect(await once(child, "close")).toEqual([1, null]);
  const [line] = text
    .trimEnd()
    .split("\n")
    .map((one) => JSON.parse(one) as unknown);
  expect(line).toMatchObject({ level: "fatal", event: "uncaught_exception", err: { message: "unforeseen" } });
});
