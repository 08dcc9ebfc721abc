/** What failure encoders receive and return. */
import { createRegistry, type DescMessage, toBinary, toJson } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import {
  BadInput,
  type CommonOptions,
  createHttpHandler,
  type NodeRequest,
  type Route,
} from "../../src/connect-http-routes/index.ts";
import { RichServiceRoutes } from "./gen/rich/v1/rich_http.ts";
import { EverythingSchema, NestedSchema, RichService } from "./gen/rich/v1/rich_pb.ts";
import { loadGoogleProtos } from "./roundtrip/google-protos.ts";
import { sampleMessage } from "./support/sample-message.ts";
import { openHttp1 } from "./support/servers.ts";

const registry = createRegistry(NestedSchema, EverythingSchema);
/** The binary form of the message rich.v1.Nested `{name: "why"}`. */
const WIRE = new Uint8Array([10, 3, 119, 104, 121]);

async function failingWith(error: () => unknown, options: Partial<CommonOptions<NodeRequest>> = {}) {
  const routes = (router: ConnectRouter) =>
    void router.rpc(RichService.method.misbehave, () => {
      throw error();
    });
  await using listener = await openHttp1(createHttpHandler({ routes, tables: [RichServiceRoutes], ...options }));
  return await listener.fetchRaw({ method: "POST", target: "/v1/misbehave", body: "{}" });
}

const withDetail = (detail: ConnectError["details"][number]) => () => {
  const error = new ConnectError("m", Code.Aborted);
  error.details.push(detail);
  return error;
};

describe("an error detail", () => {
  const nested = { type: "rich.v1.Nested", value: WIRE };
  const any = { typeUrl: "type.googleapis.com/rich.v1.Nested", value: WIRE };

  test("in wire form is proto JSON if the registry knows its type", async () => {
    const response = await failingWith(withDetail(nested), { jsonOptions: { registry } });
    expect(response.json()).toMatchObject({
      details: [{ "@type": "type.googleapis.com/rich.v1.Nested", name: "why" }],
    });
  });

  test("in wire form keeps its bytes if the registry does not know its type, or if they are malformed", async () => {
    const details = [{ "@type": "type.googleapis.com/rich.v1.Nested", value: "CgN3aHk=" }];
    expect((await failingWith(withDetail(nested))).json()).toMatchObject({ details });
    const malformed = { type: "rich.v1.Nested", value: new Uint8Array([10, 200]) };
    const response = await failingWith(withDetail(malformed), { jsonOptions: { registry } });
    expect(response.json()).toMatchObject({ details: [{ value: "Csg=" }] });
  });

  test("that contains an Any is proto JSON if the registry knows the type, else it keeps its bytes", async () => {
    const detail = { desc: EverythingSchema, value: { any } };
    const known = await failingWith(withDetail(detail), { jsonOptions: { registry } });
    const inner = { "@type": "type.googleapis.com/rich.v1.Nested", name: "why" };
    expect(known.json()).toMatchObject({
      details: [{ "@type": "type.googleapis.com/rich.v1.Everything", any: inner }],
    });
    const [unknown] = ((await failingWith(withDetail(detail))).json() as { details: { value: string }[] }).details;
    const bytes = Buffer.from(unknown?.value ?? "", "base64");
    expect(bytes.includes(Buffer.from(WIRE))).toBe(true);
  });
});

describe("an error detail of google.rpc", () => {
  /** The types of google.rpc are read from Google's own package, not from this repository. */
  const published = loadGoogleProtos(["google/rpc/error_details.proto"]);
  const types = [...published].filter(({ kind, file }) => kind === "message" && file.name.endsWith("error_details"));
  const wholeMessage = { body: "*", segments: [], variables: [] } as unknown as Route;

  test("is one of ten, and parts of them", () => {
    expect(types.map(({ typeName }) => typeName)).toEqual(expect.arrayContaining(["google.rpc.BadRequest"]));
    expect(types).toHaveLength(14);
  });

  test.each(types.map(({ typeName }) => typeName))("is proto JSON without a registry: %s", async (type) => {
    const schema = published.getMessage(type) as DescMessage;
    const message = sampleMessage(schema, wholeMessage, 3);
    const wanted = toJson(schema, message) as object;
    expect(Object.keys(wanted)).toHaveLength(schema.fields.length);
    const response = await failingWith(withDetail({ type, value: toBinary(schema, message) }));
    expect(response.json()).toMatchObject({ details: [{ "@type": `type.googleapis.com/${type}`, ...wanted }] });
  });
});

describe("a failure", () => {
  test("has the thrown value as its reason, and a response without making a ConnectError of it", async () => {
    class Domain extends Error {}
    const response = await failingWith(() => new Domain("expired"), {
      failureEncoder: (failure) =>
        failure.reason instanceof Domain
          ? { status: 401, headers: { "x-a": "1" }, json: '{"code":"E1"}' }
          : { body: null },
    });
    expect([response.status, response.text, response.headers.get("x-a")]).toEqual([401, '{"code":"E1"}', ["1"]]);
    expect(response.headers.get("content-length")).toEqual(["13"]);
    expect(response.headers.get("content-type")).toEqual(["application/json"]);
  });

  test.each<
    [name: string, error: ConnectError, options: Partial<CommonOptions<NodeRequest>>, challenge: string[] | undefined]
  >([
    ["none", new ConnectError("m", Code.Unauthenticated), {}, ["Bearer"]],
    ["that of the error", new ConnectError("m", Code.Unauthenticated, { "www-authenticate": "Basic" }), {}, ["Basic"]],
    [
      "that of the failure encoder",
      new ConnectError("m", Code.Aborted),
      { failureEncoder: () => ({ status: 401, headers: { "www-authenticate": "DPoP" } }) },
      ["DPoP"],
    ],
    ["none, and another status", new ConnectError("m", Code.PermissionDenied), {}, undefined],
  ])("with the status 401 has a challenge: %s", async (_, error, options, challenge) => {
    const response = await failingWith(() => error, options);
    expect(response.headers.get("www-authenticate")).toEqual(challenge);
  });

  test("with a constant response gets the headers of its own call", async () => {
    const constant = { status: 401, headers: { "x-a": "1" }, hasMetadata: true, json: "{}", isConstant: true };
    const routes = (router: ConnectRouter) =>
      void router.rpc(RichService.method.misbehave, (_, { requestHeader, responseHeader }) => {
        const cookie = requestHeader.get("x-cookie");
        if (cookie !== null) responseHeader.append("set-cookie", cookie);
        throw new ConnectError("m", Code.Unauthenticated);
      });
    const options = { tables: [RichServiceRoutes], failureEncoder: () => constant };
    let count = 0;
    const onResponse = (headers: Headers) => headers.set("x-count", String(++count));
    await using listener = await openHttp1(createHttpHandler({ routes, ...options, onResponse }));
    const ask = async (headers: Record<string, string>) => {
      const response = await listener.fetchRaw({ method: "POST", target: "/v1/misbehave", body: "{}", headers });
      const { date, ...own } = Object.fromEntries(response.headers);
      return { status: response.status, text: response.text, own };
    };
    const first = await ask({});
    const withCookie = await ask({ "x-cookie": "a=b" });
    expect(await ask({})).toEqual({ ...first, own: { ...first.own, "x-count": ["3"] } });
    expect(withCookie.own).toEqual({ ...first.own, "x-count": ["2"], "set-cookie": ["a=b"] });
    expect([first.status, first.text, first.own["www-authenticate"]]).toEqual([401, "{}", ["Bearer"]]);
  });

  test("is not shared between calls if it depends on the call, although its encoder calls it constant", async () => {
    const constant = { json: "{}", isConstant: true };
    const routes = (router: ConnectRouter) =>
      void router.rpc(RichService.method.misbehave, (_, { requestHeader }) => {
        throw new ConnectError("m", Code.Aborted, { "set-cookie": requestHeader.get("x-cookie") ?? "" });
      });
    const options = { tables: [RichServiceRoutes], failureEncoder: () => constant };
    await using listener = await openHttp1(createHttpHandler({ routes, ...options }));
    const cookies = async (cookie: string) => {
      const headers = { "x-cookie": cookie };
      const response = await listener.fetchRaw({ method: "POST", target: "/v1/misbehave", body: "{}", headers });
      return response.headers.get("set-cookie");
    };
    expect([await cookies("a=1"), await cookies("b=2")]).toEqual([["a=1"], ["b=2"]]);
    const allowed = async (target: string) => (await listener.fetchRaw({ method: "PUT", target })).headers.get("allow");
    expect(await allowed("/v1/misbehave")).toEqual(["OPTIONS, POST"]);
  });

  test("caused by input captures no stack", () => {
    expect(new BadInput("query", "x", "bad").stack).not.toContain("\n    at ");
    expect(new Error("other").stack).toContain("\n    at ");
  });
});

describe("a failure encoder", () => {
  test("owns the content type", async () => {
    const response = await failingWith(() => new ConnectError("m", Code.Aborted), {
      failureEncoder: () => ({ headers: { "content-type": "application/problem+json" }, body: { title: "m" } }),
    });
    expect(response.headers.get("content-type")).toEqual(["application/problem+json"]);
    expect(response.json()).toEqual({ title: "m" });
  });

  test("does not get the content type that a handler has set for its response", async () => {
    const routes = (router: ConnectRouter) =>
      void router.rpc(RichService.method.misbehave, (_, { responseHeader }) => {
        responseHeader.set("content-type", "text/csv");
        throw new ConnectError("m", Code.Aborted);
      });
    await using listener = await openHttp1(createHttpHandler({ routes, tables: [RichServiceRoutes] }));
    const response = await listener.fetchRaw({ method: "POST", target: "/v1/misbehave", body: "{}" });
    expect(response.headers.get("content-type")).toEqual(["application/json"]);
  });
});

describe("an internal error", () => {
  test("is reported with its cause: an Any of an unknown type in the response", async () => {
    const reported: [unknown, string | undefined][] = [];
    const routes = (router: ConnectRouter) =>
      void router.rpc(RichService.method.echo, () => ({ any: { typeUrl: "type.googleapis.com/acme.Unknown" } }));
    const onInternalError = (error: unknown, rpc?: { readonly name: string }) => reported.push([error, rpc?.name]);
    await using listener = await openHttp1(createHttpHandler({ routes, tables: [RichServiceRoutes], onInternalError }));
    const response = await listener.fetchRaw({ target: "/v1/echo" });
    expect([response.status, response.json()]).toEqual([500, expect.objectContaining({ message: "internal error" })]);
    expect(reported).toEqual([[expect.objectContaining({ message: expect.stringContaining("acme.Unknown") }), "Echo"]]);
  });

  test("is written to the console by default, and an error for the client is not", async () => {
    const written = vi.spyOn(console, "error").mockImplementation(() => {});
    onTestFinished(() => written.mockRestore());
    const cause = new Error("the cause");
    await failingWith(() => new ConnectError("m", Code.Internal));
    expect(written).not.toHaveBeenCalled();
    await failingWith(() => cause);
    expect(written.mock.calls).toEqual([["internal error of rpc rich.v1.RichService.Misbehave:", cause]]);
  });
});

test("415 names the encodings that are accepted if the encoding is the reason (RFC 9110 section 15.5.16)", async () => {
  const routes = (router: ConnectRouter) => void router.rpc(RichService.method.misbehave, () => ({}));
  await using listener = await openHttp1(createHttpHandler({ routes, tables: [RichServiceRoutes] }));
  const refused = async (headers: Record<string, string>) => {
    const response = await listener.fetchRaw({ method: "POST", target: "/v1/misbehave", headers, body: "{}" });
    return [response.status, response.headers.get("accept-encoding")];
  };
  expect(await refused({ "content-encoding": "br" })).toEqual([415, ["gzip"]]);
  expect(await refused({ "content-type": "text/plain" })).toEqual([415, undefined]);
});
