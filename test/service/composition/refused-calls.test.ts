/** Calls that are refused before any RPC get an error in the format of their protocol, on both APIs. */
import { connect as connectHttp2 } from "node:http2";
import { Code } from "@connectrpc/connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import { Client, credentials, status } from "@grpc/grpc-js";
import { describe, expect, test } from "vitest";
import { ErrorDetailSchema } from "../../../gen/auth/v1/session_pb.ts";
import { aService } from "../../support/every-protocol.ts";
import { type RawRequest, request } from "../../support/raw-http.ts";
import { bearer, cookie, logIn } from "../../support/sessions.ts";

const service = aService();
const JSON_TYPE = { "content-type": "application/json" };
const PUBLIC = "/auth.v1.SessionService";
const ADMIN = "/auth.admin.v1.SessionAdminService";

describe.each([
  ["public", PUBLIC, () => service.publicUrl],
  ["admin", ADMIN, () => service.adminUrl],
])("the %s API", (_, rpc, url) => {
  const ask = (wanted: RawRequest) =>
    request(url(), { ...wanted, headers: { ...bearer(service.adminToken), ...wanted.headers } });

  test.each<[string, Omit<RawRequest, "path">, number, string, string]>([
    ["another HTTP method", { method: "PUT" }, 405, "unimplemented", "E405_METHOD_NOT_ALLOWED"],
    ["no method at all", { method: "DELETE", headers: JSON_TYPE }, 405, "unimplemented", "E405_METHOD_NOT_ALLOWED"],
    ["text", { headers: { "content-type": "text/plain" } }, 415, "invalid_argument", "E415_UNSUPPORTED_MEDIA_TYPE"],
    [
      "a form of gRPC that is none",
      { headers: { "content-type": "application/grpc+x" } },
      415,
      "invalid_argument",
      "E415",
    ],
  ])("refuses a call by %s as it refuses others", async (_name, wanted, expected, code, ours) => {
    const response = await ask({ method: "POST", path: `${rpc}/ListSessions`, body: "{}", ...wanted });
    expect([response.status, response.headers.get("content-type")]).toEqual([expected, "application/json"]);
    expect(response.headers.get("allow")).toBe(expected === 405 ? "POST, GET, OPTIONS" : null);
    const error = JSON.parse(response.body) as { code: string; message: string; details: { value: string }[] };
    expect([error.code, error.message]).toEqual([code, expect.stringContaining(expected === 405 ? "method" : "type")]);
    expect(Buffer.from(error.details[0]?.value ?? "", "base64").toString()).toContain(ours);
  });

  test("names the methods of a call to those who ask, and has no body for HEAD", async () => {
    const path = `${rpc}/Logout`.replace(`${ADMIN}/Logout`, `${ADMIN}/RevokeSession`);
    const options = await ask({ method: "OPTIONS", path });
    expect([options.status, options.headers.get("allow"), options.body]).toEqual([204, "POST, OPTIONS", ""]);
    const head = await ask({ method: "HEAD", path });
    expect([head.status, head.headers.get("allow"), head.body]).toEqual([405, "POST, OPTIONS", ""]);
  });

  test("has UNIMPLEMENTED for a gRPC call of a method that it has not", async () => {
    const client = new Client(new URL(url()).host, credentials.createInsecure());
    const bytes = (value: Buffer) => value;
    const codes = ["/nothing.v1.Nothing/Do", `${rpc}/Nothing`].map(
      (path) =>
        new Promise((resolve) => {
          client.makeUnaryRequest(path, bytes, bytes, Buffer.alloc(0), (error) =>
            resolve([error?.code, error?.details]),
          );
        }),
    );
    expect(await Promise.all(codes)).toEqual(Array(2).fill([status.UNIMPLEMENTED, "no such method"]));
    client.close();
  });

  test.each(["application/grpc", "application/grpc+proto", "application/grpc-web+proto"])(
    "says so where %s wants it, and is a 404 to others",
    async (type) => {
      const path = `${rpc}/Nothing`;
      const response = await ask({ method: "POST", path, headers: { "content-type": `${type}; charset=x` } });
      const error = findTrailerError(response.headers);
      expect([response.status, response.headers.get("content-type"), response.body]).toEqual([200, type, ""]);
      expect([error?.code, error?.findDetails(ErrorDetailSchema)[0]?.code]).toEqual([
        Code.Unimplemented,
        "E404_NOT_FOUND",
      ]);
      const other = await ask({ method: "POST", path, headers: JSON_TYPE, body: "{}" });
      expect([other.status, other.headers.get("content-type")]).toEqual([404, "application/json"]);
      expect((await ask({ path, headers: { "content-type": type } })).status).toBe(404);
    },
  );
});

test("the admin API has no such path, as Connect says it", async () => {
  const { status: code, body } = await request(service.adminUrl, { path: "/nowhere" });
  expect([code, (JSON.parse(body) as { code: string }).code]).toEqual([404, "unimplemented"]);
});

describe.each([
  ["gRPC", "application/grpc+proto"],
  ["gRPC-Web", "application/grpc-web+proto"],
])("over %s", (name, type) => {
  const call = (path: string, headers: Record<string, string>, body: Buffer) =>
    grpc(
      name === "gRPC",
      path.startsWith(ADMIN) ? service.adminUrl : service.publicUrl,
      path,
      {
        "content-type": type,
        ...headers,
      },
      body,
    );
  const EMPTY = Buffer.alloc(5);

  test.each([`${PUBLIC}/Refresh`, `${ADMIN}/WatchRevocations`])(
    "an unknown compression is UNIMPLEMENTED, with those that are known: %s",
    async (path) => {
      const compressed = Buffer.concat([Buffer.from([1, 0, 0, 0, 2]), Buffer.from("{}")]);
      const headers = {
        "grpc-encoding": "br",
        ...bearer(service.adminToken),
        ...cookie((await logIn(service)).refreshToken),
      };
      const { error, header } = await call(path, headers, compressed);
      expect([error?.code, error?.findDetails(ErrorDetailSchema)[0]?.code]).toEqual([
        Code.Unimplemented,
        "E415_UNSUPPORTED_MEDIA_TYPE",
      ]);
      expect(header.get("grpc-accept-encoding")).toBe("gzip");
    },
  );

  test.each([
    ["none", Buffer.alloc(0)],
    ["two", Buffer.alloc(10)],
  ])("%s instead of one message is UNIMPLEMENTED, and not NOT_FOUND", async (_, body) => {
    const { error } = await call(`${PUBLIC}/Refresh`, cookie((await logIn(service)).refreshToken), body);
    expect([error?.code, error?.findDetails(ErrorDetailSchema)[0]?.code]).toEqual([
      Code.Unimplemented,
      "E400_INVALID_REQUEST",
    ]);
  });

  test.each([`${PUBLIC}/Refresh`, `${PUBLIC}/Logout`, `${ADMIN}/GetSession`, `${ADMIN}/WatchRevocations`])(
    "what is UNAUTHENTICATED has a challenge: %s",
    async (path) => {
      const { error, challenge } = await call(path, {}, EMPTY);
      expect([error?.code, challenge]).toEqual([Code.Unauthenticated, "Bearer"]);
    },
  );
});

/** Makes a call over HTTP/2 with exactly these bytes. Returns its error as clients parse it. */
async function grpc(isGrpc: boolean, url: string, path: string, headers: Record<string, string>, body: Buffer) {
  const session = connectHttp2(url);
  try {
    const stream = session.request({ ":method": "POST", ":path": path, te: "trailers", ...headers });
    const header = new Headers();
    const trailer = new Headers();
    const fill = (into: Headers) => (fields: object) => {
      for (const [name, value] of Object.entries(fields)) if (!name.startsWith(":")) into.set(name, String(value));
    };
    stream.on("response", fill(header)).on("trailers", fill(trailer));
    stream.end(body);
    const content = Buffer.concat(await stream.toArray());
    if (!isGrpc) {
      for (const line of content.subarray(5).toString().split("\r\n")) {
        const at = line.indexOf(":");
        if (at > 0) trailer.set(line.slice(0, at), line.slice(at + 1).trim());
      }
    }
    const error = findTrailerError(trailer) ?? findTrailerError(header);
    return { error, header, challenge: trailer.get("www-authenticate") ?? header.get("www-authenticate") };
  } finally {
    session.destroy();
  }
}
