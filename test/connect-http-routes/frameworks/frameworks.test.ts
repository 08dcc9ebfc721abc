/** Frameworks give the responses that a plain server of Node gives, with their CORS headers, and keep their own pages. */
import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FRAMEWORKS, plainNode, type Running } from "./frameworks.ts";
import { ORIGIN, OWN_PAGE } from "./own.ts";
import { REQUESTS, TAKEN_BY_EXPRESS_JSON, type TableRequest } from "./requests.ts";

type Received = { readonly status: number; readonly headers: Readonly<Record<string, unknown>>; readonly text: string };

function ask({ port }: Running, { method, target, headers = {}, body }: TableRequest): Promise<Received> {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
    const call = request({
      ...{ host: "127.0.0.1", port, method, path: target, agent: false },
      headers: { origin: ORIGIN, ...length, ...headers },
    });
    call.on("error", reject);
    call.on("response", (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headersDistinct,
          text: Buffer.concat(chunks).toString("latin1"),
        }),
      );
    });
    call.end(body);
  });
}

/** What callers see of a response. Frameworks add headers of their own. */
const seen = ({ status, headers, text }: Received) => ({
  status,
  ...Object.fromEntries(
    ["content-type", "set-cookie", "allow", "x-handler", "location"].map((name) => [name, headers[name]]),
  ),
  text,
});

let plain: Running;
beforeAll(async () => {
  plain = await plainNode("");
});
afterAll(() => plain.close());

describe.each(FRAMEWORKS)("%s", (name, start, prefixes) => {
  const requests = name.includes("behind") ? REQUESTS : [...REQUESTS, ...TAKEN_BY_EXPRESS_JSON];

  describe.each(prefixes)("with the prefix %j", (prefix) => {
    let app: Running;
    beforeAll(async () => {
      app = await start(prefix);
    });
    afterAll(() => app.close());

    test.each(requests)("responds like Node: $method $target $headers $body", async (one) => {
      const received = await ask(app, { ...one, target: prefix + one.target });
      expect(seen(received)).toEqual(seen(await ask(plain, one)));
      expect(received.headers["access-control-allow-origin"]).toEqual([ORIGIN]);
    });

    test("has pages of its own", async () => {
      expect(await ask(app, { method: "GET", target: "/own" })).toMatchObject({ status: 200, text: OWN_PAGE });
    });

    test("leaves other requests to the framework", async () => {
      const elsewhere = { method: "GET", target: "/no/such/page" };
      const { status, text } = await ask(app, elsewhere);
      expect(status).toBe(404);
      // Without a prefix the line for Hono gives every path to the routes.
      if (prefix !== "" || name !== "Hono") expect(text).not.toBe((await ask(plain, elsewhere)).text);
    });

    test("responds to preflights for pages of other origins", async () => {
      const headers = { "access-control-request-method": "POST" };
      const { status, headers: got } = await ask(app, { method: "OPTIONS", target: `${prefix}/v1/echo`, headers });
      expect(status).toBeLessThan(300);
      expect(got["access-control-allow-origin"]).toEqual([ORIGIN]);
    });
  });
});
