/** SIGUSR1 makes Node open its inspector, whose port runs any code. The commands that keep running ignore it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import { runGatewayWith, startRelay } from "../../connect-http-gateway/running.ts";
import { freePort } from "../../support/free-port.ts";
import { startService } from "../../support/service.ts";

const { upstream } = startRelay();

/** Resolves when another process of Node, which was sent the signal later, has opened its inspector. */
async function otherHasOpened(): Promise<void> {
  const script = "setInterval(() => {}, 1000); process.stdout.write('up')";
  const child = spawn(process.execPath, ["--inspect-port=0", "--eval", script], { stdio: ["ignore", "pipe", "pipe"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout, "data");
  child.kill("SIGUSR1");
  const [text] = (await once(child.stderr, "data")) as [Buffer];
  expect(text.toString()).toContain("Debugger listening");
}

const inspector = (port: number) => fetch(`http://127.0.0.1:${port}/json/version`).then(({ status }) => status);

test("the service and the gateway open no inspector", async () => {
  const ports = [await freePort(), await freePort()] as const;
  const service = await startService({ NODE_OPTIONS: `--inspect-port=${ports[0]}` });
  onTestFinished(() => service.kill("SIGKILL"));
  const gateway = await runGatewayWith({ NODE_OPTIONS: `--inspect-port=${ports[1]}` }, ...upstream(), "--reflection");
  service.kill("SIGUSR1");
  gateway.process.kill("SIGUSR1");
  await otherHasOpened();
  expect((await fetch(`${service.publicUrl}/healthz`)).status).toBe(200);
  expect((await fetch(`${gateway.origin}/healthz`)).status).toBe(200);
  for (const port of ports) await expect(inspector(port)).rejects.toThrow();
});
