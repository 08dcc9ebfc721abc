/** `ETag`, and the preconditions of requests (RFC 9110 sections 8.8.3 and 13). */
import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import { expect, test } from "vitest";
import {
  checkPreconditions,
  createHttpHandler,
  type EntityTagOptions,
  entityTags,
  protobufCodec,
} from "../../src/connect-http-routes/index.ts";
import { RichServiceRoutes } from "./gen/rich/v1/rich_http.ts";
import { RichService } from "./gen/rich/v1/rich_pb.ts";
import { richRoutes } from "./support/rich-service.ts";
import { openHttp1 } from "./support/servers.ts";

type Headers = Readonly<Record<string, string>>;

/** Responds to one request. The tag is the field `string_value`, which the query sets. */
async function respond(
  { method = "GET", target, headers = {} }: { method?: string; target: string; headers?: Headers },
  options: EntityTagOptions = {},
  routes: (router: ConnectRouter) => void = richRoutes,
) {
  const tags = entityTags({ field: "string_value", ...options });
  const tables = [{ ...RichServiceRoutes, entityTags: tags }];
  const codecs = [protobufCodec];
  await using listener = await openHttp1(createHttpHandler({ routes, tables, codecs }));
  const body = method === "GET" || method === "HEAD" ? undefined : "{}";
  const response = await listener.fetchRaw({ method, target, headers, body });
  const etag = response.headers.get("etag")?.join() ?? "";
  return { ...response, etag, outcome: `${response.status} ${etag}`.trim() };
}

const get = async (target: string, headers: Headers = {}, options: EntityTagOptions = {}) =>
  await respond({ target: `/v1/echo${target}`, headers }, options);

const LONG = `&oneofString=${"x".repeat(4_000)}`;

test("the tag is a field of the response, quoted if it is not a tag already", async () => {
  expect((await get("?stringValue=55")).outcome).toBe('200 "55"');
  expect((await get("?stringValue=%2255%22")).outcome).toBe('200 "55"');
  expect((await get("?stringValue=W%2F%2255%22")).outcome).toBe('200 W/"55"');
  expect((await get("?stringValue=a%20%22")).outcome).toBe('200 "a%20%22"');
  expect((await get("?int64Value=9007199254740993", {}, { field: "int64_value" })).outcome).toBe(
    '200 "9007199254740993"',
  );
});

test("without a value there is no tag, unless a digest of the content is wanted", async () => {
  expect((await get("")).outcome).toBe("200");
  const first = await get("?boolValue=true", {}, { digest: true });
  expect(first.etag).toMatch(/^W\/"[\w-]{22}"$/);
  expect((await get("?boolValue=true", {}, { digest: true })).etag).toBe(first.etag);
  expect((await get("?boolValue=false", {}, { digest: true })).etag).not.toBe(first.etag);
  const unmodified = await get("?boolValue=true", { "if-none-match": first.etag }, { digest: true });
  expect([unmodified.outcome, unmodified.text]).toEqual([`304 ${first.etag}`, ""]);
});

test("only the RPCs that are named have tags, and a field that cannot be one is refused at the start", async () => {
  const { echo, echoPath } = RichService.method;
  expect((await get("?stringValue=55", {}, { rpcs: [echo] })).outcome).toBe('200 "55"');
  expect((await get("?stringValue=55", {}, { rpcs: [echoPath] })).outcome).toBe("200");
  await expect(get("", {}, { field: "nested" })).rejects.toThrow("rich.v1.Everything.nested cannot be an entity tag");
});

test.each([
  ['"55"', '304 "55"'],
  ['W/"55"', '304 "55"'],
  ['"54" , W/"55",', '304 "55"'],
  ["*", '304 "55"'],
  ['"54"', '200 "55"'],
  // A malformed header names no tag.
  ["55", '200 "55"'],
  ['"55" "54"', '200 "55"'],
  ['"54", "55', '200 "55"'],
])("If-None-Match: %s of a GET is %s", async (value, outcome) => {
  expect((await get("?stringValue=55", { "if-none-match": value })).outcome).toBe(outcome);
});

test.each([
  ['"55"', '200 "55"'],
  ['"54", "55"', '200 "55"'],
  ["*", '200 "55"'],
  ['"54"', '412 "55"'],
  ['W/"55"', '412 "55"'],
  ["55", '412 "55"'],
])("If-Match: %s of a GET is %s", async (value, outcome) => {
  expect((await get("?stringValue=55", { "if-match": value })).outcome).toBe(outcome);
});

test("a 304 has the headers of the response, but for those of its content; HEAD gets the same", async () => {
  const routes = (router: ConnectRouter) =>
    router.rpc(RichService.method.echo, (request, { responseHeader }) => {
      responseHeader.set("cache-control", "private, max-age=60");
      responseHeader.set("content-language", "en");
      responseHeader.append("set-cookie", "a=1");
      return request;
    });
  for (const method of ["GET", "HEAD"]) {
    const headers = { "if-none-match": '"55"', "accept-encoding": "gzip" };
    const response = await respond({ method, target: `/v1/echo?stringValue=55${LONG}`, headers }, {}, routes);
    const { date, connection, "keep-alive": _, ...sent } = Object.fromEntries(response.headers);
    expect([response.status, date?.length, connection?.length, response.text]).toEqual([304, 1, 1, ""]);
    expect(sent).toEqual({
      etag: ['"55"'],
      vary: ["Accept, Accept-Encoding"],
      "cache-control": ["private, max-age=60"],
      "set-cookie": ["a=1"],
    });
  }
});

test("strong tags differ by content coding and media type, and each is understood again", async () => {
  const long = (headers: Headers) => get(`?stringValue=55${LONG}`, headers);
  const gzip = { "accept-encoding": "gzip" };
  const binary = { accept: "application/x-protobuf" };
  const [plain, packed, proto, packedProto] = await Promise.all([
    long({}),
    long(gzip),
    long(binary),
    long({ ...gzip, ...binary }),
  ]);
  const tags = [plain.etag, packed.etag, proto.etag, packedProto.etag];
  expect(tags).toEqual(['"55"', '"55;gzip"', '"55;application/x-protobuf"', '"55;application/x-protobuf;gzip"']);
  const known = async (headers: Headers, tag: string) => (await long({ ...headers, "if-none-match": tag })).outcome;
  expect(await known(gzip, '"55;gzip"')).toBe('304 "55;gzip"');
  expect(await known(gzip, '"55"')).toBe('304 "55"');
  expect(await known({}, 'W/"55;gzip"')).toBe('304 "55;gzip"');
  expect(await known(binary, '"55;gzip", "55"')).toBe('200 "55;application/x-protobuf"');
  for (const tag of tags) expect((await long({ "if-match": tag })).status).toBe(200);
});

test("a tag that the handler sets wins, and other methods than GET, HEAD and PATCH get none", async () => {
  const routes = (router: ConnectRouter) =>
    router.service(RichService, {
      echo: (request, { responseHeader }) => {
        responseHeader.set("etag", '"own"');
        return request;
      },
      update: (request) => request,
      pick: (request) => ({ ...request, stringValue: "55" }),
    });
  const target = "/v1/echo?stringValue=55";
  expect((await respond({ target }, {}, routes)).outcome).toBe('200 "own"');
  expect((await respond({ target, headers: { "if-none-match": '"own"' } }, {}, routes)).outcome).toBe('304 "own"');
  expect((await respond({ method: "POST", target: "/v1/pick/nested" }, { digest: true }, routes)).outcome).toBe("200");
});

/** Responds to a PUT of something whose tag is `current`. */
async function put(current: string | undefined, headers: Headers) {
  const routes = (router: ConnectRouter) =>
    router.rpc(RichService.method.update, (request, context: HandlerContext) => {
      checkPreconditions(context, current);
      return request;
    });
  const { status, text } = await respond({ method: "PUT", target: "/v1/items", headers }, {}, routes);
  return status === 200 ? "done" : `${status} ${(JSON.parse(text) as { message: string }).message}`;
}

test.each([
  ["55", { "if-match": '"55"' }, "done"],
  ['"55"', { "if-match": '"54", "55;gzip"' }, "done"],
  ["55", { "if-match": "*" }, "done"],
  ["55", {}, "done"],
  [undefined, {}, "done"],
  ["55", { "if-match": '"54"' }, "412 If-Match does not hold"],
  ["55", { "if-match": 'W/"55"' }, "412 If-Match does not hold"],
  ['W/"55"', { "if-match": 'W/"55"' }, "412 If-Match does not hold"],
  [undefined, { "if-match": "*" }, "412 If-Match does not hold"],
  [undefined, { "if-match": '"55"' }, "412 If-Match does not hold"],
  [undefined, { "if-none-match": "*" }, "done"],
  ["55", { "if-none-match": '"54"' }, "done"],
  ["55", { "if-none-match": "*" }, "412 If-None-Match does not hold"],
  ["55", { "if-none-match": 'W/"55"' }, "412 If-None-Match does not hold"],
  ["55", { "if-match": "55" }, '400 If-Match has no entity tags, such as "5"'],
  [undefined, { "if-none-match": "" }, '400 If-None-Match has no entity tags, such as "5"'],
] as const)("a change of %s with %o is %s", async (current, headers, outcome) => {
  expect(await put(current, headers)).toBe(outcome);
});
