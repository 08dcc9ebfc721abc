/** A client that is generated from the admin API's OpenAPI document, as the receiver of a stream of the running service. */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  type Document,
  operationsOf,
  type Response,
  resolve as resolveRef,
  schemaChecker,
} from "../../protoc-gen-http-openapi/document.ts";
import { GENERATORS, runProgram } from "../../support/generated-client.ts";
import { type Service, scratch } from "../../support/service.ts";
import { somebody } from "../../support/sessions.ts";
import { startTransmitter, tokenOf } from "./stream-world.ts";

const FILE = resolve("gen/openapi-admin.json");
const document = JSON.parse(readFileSync(FILE, "utf8")) as Document;
/** The document, changed so that a response with a member that its schema does not declare is invalid. */
const closed = structuredClone(document);
for (const schema of Object.values(closed.components.schemas)) Object.assign(schema, { additionalProperties: false });
const check = schemaChecker(closed);

/** Uses every operation with its types: nothing is cast. Prints all exchanges. */
const PROGRAM = `
  import { createClient, createConfig } from "./admin/client";
  import * as ssf from "./admin";
  declare const process: { readonly env: Readonly<Record<string, string>> };
  const { ADMIN_URL = "", ADMIN_TOKEN = "", subject = "" } = process.env;

  const exchanges: { method: string; path: string; status: number; type: string | null; body: string }[] = [];
  function connect(auth: string) {
    const client = createClient(createConfig({ baseUrl: ADMIN_URL, auth }));
    client.interceptors.response.use(async (response, request) => {
      const { status, headers } = response;
      const { pathname: path } = new URL(request.url);
      const body = await response.clone().text();
      exchanges.push({ method: request.method, path, status, type: headers.get("content-type"), body });
      return response;
    });
    return client;
  }
  const client = connect(ADMIN_TOKEN);
  const of = { client, throwOnError: true } as const;
  const sub_id = { format: "opaque", id: subject };

  const { data: created } = await ssf.sharedSignalsServiceCreateStream({ ...of, body: { description: "generated" } });
  const stream_id = created.stream_id ?? "";
  const query = { stream_id };
  await ssf.sharedSignalsServiceReadStreams({ ...of, query });
  const { data: streams } = await ssf.sharedSignalsServiceReadStreams(of);
  await ssf.sharedSignalsServiceUpdateStream({ ...of, body: { stream_id, description: "changed" } });
  const { data: replaced } = await ssf.sharedSignalsServiceReplaceStream({ ...of, body: { stream_id } });
  await ssf.sharedSignalsServiceGetStreamStatus({ ...of, query });
  const { data: paused } = await ssf.sharedSignalsServiceUpdateStreamStatus({ ...of, body: { stream_id, status: "paused" } });
  await ssf.sharedSignalsServiceUpdateStreamStatus({ ...of, body: { stream_id, status: "enabled" } });
  await ssf.sharedSignalsServiceRemoveStreamSubject({ ...of, body: { stream_id, subject: sub_id } });
  await ssf.sharedSignalsServiceAddStreamSubject({ ...of, body: { stream_id, subject: sub_id } });
  await ssf.sharedSignalsServiceVerifyStream({ ...of, body: { stream_id, state: "generated" } });
  const path = { stream_id };
  const { data: polled } = await ssf.sharedSignalsServicePollStream({ ...of, path, body: { returnImmediately: false } });
  const ack = Object.keys(polled.sets ?? {});
  const { data: rest } = await ssf.sharedSignalsServicePollStream({ ...of, path, body: { ack, maxEvents: 0 } });
  await ssf.sharedSignalsServiceDeleteStream({ ...of, query });

  const gone = await ssf.sharedSignalsServiceReadStreams({ client, query });
  const refused = await ssf.sharedSignalsServiceReadStreams({ client: connect("nobody"), query });
  const bad = await ssf.sharedSignalsServiceUpdateStream({ client, body: {} });
  console.log(JSON.stringify({
    streams: Array.isArray(streams) && streams.map(({ stream_id }) => stream_id).includes(stream_id),
    descriptions: [created.description, replaced.description ?? ""],
    status: paused.status,
    polled: ack.length,
    rest: [Object.keys(rest.sets ?? {}).length, rest.moreAvailable],
    codes: [gone, refused, bad].map(({ error }) => error && error.error.code),
    exchanges,
  }));`;

type Exchange = { method: string; path: string; status: number; type: string | null; body: string };

let service: Service;
beforeAll(async () => {
  ({ service } = await startTransmitter());
});
afterAll(() => service.stop());

test("compiles, manages a stream and receives its events; every response is as described", async () => {
  const directory = scratch();
  await GENERATORS["openapi-ts"](FILE, join(directory, "admin"));
  const env = { ADMIN_URL: service.adminUrl, ADMIN_TOKEN: tokenOf("receiver"), subject: somebody() };
  const printed = await runProgram(directory, PROGRAM, env);
  const { exchanges, ...results } = printed as { readonly exchanges: readonly Exchange[] };
  expect(results).toEqual({
    streams: true,
    descriptions: ["generated", ""],
    status: "paused",
    polled: 1,
    rest: [0, false],
    codes: ["E404_NOT_FOUND", "E001_AUTH_FAILURE", "E400_INVALID_REQUEST"],
  });
  const places = operationsOf(document).filter(({ operation }) => operation.tags[0] === "SharedSignalsService");
  const called = new Set<string>();
  for (const { method, path, status, type, body } of exchanges) {
    const place = places.find((one) => one.method === method && matches(one.path, path));
    const title = `${method} ${path}: ${status}`;
    const described = place?.operation.responses[status];
    expect(described, title).toBeDefined();
    called.add(place?.operation.operationId ?? "");
    const { content } = resolveRef(document, described as Response);
    if (content === undefined) expect([type, body], title).toEqual([null, ""]);
    else expect(check(content[type ?? ""]?.schema ?? { not: {} }, JSON.parse(body)), title).toEqual([]);
  }
  expect([...called].sort()).toEqual(places.map(({ operation }) => operation.operationId).sort());
});

const matches = (template: string, path: string) =>
  new RegExp(`^${template.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(path);
