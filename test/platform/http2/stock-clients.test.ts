/**
 * gRPC clients as others run them, with their defaults: none is taken for an attacker. Their flow control, their keepalive and their
 * settings send control frames that no code of a caller asks for. `npm run test:clients` has the rates and durations of a busy caller, and
 * grpc-java, which needs Java 17 and Maven: `CLIENTS=long sh test/setup.sh` installs them.
 */
import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Service, scratch, startService } from "../../support/service.ts";
import { PYTHON_PROGRAM, run, runWith } from "../../support/verifier/languages.ts";

const LONG = process.env.CLIENTS === "long";
/** Each rate in calls per second, and its duration in seconds. From 300 calls a second on, grpc-go sends more PINGs than once were allowed. */
const LOADS: readonly (readonly [rate: number, seconds: number])[] = LONG
  ? [
      [1_000, 60],
      [5_000, 60],
      [20_000, 60],
    ]
  : [[2_000, 3]];
const METHOD = "/grpc.health.v1.Health/Check";
const FOLDER = join(import.meta.dirname, "stock-clients");

let service: Service;
let goProgram: string;
let javaLibraries: string;
beforeAll(async () => {
  service = await startService();
  // Debian installs the sources of gRPC in a GOPATH, the layout from before Go modules.
  const path = scratch();
  const folder = join(path, "src/client");
  mkdirSync(folder, { recursive: true });
  copyFileSync(join(FOLDER, "client.go"), join(folder, "main.go"));
  goProgram = join(path, "client");
  const env = { GO111MODULE: "off", GOFLAGS: "", GOPATH: `${path}:/usr/share/gocode` };
  await runWith(env, folder, "go", "build", "-o", goProgram, ".");
  javaLibraries = join(path, "java");
  const copy = ["-q", "-B", "dependency:copy-dependencies", `-DoutputDirectory=${javaLibraries}`];
  if (LONG) await run(join(FOLDER, "java"), "mvn", ...copy);
});
afterAll(() => service.stop());

test.each(LOADS)("%i calls per second for %i s on one connection: none fails", async (rate, seconds) => {
  const target = new URL(service.adminUrl).host;
  const args = [target, METHOD, String(rate), String(seconds)];
  const clients = {
    "grpc-go": () => run(FOLDER, goProgram, ...args),
    grpcio: () => run(FOLDER, PYTHON_PROGRAM, "client.py", ...args),
    "grpc-js": () => run(FOLDER, process.execPath, "client.mjs", ...args),
    ...(LONG && { "grpc-java": () => run(FOLDER, "java", "-cp", `${javaLibraries}/*`, "java/Client.java", ...args) }),
  };
  for (const [name, client] of Object.entries(clients)) {
    const printed: unknown = JSON.parse(await client());
    expect([name, printed]).toEqual([name, { succeeded: rate * seconds, failed: 0, first: "" }]);
  }
});
