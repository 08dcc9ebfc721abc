/** The supervisor with workers that are processes without a service. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { Logger } from "../../../src/service/observability/logger.ts";
import { supervise } from "../../../src/service/workers/supervise.ts";
import { inTime, until } from "../../support/until.ts";

type Line = Readonly<Record<string, unknown>>;

const start = (execPath = process.execPath) =>
  fork(`${import.meta.dirname}/worker.ts`, { execPath, execArgv: [], stdio: ["ignore", "ignore", "inherit", "ipc"] });

function startReady(): ChildProcess {
  const worker = start();
  worker.send({ type: "be_ready" });
  return worker;
}

/** Starts two workers. `next.start` is the function that starts further workers. */
async function startTwo() {
  const workers: ChildProcess[] = [];
  const lines: Line[] = [];
  const next = { start: startReady };
  const supervisor = await supervise(2, {
    log: { info: () => {}, error: (line: Line) => lines.push(line) } as unknown as Logger,
    out: () => {},
    env: {},
    serveCall: (call) => `served ${call}`,
    onStart: () => {},
    fork: () => {
      const worker = next.start();
      workers.push(worker);
      return worker;
    },
  });
  onTestFinished(() => supervisor.stop("now"));
  return { supervisor, workers, lines, next };
}

test("workers that cannot be started are reported, tried again, and waited for by nobody", async () => {
  const { supervisor, workers, lines, next } = await startTwo();
  next.start = () => start("/nowhere");
  workers[0]?.kill("SIGKILL");
  await until(async () => expect(lines).toHaveLength(2));
  next.start = () => {
    throw new Error("no memory");
  };
  await until(async () => expect(lines.at(-1)).toMatchObject({ err: { message: "no memory" } }));
  expect(lines.slice(0, 2)).toMatchObject([
    { signal: "SIGKILL", replacedInMs: 100 },
    { err: { code: "ENOENT" }, replacedInMs: 200 },
  ]);
  const failures = lines.length;
  next.start = startReady;
  await until(async () => expect(workers.at(-1)?.pid).toBeDefined());
  expect(lines).toHaveLength(failures);
  next.start = () => start("/nowhere");
  workers[1]?.kill("SIGKILL");
  await until(async () => expect(lines.at(-1)).toMatchObject({ err: { code: "ENOENT" } }));
  await supervisor.stop("drain");
});

test("metrics are those of the workers that are ready", async () => {
  const { workers, next } = await startTwo();
  const [victim, asking] = workers;
  next.start = () => start();
  victim?.kill("SIGKILL");
  await until(async () => expect(workers).toHaveLength(3));
  asking?.send({ type: "ask" });
  if (asking !== undefined) await once(asking, "exit");
  expect(workers[2]?.exitCode).toBe(null);
});

test("a report that arrives after the end of its worker adds nothing to the metrics", async () => {
  const { workers } = await startTwo();
  const [victim, asking] = workers;
  victim?.kill("SIGKILL");
  await until(async () => expect(workers).toHaveLength(3));
  victim?.emit("message", { type: "metrics", id: 1, values: [] });
  const exited = asking && once(asking, "exit");
  asking?.send({ type: "ask" });
  // The exit code of the worker is the number of reports that it received. There are two: the sum for all ended workers, and its own. There
  // is a third if the new worker is already ready.
  const [code] = (await exited) ?? [];
  expect([2, 3]).toContain(code);
});

test("a worker is the command of the supervisor again, with its arguments", async () => {
  const { argv } = process;
  process.argv = [process.execPath, `${import.meta.dirname}/arguments-worker.ts`, "serve", "--quiet"];
  onTestFinished(() => {
    process.argv = argv;
  });
  const texts: string[] = [];
  const supervisor = await supervise(1, {
    log: { info: () => {}, error: () => {} } as unknown as Logger,
    out: (text) => texts.push(text),
    env: {},
    serveCall: () => undefined,
    onStart: () => {},
  });
  onTestFinished(() => supervisor.stop("now"));
  expect(texts.map((text) => JSON.parse(text).args)).toEqual([["serve", "--quiet"]]);
});

const quiet = { info: () => {}, error: () => {} } as unknown as Logger;

test("a first worker that ends before it is ready fails the start, and no other one is started", async () => {
  let started = 0;
  const failed = supervise(3, {
    log: quiet,
    out: () => expect.unreachable("nothing is ready"),
    env: {},
    serveCall: () => undefined,
    onStart: () => {},
    fork: () => {
      started += 1;
      const worker = start();
      // A worker that is not ready exits when it is asked for metrics.
      worker.send({ type: "metrics_wanted", id: 1 });
      return worker;
    },
  });
  await expect(inTime("the failure of the start", failed)).rejects.toThrow(
    "a worker ended before it was ready (exit code 3)",
  );
  expect(started).toBe(1);
});

test("a worker that ends while the others start is replaced once all are ready", async () => {
  const workers: ChildProcess[] = [];
  const supervisor = await supervise(2, {
    log: quiet,
    out: () => {},
    env: {},
    serveCall: () => undefined,
    onStart: () => {},
    fork: () => {
      const worker = workers.length === 1 ? start() : startReady();
      workers.push(worker);
      if (workers.length !== 2) return worker;
      workers[0]?.once("exit", () => worker.send({ type: "be_ready" }));
      workers[0]?.kill("SIGKILL");
      return worker;
    },
  });
  onTestFinished(() => supervisor.stop("now"));
  expect(workers).toHaveLength(3);
});

test("the pause before a replacement doubles with each short run, and starts again after a long one", async () => {
  const { workers, lines } = await startTwo();
  const startedMs = performance.now();
  const killNewest = async (ranMs: number) => {
    const before = lines.length;
    const newest = workers.at(-1);
    await until(() => expect(newest?.connected).toBe(true));
    const spy = vi.spyOn(performance, "now").mockReturnValue(startedMs + ranMs);
    newest?.kill("SIGKILL");
    try {
      await until(() => expect(lines.length).toBeGreaterThan(before));
    } finally {
      spy.mockRestore();
    }
    const count = workers.length;
    await until(() => expect(workers.length).toBeGreaterThan(count));
    return lines.at(-1)?.replacedInMs;
  };
  expect(await killNewest(500)).toBe(100);
  expect(await killNewest(1_000)).toBe(200);
  expect(await killNewest(3_600_000)).toBe(100);
});

describe("a worker that sends no heartbeat", () => {
  const LOOKS = 30;

  /** Lets the supervisor look for heartbeats `times` times. Before each look all workers of `beating` have sent one. */
  async function look(times: number, beating: readonly (ChildProcess | undefined)[]): Promise<void> {
    for (let at = 0; at < times; at++) {
      const beats = beating.map((worker) => worker && once(worker, "message"));
      for (const worker of beating) worker?.send({ type: "beat" });
      await inTime("the heartbeats", Promise.all(beats));
      vi.advanceTimersByTime(1_000);
      await new Promise(setImmediate);
    }
  }

  async function startWatched() {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    onTestFinished(() => void vi.useRealTimers());
    return startTwo();
  }

  test("is killed and replaced after 30 looks; one that is late is not", async () => {
    const { workers, lines } = await startWatched();
    const [stalled, late] = workers;
    stalled?.kill("SIGSTOP");
    await look(LOOKS - 1, []);
    expect(lines).toEqual([]);
    await look(LOOKS, [late]);
    await until(() => expect(lines).toHaveLength(2));
    expect(lines).toMatchObject([
      { event: "worker_stalled", worker: stalled?.pid, silentMs: 30_000 },
      { event: "worker_ended", worker: stalled?.pid, signal: "SIGKILL", replacedInMs: 100 },
    ]);
    await until(() => expect(workers).toHaveLength(3));
    expect(late?.connected).toBe(true);
  });

  test("and has never sent any has four times as long to load its code", async () => {
    const { workers, lines, next } = await startWatched();
    next.start = start;
    workers[0]?.kill("SIGKILL");
    await until(() => expect(workers).toHaveLength(3));
    await look(4 * LOOKS - 1, [workers[1]]);
    expect(lines).toMatchObject([{ event: "worker_ended", worker: workers[0]?.pid }]);
    await look(1, [workers[1]]);
    expect(lines.at(-1)).toMatchObject({ event: "worker_stalled", worker: workers[2]?.pid, silentMs: 120_000 });
  });

  test("is killed when it is to stop, too: nobody waits for it indefinitely", async () => {
    const { supervisor, workers, lines } = await startWatched();
    const [stalled, other] = workers;
    stalled?.kill("SIGSTOP");
    const ended = once(other as ChildProcess, "exit");
    const stopped = supervisor.stop("drain");
    await inTime("the end of the other worker", ended);
    await look(LOOKS, []);
    await inTime("the end of all workers", stopped);
    expect(lines).toMatchObject([{ event: "worker_stalled", worker: stalled?.pid }]);
  });
});
