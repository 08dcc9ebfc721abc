import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { Session } from "node:inspector/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { start } from "../../../src/service/composition/start.ts";
import { readConfig } from "../../../src/service/config/config.ts";
import { createLogger } from "../../../src/service/observability/logger.ts";
import { generateRing } from "../../../src/service/tokens/generate-key.ts";
import { createRingFile } from "../../../src/service/tokens/ring-file.ts";
import { startRedis } from "../../support/redis.ts";

export type Store = "redis" | "embedded";

/** A function on the way of a refresh, and its calls per refresh. */
export type Step = { readonly file: string; readonly line: number; readonly name: string; readonly calls: number };

const ROOT = join(import.meta.dirname, "../../..");
const SOURCES = pathToFileURL(`${ROOT}/src/`).href;
const ADMIN_TOKEN = "way-of-a-refresh-way-of-a-refresh";
const WARM_UP = 100;
/** How many refreshes are measured, each alone. */
const MEASURED = 40;

/** Measures refreshes one by one. A function is on the way if it runs for each of them, and not as often for a timer. */
export async function walk(store: Store): Promise<readonly Step[]> {
  const redis = store === "redis" ? await startRedis() : undefined;
  const [dataDir, keysDir] = [mkdtempSync(join(tmpdir(), "way-")), mkdtempSync(join(tmpdir(), "way-"))] as const;
  const env = {
    ...{ PORT: "0", ADMIN_PORT: "0", DATA_DIR: dataDir, KEYS_FILE: join(keysDir, "keys.json") },
    ...{ ADMIN_TOKENS: ADMIN_TOKEN, ISSUER: "http://127.0.0.1:8080" },
    // The limiter counts every refresh, but refuses none.
    ...{ RATE_LIMIT_REFRESH: "1000000/1s", LOG_LEVEL: "error" },
    ...(redis && { REDIS_URL: redis.url }),
  };
  const config = readConfig(env);
  // A service on Redis does not create its key ring.
  await createRingFile(config.keysFile, generateRing("ES256", Date.now()));
  const service = await start(config, { log: createLogger(config.logLevel).log, out() {} });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    const refresh = await logIn(agent, service);
    for (let i = 0; i < WARM_UP; i++) await refresh();
    return await measure(refresh);
  } finally {
    agent.destroy();
    await service.stop("now");
    await redis?.stop();
    for (const directory of [dataDir, keysDir]) rmSync(directory, { recursive: true, force: true });
  }
}

function post(agent: Agent, url: string, headers: Readonly<Record<string, string>>, body: object): Promise<string> {
  return new Promise((resolve, reject) => {
    const content = JSON.stringify(body);
    const all = { "content-type": "application/json", "content-length": content.length, ...headers };
    const outgoing = request(url, { agent, method: "POST", headers: all }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () => {
        if (response.statusCode === 200) resolve(text);
        else reject(new Error(`${url}: ${response.statusCode} ${text}`));
      });
    });
    outgoing.on("error", reject).end(content);
  });
}

type Urls = { readonly publicUrl: string; readonly adminUrl: string };

/**
 * Returns a function that refreshes a session as a page in a browser does. Each refresh has a session of its own, because within the reuse
 * interval a session's token is rotated once.
 */
async function logIn(agent: Agent, { publicUrl, adminUrl }: Urls): Promise<() => Promise<void>> {
  const create = `${adminUrl}/auth.admin.v1.SessionAdminService/CreateSession`;
  const credential = { authorization: `Bearer ${ADMIN_TOKEN}` };
  const tokens: string[] = [];
  for (let i = 0; i < WARM_UP + MEASURED; i++) {
    const created = await post(agent, create, credential, { subject: `user-${i}`, clientId: "way" });
    tokens.push((JSON.parse(created) as { readonly refreshToken: string }).refreshToken);
  }
  return async () => {
    const headers = { origin: publicUrl, "sec-fetch-site": "same-origin", cookie: `refresh_token=${tokens.pop()}` };
    await post(agent, `${publicUrl}/v1/auth/refresh`, headers, {});
  };
}

/** The calls of each function, in each sample. The key is the function's place. */
type Counts = Map<string, number[]>;

async function measure(refresh: () => Promise<void>): Promise<readonly Step[]> {
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  const sample = async (counts: Counts, run: () => Promise<unknown>) => {
    await session.post("Profiler.takePreciseCoverage");
    await run();
    const { result } = await session.post("Profiler.takePreciseCoverage");
    for (const { url, functions } of result.filter((script) => script.url.startsWith(SOURCES))) {
      for (const { functionName, ranges } of functions) {
        const [range] = ranges;
        if (range === undefined || range.count === 0) continue;
        const key = JSON.stringify([range.startOffset, functionName, url]);
        counts.set(key, [...(counts.get(key) ?? []), range.count]);
      }
    }
  };
  const [busy, idle]: readonly [Counts, Counts] = [new Map(), new Map()];
  for (let i = 0; i < MEASURED; i++) {
    let lastedMs = 0;
    await sample(busy, async () => {
      const began = performance.now();
      await refresh();
      lastedMs = performance.now() - began;
    });
    await sample(idle, () => sleep(lastedMs));
  }
  session.disconnect();
  // On a slow machine a timer runs during every refresh. What it calls, it calls as often while nothing is refreshed.
  const own = (key: string) => median(busy.get(key)) > median(idle.get(key));
  const steps = [...busy].filter(([key, calls]) => calls.length === MEASURED && own(key));
  const described = steps.map(([key, calls]) => stepOf(key, calls));
  return described.sort((a, b) => (a.file === b.file ? a.line - b.line : a.file < b.file ? -1 : 1));
}

/** Returns the number of calls in half of the samples or more. In a sample that is left out there was none. */
function median(calls: readonly number[] = []): number {
  return calls.toSorted((a, b) => b - a)[MEASURED / 2] ?? 0;
}

const total = (calls: readonly number[] = []) => calls.reduce((sum, count) => sum + count, 0);

function stepOf(key: string, calls: readonly number[]): Step {
  const [offset, functionName, url] = JSON.parse(key) as readonly [number, string, string];
  const path = fileURLToPath(url);
  const line = readFileSync(path, "utf8").slice(0, offset).split("\n").length;
  const name = functionName || `line ${line}`;
  return { file: path.slice(ROOT.length + 1), line, name, calls: total(calls) / MEASURED };
}
