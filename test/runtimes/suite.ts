/** The tests that run in each runtime. The packages are imported by name, so that the runtime resolves their conditions. */
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { createVerifier } from "@session-service/verifier";
import { createRestClient } from "connect-http-routes/client";
import { createFetchHandler, createRoutes } from "connect-http-routes/fetch";
import { RichService } from "../connect-http-routes/gen/rich/v1/rich_pb.ts";
import type { VectorFile } from "../vectors/format.ts";
import { runCase } from "../vectors/run.ts";

/** Returns the names and verdicts of the cases whose verdict is wrong. */
export async function wrongVerdicts({ cases, ...file }: VectorFile): Promise<readonly string[]> {
  const wrong: string[] = [];
  for (const one of cases) {
    const verdict = await runCase(createVerifier, file, one);
    const result = verdict.ok ? "accepted" : verdict.reason;
    if (result !== one.verdict) wrong.push(`${one.name}: ${result} instead of ${one.verdict}`);
  }
  return wrong;
}

/** Calls a service of the HTTP layer by its typed client, all within this runtime, and returns the response. */
export async function callRoutes(): Promise<object> {
  const table = createRoutes(RichService);
  const routes = (router: ConnectRouter) =>
    router.service(RichService, {
      echo: (request) => request,
      async *count({ to }) {
        for (let number = 1; number <= to; number++) yield { number };
      },
      nothing: () => {
        throw new ConnectError("not here", Code.NotFound);
      },
    });
  const handle = createFetchHandler({ routes: (router) => void routes(router), tables: [table] });
  const fetch: typeof globalThis.fetch = (input, init) => handle(new Request(input, init));
  const client = createRestClient(table, { baseUrl: "https://api.example", fetch });
  const { stringValue, int64Value } = await client.echo({ stringValue: "ä€", int64Value: 2n ** 60n });
  const numbers: number[] = [];
  for await (const { number } of client.count({ to: 3 })) numbers.push(number);
  const failure = await client.nothing({}).catch((error: unknown) => ConnectError.from(error).code);
  return { stringValue, int64Value: String(int64Value), numbers, failure };
}

/** The running service from which a verifier learns of logouts. */
export type Live = {
  readonly adminUrl: string;
  readonly adminToken: string;
  readonly issuer: string;
  readonly pollIntervalMs?: number;
  readonly maxStalenessMs?: number;
};

/** Makes a verifier that never relies on introspection, so that the feed alone decides. */
export const createLiveVerifier = ({ issuer, ...live }: Live) =>
  createVerifier({ ...live, issuer, audience: issuer, policy: "refuse" });

/** Returns whether the package resolved to the verifier for Node, which alone has options of `node:http2`. */
export function isNodeVerifier(): boolean {
  try {
    createVerifier({ issuer: "i", audience: "a", adminUrl: "https://admin.example", nodeOptions: {} }).close();
    return true;
  } catch {
    return false;
  }
}
