import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { freePort } from "./free-port.ts";

/** Prints ports, and runs until its input ends. */
const DRAW = `
  import { freePort } from ${JSON.stringify(import.meta.resolve("./free-port.ts"))};
  for (let i = 0; i < 300; i++) console.log(await freePort());
  console.log("end");
  process.stdin.resume();
`;

/** Returns the ports that a process of its own is given, which runs until the end of the test. */
async function drawn(): Promise<string[]> {
  const child = spawn(process.execPath, ["--input-type=module", "--eval", DRAW], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  onTestFinished(() => void child.stdin.end());
  let output = "";
  for await (const chunk of child.stdout.setEncoding("utf8")) {
    output += chunk;
    if (output.endsWith("end\n")) break;
  }
  return output.split("\n").slice(0, -2);
}

test("no port is given to two processes, nor twice to one", async () => {
  const ports = (await Promise.all([drawn(), drawn()])).flat();
  expect(ports).toHaveLength(600);
  expect(new Set(ports).size).toBe(600);
});

test("a server of any address can listen at a port that was given", async () => {
  for (const host of ["127.0.0.1", "0.0.0.0", undefined]) {
    const server = createServer().listen(await freePort(), host);
    await once(server, "listening");
    server.close();
  }
});
