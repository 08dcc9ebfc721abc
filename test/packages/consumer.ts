/** A project that uses every published package. compilers.test.ts compiles it in all forms of projects, and runs it. */
import { packageNames, readManifest } from "../../deploy/packages/build.ts";
import { SHELF } from "./install.ts";

/** Imports every entry point whole, so that compilers check all declarations. */
const ENTRIES = packageNames()
  .flatMap((folder) => {
    const { name, exports = {} } = readManifest(folder);
    return Object.keys(exports).map((path) => `${name}${path.slice(1)}`);
  })
  .map(
    (entry, index) => `import * as entry${index} from "${entry}";\nexport type Entry${index} = typeof entry${index};\n`,
  )
  .join("");

const SERVER = `import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { trace } from "@opentelemetry/api";
import { Code, ConnectError, type ConnectRouter, createClient, type Interceptor } from "@connectrpc/connect";
import { connectNodeAdapter, createConnectTransport } from "@connectrpc/connect-node";
import { addHealth, Health } from "connect-grpc-health";
import { addReflection } from "connect-grpc-reflection";
import { createHttpHandler } from "connect-http-routes";
import { createRestClient } from "connect-http-routes/client";
import { tracingServerInterceptor } from "connect-opentelemetry";
import { ShelfRoutes } from "./gen/shelf_http.js";
import { Shelf } from "./gen/shelf_pb.js";

const routes = (router: ConnectRouter): void => {
  addReflection(addHealth(router, new Health({ services: [Shelf.typeName] })));
  router.service(Shelf, {
    getBook({ name, page }) {
      if (page === 404) throw new ConnectError("no such page", Code.NotFound);
      return { name, page };
    },
  });
};
const interceptors: Interceptor[] = [tracingServerInterceptor({ tracerProvider: trace })];
const rpc = connectNodeAdapter({ routes, interceptors });
const server = createServer(createHttpHandler({ routes, interceptors, tables: [ShelfRoutes], fallback: rpc }));
// @ts-expect-error The declarations are strict.
export const wrong = () => createHttpHandler({ routes, tables: [], readMaxBytes: "many" });

async function main(): Promise<void> {
  const { port } = server.address() as AddressInfo;
  const baseUrl = \`http://127.0.0.1:\${port}\`;
  const rest = createRestClient(ShelfRoutes, { baseUrl });
  const client = createClient(Shelf, createConnectTransport({ httpVersion: "1.1", baseUrl }));
  const code = await rest.getBook({ name: "books/b", page: 404 }).catch((error: unknown) => ConnectError.from(error).code);
  const { name, page } = await rest.getBook({ name: "books/b", page: 7 });
  console.log(code === Code.NotFound, name, page, (await client.getBook({ name, page: 8 })).page);
  server.close();
  server.closeAllConnections();
}
server.listen(0, "127.0.0.1", () => void main());
`;

const KITS = `import type { Interceptor } from "@connectrpc/connect";
import { createSession, SessionError, type Snapshot } from "@session-service/browser";
import { withDeviceKey } from "@session-service/browser/device";
import { useSession } from "@session-service/browser/react";
import { createFileStore, createTokenSession, generateProofKey, type ProofKey, proofKeyThumbprint } from "@session-service/client";
import { createServerSessions, type ServerSessions } from "@session-service/server";
import { sessionMiddleware } from "@session-service/server/express";
import { sessionHook } from "@session-service/server/fastify";
import { createVerifier, type Verifier } from "@session-service/verifier";

const session = createSession({ baseUrl: "https://app.example" }, withDeviceKey());
export const interceptors: Interceptor[] = [
  session.interceptor,
  createTokenSession({ service: "https://app.example", clientId: "cli", store: createFileStore("session.json") }).interceptor,
];
export const useIt = (): Snapshot => useSession(session);
export const isRefused = (error: unknown): boolean => error instanceof SessionError && error.reason === "ended";
export const sign = async (key: ProofKey, input: string): Promise<Uint8Array> => key.sign(new TextEncoder().encode(input));
export const thumbprint = async (): Promise<string> => proofKeyThumbprint(await generateProofKey());
export const createKit = (verifier: Verifier): ServerSessions => createServerSessions({ service: "http://127.0.0.1:8080", verifier });
export const middleware = (sessions: ServerSessions) => [sessionMiddleware(sessions, {}), sessionHook(sessions, {})];
export async function subjectOf(token: string): Promise<string> {
  const verifier = createVerifier({ adminUrl: "http://127.0.0.1:8081", adminToken: "t", issuer: "i", audience: "a" });
  const verdict = await verifier.verify(token);
  return verdict.ok ? verdict.claims.sub : verdict.reason;
}
// @ts-expect-error The declarations are strict.
export const wrong = () => createVerifier({ adminUrl: 1 });
`;

/** What `server.ts` prints. */
export const PRINTED = "true books/b 7 8\n";

export const CONSUMER: Readonly<Record<string, string>> = {
  ...SHELF,
  "entries.ts": ENTRIES,
  "server.ts": SERVER,
  "kits.ts": KITS,
};
