/** Failures as problem details (RFC 9457), from the server to the REST client. */
import { create, toBinary } from "@bufbuild/protobuf";
import { createValidator, violationsToProto } from "@bufbuild/protovalidate";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { CreateSessionRequestSchema } from "../../gen/auth/admin/v1/session_admin_pb.ts";
import { BadRequestSchema, ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.ts";
import { createRestClient, RestError } from "../../src/connect-http-routes/client/index.ts";
import {
  createFetchHandler,
  createHttpHandler,
  type ProblemOptions,
  problemEncoder,
} from "../../src/connect-http-routes/index.ts";
import { describeDirectory } from "../protoc-gen-http-openapi/describe.ts";
import { type Schema, schemaChecker } from "../protoc-gen-http-openapi/document.ts";
import { RichServiceRoutes } from "./gen/rich/v1/rich_http.ts";
import { RichService } from "./gen/rich/v1/rich_pb.ts";
import { openHttp1 } from "./support/servers.ts";

function handlerOf(error: ConnectError, options: ProblemOptions = {}) {
  const routes = (router: ConnectRouter) => {
    const fail = () => {
      throw error;
    };
    router.rpc(RichService.method.misbehave, fail);
    router.rpc(RichService.method.echo, fail);
  };
  return { routes, tables: [RichServiceRoutes], failureEncoder: problemEncoder(options) };
}

async function respond(error: ConnectError, options?: ProblemOptions, target = "/v1/misbehave") {
  await using listener = await openHttp1(createHttpHandler(handlerOf(error, options)));
  const { status, headers, json } = await listener.fetchRaw({ method: "POST", target, body: "{}" });
  return { status, type: headers.get("content-type"), body: json() };
}

test("a failure of an RPC, of a route and of a body has its status, title, detail and code", async () => {
  const error = new ConnectError("there is no shelf 7", Code.NotFound);
  const about = { type: "about:blank" };
  expect(await respond(error)).toEqual({
    status: 404,
    type: ["application/problem+json"],
    body: { ...about, title: "Not Found", status: 404, detail: "there is no shelf 7", code: "not_found" },
  });
  expect(await respond(error, {}, "/v1/nowhere")).toMatchObject({
    status: 404,
    type: ["application/problem+json"],
    body: { ...about, title: "Not Found", detail: "no such route" },
  });
  await using listener = await openHttp1(createHttpHandler(handlerOf(error)));
  const malformed = await listener.fetchRaw({ method: "POST", target: "/v1/misbehave", body: "{" });
  expect([malformed.status, malformed.json()]).toEqual([
    400,
    expect.objectContaining({ ...about, title: "Bad Request", code: "invalid_argument" }),
  ]);
});

test("a kind of problem has the type and the title that the application gives it", async () => {
  const error = new ConnectError("balance: 3", Code.FailedPrecondition, undefined, [
    { desc: ErrorInfoSchema, value: { reason: "NO_CREDIT", domain: "shop.example" } },
  ]);
  const typeOf: ProblemOptions["typeOf"] = ({ error: { details } }) =>
    details.length === 0 ? undefined : { type: "https://shop.example/no-credit", title: "You have no credit" };
  const { body } = await respond(error, { typeOf });
  expect(body).toEqual({
    type: "https://shop.example/no-credit",
    title: "You have no credit",
    ...{ status: 400, detail: "balance: 3", code: "failed_precondition" },
    details: [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "NO_CREDIT", domain: "shop.example" }],
  });
});

test("violations of google.rpc.BadRequest point to the fields of the body by their names in JSON", async () => {
  const fieldViolations = [
    { field: "optional_string", description: "is too long", reason: "TOO_LONG" },
    { field: "floats[2]", description: "is negative" },
    { field: "nested.inner.tags[0]", description: "is empty" },
    { field: "nestedMap[7].name", description: "is taken" },
    { field: "unknown_field.a/b~c", description: "what" },
    { field: "", description: "everything is wrong" },
  ];
  const value = toBinary(BadRequestSchema, create(BadRequestSchema, { fieldViolations }));
  const error = new ConnectError("not valid", Code.InvalidArgument);
  error.details.push({ type: "google.rpc.BadRequest", value });
  const { body } = await respond(error, {}, "/v1/echo");
  expect(body).toMatchObject({ detail: "not valid", code: "invalid_argument" });
  expect((body as { errors: unknown }).errors).toEqual([
    { pointer: "#/optionalString", detail: "is too long", reason: "TOO_LONG" },
    { pointer: "#/floats/2", detail: "is negative" },
    { pointer: "#/nested/inner/tags/0", detail: "is empty" },
    { pointer: "#/nestedMap/7/name", detail: "is taken" },
    { pointer: "#/unknown_field/a~1b~0c", detail: "what" },
    { detail: "everything is wrong" },
  ]);
  expect(body).not.toHaveProperty("details");
});

test("so do violations of protovalidate, with the rule", async () => {
  const wanted = create(CreateSessionRequestSchema, {
    subject: "alice",
    audiences: ["a", ""],
    actor: { reason: "x".repeat(300) },
  });
  const result = createValidator().validate(CreateSessionRequestSchema, wanted);
  if (result.kind !== "invalid") throw new Error(result.kind);
  const [value, desc] = violationsToProto(result.violations);
  const { body } = await respond(new ConnectError("not valid", Code.InvalidArgument, undefined, [{ desc, value }]));
  const { errors } = body as { errors: object[] };
  expect(errors).toHaveLength(3);
  expect(errors).toEqual(
    expect.arrayContaining([
      { detail: "must be at most 255 bytes", pointer: "#/actor/reason", rule: "string.max_bytes" },
      { detail: "value is required", pointer: "#/actor/subject", rule: "required" },
      { detail: "must be at least 1 bytes", pointer: "#/audiences/1", rule: "string.min_bytes" },
    ]),
  );
});

test("a REST client gets the error with its code, its details and the problem", async () => {
  const info = { reason: "NO_CREDIT", domain: "shop.example" };
  const details = [
    { desc: ErrorInfoSchema, value: info },
    { desc: BadRequestSchema, value: { fieldViolations: [{ field: "how", description: "is empty" }] } },
  ];
  const handler = createFetchHandler(
    handlerOf(new ConnectError("balance: 3", Code.FailedPrecondition, undefined, details)),
  );
  const client = createRestClient(RichServiceRoutes, {
    baseUrl: "https://a.example",
    fetch: (input, init) => handler(new Request(input, init)),
  });
  const error = await client.misbehave({}).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof RestError)) throw new Error(String(error));
  expect([error.code, error.rawMessage]).toEqual([Code.FailedPrecondition, "balance: 3"]);
  expect(error.findDetails(ErrorInfoSchema)).toMatchObject([info]);
  expect(error.problem).toMatchObject({ status: 400, errors: [{ pointer: "#/how", detail: "is empty" }] });
  expect(error.metadata.get("content-type")).toBe("application/problem+json");
});

test.each([
  ["without a code", { type: "about:blank", title: "Gone", status: 404 }, Code.NotFound],
  ["with a code of another service", { status: 429, code: "E_LIMIT", title: "Slow" }, Code.ResourceExhausted],
  ["with a code that is the name of a property", { status: 503, code: "constructor" }, Code.Unavailable],
])("problem details of somebody else, %s, get the code of their status", async (_, problem, code) => {
  const headers = { "content-type": "application/problem+json" };
  const client = createRestClient(RichServiceRoutes, {
    baseUrl: "https://a.example",
    fetch: async () => new Response(JSON.stringify(problem), { status: problem.status, headers }),
  });
  await expect(client.misbehave({})).rejects.toMatchObject({ code });
});

test("the problem of a stream that has begun is its last message", async () => {
  const routes = (router: ConnectRouter) =>
    void router.rpc(RichService.method.count, async function* () {
      yield { number: 1 };
      throw new ConnectError("no more", Code.DataLoss);
    });
  await using listener = await openHttp1(
    createHttpHandler({ routes, tables: [RichServiceRoutes], failureEncoder: problemEncoder() }),
  );
  const { text } = await listener.fetchRaw({ target: "/v1/count/9" });
  const [, last = ""] = text.trim().split("\n");
  expect(JSON.parse(last)).toMatchObject({ error: { status: 500, code: "data_loss", detail: "no more" } });
});

test("every problem is as the OpenAPI document describes it", async () => {
  const document = describeDirectory("test/connect-http-routes/proto", "problem_details=true");
  const check = schemaChecker(document);
  const { default: failure } = document.components.responses as Record<
    string,
    { readonly content: Record<string, { readonly schema: Schema }> }
  >;
  const schema = failure?.content["application/problem+json"]?.schema ?? {};
  const violation = { desc: BadRequestSchema, value: { fieldViolations: [{ field: "how", description: "is empty" }] } };
  const info = { desc: ErrorInfoSchema, value: { reason: "NO_CREDIT", domain: "shop.example" } };
  for (const code of [Code.InvalidArgument, Code.Unavailable, Code.Canceled]) {
    const { body } = await respond(new ConnectError("m", code, undefined, [violation, info]));
    expect(check(schema, body)).toEqual([]);
  }
  expect(check(schema, { code: 5, message: "a google.rpc.Status" })).not.toEqual([]);
});
