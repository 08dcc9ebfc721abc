/** Clients that public generators make from a document with google.api.HttpBody: what they upload and download is the same bytes. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { create, createFileRegistry } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type HttpBody, HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import { createHttpHandler, createRoutes } from "../../src/connect-http-routes/index.ts";
import { describeServices } from "../../src/protoc-gen-http-openapi/document.ts";
import { openHttp1 } from "../connect-http-routes/support/servers.ts";
import { GENERATORS, runProgram } from "../support/generated-client.ts";
import { scratch } from "../support/service.ts";
import { buildProtos } from "./describe.ts";

const PROTO = `syntax = "proto3";
package t.v1;
import "google/api/annotations.proto";
import "google/api/httpbody.proto";
service Files {
  rpc Put(PutRequest) returns (google.api.HttpBody) { option (google.api.http) = {put: "/v1/files/{name}" body: "content"}; }
  rpc Get(GetRequest) returns (google.api.HttpBody) { option (google.api.http) = {get: "/v1/files/{name}"}; }
}
message PutRequest { string name = 1; google.api.HttpBody content = 2; }
message GetRequest { string name = 1; }
`;

/** All bytes, in an order that is no UTF-8. */
const BYTES = `const bytes = Uint8Array.from({ length: 512 }, (_, at) => 255 - (at % 256));`;

const ENVIRONMENT = `
  declare const process: { readonly env: Readonly<Record<string, string>> };
  const { URL: baseUrl = "" } = process.env;
  ${BYTES}
  const path = { name: "a" };
  const octets = async (blob: Blob) => [...new Uint8Array(await blob.arrayBuffer())];
  const print = async (put: Blob, got: Blob) => console.log(JSON.stringify([await octets(put), await octets(got)]));`;

const PROGRAMS: Readonly<Record<keyof typeof GENERATORS, string>> = {
  "openapi-ts": `
    import { createClient, createConfig } from "./files/client";
    import * as api from "./files";
    ${ENVIRONMENT}
    const client = createClient(createConfig({ baseUrl }));
    const put = await api.filesPut({ client, path, body: new Blob([bytes]), throwOnError: true });
    const got = await api.filesGet({ client, path, throwOnError: true });
    await print(put.data, got.data);`,
  orval: `
    import * as api from "./files";
    ${ENVIRONMENT}
    const put = await api.filesPut(path.name, new Blob([bytes]));
    const got = await api.filesGet(path.name);
    if (put.status !== 200 || got.status !== 200) throw new Error("refused");
    await print(put.data, got.data);`,
  "openapi-typescript": `
    import createClient from "openapi-fetch";
    import type { paths } from "./files";
    ${ENVIRONMENT}
    const { PUT, GET } = createClient<paths>({ baseUrl });
    const headers = { "content-type": "application/octet-stream" };
    const bodySerializer = () => new Blob([bytes]);
    const put = await PUT("/v1/files/{name}", { params: { path }, body: "", bodySerializer, headers, parseAs: "blob" });
    const got = await GET("/v1/files/{name}", { params: { path }, parseAs: "blob" });
    if (put.data === undefined || got.data === undefined) throw new Error("refused");
    await print(put.data, got.data);`,
};

/** The uploads that have arrived. */
const uploads: HttpBody[] = [];
let listener: Awaited<ReturnType<typeof openHttp1>>;
let document: object;
beforeAll(async () => {
  const service = createFileRegistry(buildProtos({ "t.proto": PROTO })).getService("t.v1.Files");
  if (service === undefined) throw new Error("no such service");
  const table = createRoutes(service);
  const implementation = {
    put({ content }: { content?: HttpBody }) {
      if (content !== undefined) uploads.push(content);
      return content ?? create(HttpBodySchema);
    },
    get: () => uploads.at(-1) ?? create(HttpBodySchema),
  } as unknown as ServiceImpl<typeof service>;
  listener = await openHttp1(
    createHttpHandler({ routes: (router) => void router.service(service, implementation), tables: [table] }),
  );
  document = describeServices([table], {});
});
afterAll(() => listener[Symbol.asyncDispose]());

test.each(Object.keys(PROGRAMS) as (keyof typeof PROGRAMS)[])(
  "%s uploads and downloads byte for byte",
  async (generator) => {
    const directory = scratch();
    const input = join(directory, "openapi.json");
    writeFileSync(input, JSON.stringify(document));
    await GENERATORS[generator](input, join(directory, "files"), listener.origin);
    const bytes = Array.from({ length: 512 }, (_, at) => 255 - (at % 256));
    expect(await runProgram(directory, PROGRAMS[generator], { URL: listener.origin })).toEqual([bytes, bytes]);
    const last = uploads.at(-1);
    expect([last?.contentType, [...(last?.data ?? [])]]).toEqual(["application/octet-stream", bytes]);
  },
);
