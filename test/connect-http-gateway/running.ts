/** The command connect-http-gateway as a process. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, onTestFinished } from "vitest";
import { type GrpcServer, startGrpcServer } from "../connect-http-routes/support/grpc-server.ts";
import { scratch } from "../support/service.ts";

export type Line = Readonly<Record<string, unknown>>;

/** A running gateway: its log, and requests to it. */
export interface Running {
  readonly process: ChildProcess;
  readonly origin: string;
  readonly log: readonly Line[];
  /** Returns the first line of the log that matches, and waits for it if there is none yet. */
  line(matches: (line: Line) => boolean): Promise<Line>;
}

export const MAIN = "src/connect-http-gateway/main.ts";

/** Starts a gRPC server with reflection for the tests of a file. Returns it with the arguments of a gateway in front of it. */
export function startRelay() {
  const directory = scratch();
  const set = join(directory, "set.binpb");
  let server: GrpcServer;
  beforeAll(async () => {
    execFileSync("node_modules/.bin/buf", [
      "build",
      "test/connect-http-routes/proto",
      "--path",
      "test/connect-http-routes/proto/relay",
      "-o",
      set,
    ]);
    server = await startGrpcServer(0, readFileSync(set));
  });
  afterAll(() => server[Symbol.asyncDispose]());
  return {
    directory,
    /** A file with the descriptors of the server. */
    set,
    lastMetadata: () => server.lastMetadata(),
    setHealth: (isServing: boolean) => server.setHealth(isServing),
    upstream: () => ["--upstream", `http://127.0.0.1:${server.port}`],
  };
}

export const runGateway = (...args: string[]) => runGatewayWith({}, ...args);

/** Starts the gateway. @param env variables of its environment, in addition to those of the tests */
export async function runGatewayWith(env: Readonly<Record<string, string>>, ...args: string[]): Promise<Running> {
  const child = spawn(process.execPath, [MAIN, "--listen", "127.0.0.1:0", ...args], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  const log: Line[] = [];
  let wake = () => {};
  createInterface({ input: child.stdout as NodeJS.ReadableStream }).on("line", (text) => {
    log.push(JSON.parse(text) as Line);
    wake();
  });
  const line = async (matches: (line: Line) => boolean): Promise<Line> => {
    for (;;) {
      const found = log.find(matches);
      if (found !== undefined) return found;
      await new Promise<void>((resolve, reject) => {
        wake = resolve;
        void exited.then(() => reject(new Error("the gateway has ended")));
      });
    }
  };
  const { port } = await line(({ event }) => event === "listening");
  return { process: child, origin: `http://127.0.0.1:${port}`, log, line };
}
