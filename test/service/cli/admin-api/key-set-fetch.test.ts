import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createSecureContext, createServer } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { createKeySetFetch } from "../../../../src/service/cli/admin-api/key-set-fetch.ts";
import { selfSigned } from "../../../support/certificate.ts";

test.each([
  ["another protocol", "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", "101"],
  ["an error", "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", "503"],
])("%s in place of the key set is an error", async (_, response, status) => {
  const pem = selfSigned();
  const server = createServer(pem, (socket) => {
    socket.on("error", () => {}).once("data", () => socket.write(response));
  });
  onTestFinished(() => void server.close());
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const fetchKeys = createKeySetFetch({ secureContext: createSecureContext({ ca: pem.cert }) });
  await expect(fetchKeys(`https://127.0.0.1:${port}/`)).rejects.toThrow(`the key set responds ${status}`);
});
