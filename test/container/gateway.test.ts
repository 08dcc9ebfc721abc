/** The container image of the HTTP gateway, in the long form alone: making and compressing it takes half a minute. */
import { spawn } from "node:child_process";
import { createGzip } from "node:zlib";
import { describe, expect, test } from "vitest";
import { startRelay } from "../connect-http-gateway/running.ts";
import { freePort } from "../support/free-port.ts";
import { until } from "../support/until.ts";
import { makeGatewayImage } from "./image.ts";
import { makeVolume, runContainer } from "./run.ts";

/** The largest size of the image as a registry has it, in MB. */
const MAX_COMPRESSED_MB = 60;

async function compressedMb(root: string): Promise<number> {
  const tar = spawn("tar", ["-C", root, "-cf", "-", "."]);
  let bytes = 0;
  for await (const chunk of tar.stdout.pipe(createGzip())) bytes += (chunk as Buffer).byteLength;
  return bytes / 1e6;
}

describe("the image of the gateway", () => {
  const { upstream } = startRelay();

  test("is small, and serves as an unprivileged user on a read-only root", async () => {
    const image = await makeGatewayImage();
    const sizeMb = await compressedMb(image.root);
    console.log(`image of the gateway, compressed: ${sizeMb.toFixed(1)} MB`);
    expect(sizeMb).toBeLessThan(MAX_COMPRESSED_MB);

    const listen = `127.0.0.1:${await freePort()}`;
    const args = [...upstream(), "--reflection", "--listen", listen];
    const container = await runContainer(image, await makeVolume(image), {}, args);
    await until(async () => expect((await fetch(`http://${listen}/readyz`)).status).toBe(200));
    expect(await (await fetch(`http://${listen}/v1/items/a`)).json()).toEqual({ name: "a" });
    process.kill(container.pid, "SIGTERM");
    expect((await container.exited).code).toBe(0);
  });
});
