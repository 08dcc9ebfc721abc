/** Both APIs refuse JSON bodies whose values JavaScript would change when it parses them. */
import { describe, expect, test } from "vitest";
import { aService } from "../../support/every-protocol.ts";
import { request } from "../../support/raw-http.ts";
import { admin, bearer, cookie, logIn, message, openAdmin } from "../../support/sessions.ts";

const service = aService();
const post = (url: string, rpc: string, body: string | Buffer, type = "application/json") =>
  request(url, {
    method: "POST",
    path: `/${rpc}`,
    headers: { "content-type": type, ...bearer(service.adminToken) },
    body,
  });
const create = (body: string | Buffer, type?: string) =>
  post(service.adminUrl, "auth.admin.v1.SessionAdminService/CreateSession", body, type);

/** Encodes a message with field 1, a subject, and field 2, claims with one number. */
function binary(subject: Buffer, number: number): Buffer {
  const double = Buffer.alloc(8);
  double.writeDoubleLE(number);
  const field = (tag: number, bytes: Buffer) => Buffer.concat([Buffer.of(tag, bytes.length), bytes]);
  const value = Buffer.concat([Buffer.of(0x11), double]);
  const entry = Buffer.concat([field(0x0a, Buffer.from("a")), field(0x12, value)]);
  return Buffer.concat([field(0x0a, subject), field(0x12, field(0x0a, entry))]);
}

describe("CreateSession", () => {
  test.each<[string, string | Buffer, string?]>([
    ["a subject whose bytes are not UTF-8", Buffer.from('{"subject":"a\xff"}', "latin1")],
    ["a subject that is cut in a character", Buffer.from('{"subject":"a\xc3"}', "latin1")],
    ["a subject with half of a surrogate pair", '{"subject":"a\\ud800"}'],
    ["a claim whose bytes are not UTF-8", Buffer.from('{"subject":"a","claims":{"x":"\xff"}}', "latin1")],
    ["a claim with half of a surrogate pair", '{"subject":"a","claims":{"x":["\\udc00"]}}'],
    ["a claim named by half of a surrogate pair", '{"subject":"a","claims":{"x":{"\\ud800":1}}}'],
    ["a claim too large for a number", '{"subject":"a","claims":{"x":1e400}}'],
    ["a claim too large for a number, deep inside", '{"subject":"a","claims":{"x":[{"y":-1e999}]}}'],
    ["the binary form of such a subject", binary(Buffer.of(0xff), 1), "application/proto"],
    ["the binary form of infinity", binary(Buffer.from("a"), Number.POSITIVE_INFINITY), "application/proto"],
    ["the binary form of no number", binary(Buffer.from("a"), Number.NaN), "application/proto"],
  ])("refuses %s", async (_, body, type) => {
    const response = await create(body, type);
    expect(response.status).toBe(400);
    expect(response.body).toContain("invalid_argument");
  });

  test("takes what is the replacement character, other planes and large numbers", async () => {
    expect((await create(binary(Buffer.from("ok"), 1.5), "application/proto")).status).toBe(200);
    const response = await create('{"subject":"a\ufffd","claims":{"x":"\\ud834\\udd1e","y":1e300}}');
    expect(JSON.parse(response.body).session).toMatchObject({ subject: "a\ufffd", claims: { x: "𝄞", y: 1e300 } });
    const found = await openAdmin(service).call(admin.listSessions, { subject: "a\ufffd" }, bearer(service.adminToken));
    expect(message(found).sessions).toHaveLength(1);
  });
});

test("the public API refuses a body that is not UTF-8, by RPC and by route", async () => {
  const body = Buffer.from('{"x":"\xff"}', "latin1");
  const headers = { "content-type": "application/json", ...cookie((await logIn(service)).refreshToken) };
  for (const path of ["/auth.v1.SessionService/Refresh", "/v1/auth/refresh"]) {
    const response = await request(service.publicUrl, { method: "POST", path, headers, body });
    expect(response.status, path).toBe(400);
  }
});
