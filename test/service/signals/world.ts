/** A signal, and a receiver on loopback that records the requests that it gets. */
import { createServer, type IncomingHttpHeaders } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { wallMs } from "../../../src/service/session/time.ts";
import type { SentSignal } from "../../../src/service/signals/kinds/context.ts";
import { signalId } from "../../../src/service/signals/model.ts";
import { createClaimsSigner } from "../../../src/service/tokens/signed-claims.ts";
import { ISSUER, NOW, SID, someKeys } from "../../support/tokens.ts";

export function someSignal(changes: Partial<SentSignal> = {}): SentSignal {
  const ending = { sessionId: SID, reason: "logout", happenedAt: NOW } as const;
  return { id: signalId(ending), ...ending, subject: "user-1", clientId: "app", ...changes, happenedAt: wallMs(NOW) };
}

export function someContext(secret = "", now = wallMs(Date.now())) {
  const keys = someKeys();
  return {
    jwks: { keys: [...keys.current.jwks.keys] },
    context: { issuer: ISSUER, now, secret, signClaims: createClaimsSigner(keys) },
  };
}

/** Loads packages from test/dependencies/receivers, which has the dependencies of receivers that only tests use. */
export const requireReceiver = createRequire(new URL("../../dependencies/receivers/package.json", import.meta.url));

export type Received = { readonly headers: IncomingHttpHeaders; readonly body: string };

/** Starts a receiver that responds with the status that `respond` returns; 200 by default. */
export async function startReceiver(respond: (received: Received, count: number) => number = () => 200) {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      const one = { headers: request.headers, body };
      const status = respond(one, received.push(one));
      response.writeHead(status, status === 302 ? { location: "/elsewhere" } : {}).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/`,
    received,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
