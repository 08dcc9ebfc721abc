import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { onTestFinished } from "vitest";
import {
  SessionAdminService,
  type WatchRevocationsResponseSchema,
} from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { AUDIENCE, createForge, ISSUER } from "../../vectors/format.ts";
import { createSign, JWKS, type VectorKey } from "../../vectors/keys.ts";

type Batch = MessageInitShape<typeof WatchRevocationsResponseSchema>;

/** Starts a simulated admin API over HTTP/1.1. Tests decide which batches it sends. Its keys are those of the vectors. */
export async function startScriptedAdmin() {
  const batches: Batch[] = [{ cursor: "1", caughtUp: true }];
  const introspected: string[] = [];
  let introspect = async (_token: string): Promise<boolean> => true;
  let next = Promise.withResolvers<void>();
  const handler = connectNodeAdapter({
    routes: ({ service }) =>
      service(SessionAdminService, {
        async *watchRevocations(_, { signal }) {
          const aborted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
          let position = 0;
          while (!signal.aborted) {
            const batch = batches[position];
            if (batch === undefined) {
              await Promise.race([next.promise, aborted]);
              continue;
            }
            position += 1;
            yield batch;
          }
        },
        async introspectToken({ token }) {
          introspected.push(token);
          return { active: await introspect(token) };
        },
      }),
  });
  const server = createServer((request, response) => {
    if (request.url === "/.well-known/jwks.json") response.end(JSON.stringify(JWKS));
    else handler(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { token } = createForge(createSign([]));
  return {
    adminUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    issuer: ISSUER,
    audience: AUDIENCE,
    adminToken: "any",
    /** The introspected tokens, in order. */
    introspected,
    /** Replaces the function that decides whether a token is active. */
    onIntrospect(find: typeof introspect): void {
      introspect = find;
    },
    /** Sends a batch to all watchers. */
    send(batch: Batch): void {
      batches.push({ cursor: String(batches.length), ...batch });
      next.resolve();
      next = Promise.withResolvers();
    },
    /** Issues a token that is valid now. */
    issue(key: VectorKey, jti: string): string {
      const now = Math.floor(Date.now() / 1000);
      return token({ alg: key.alg, kid: key.kid }, { iat: now, exp: now + 600, jti, sct: now * 1000 }, key);
    },
  };
}
