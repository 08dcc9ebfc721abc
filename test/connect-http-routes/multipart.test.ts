import fc from "fast-check";
import { expect, test } from "vitest";
import { parseMultipart } from "../../src/connect-http-routes/codec/multipart-parser.ts";
import { createFetchHandler, createHttpHandler, type TableOptions } from "../../src/connect-http-routes/index.ts";
import { RichServiceRoutes } from "./gen/rich/v1/rich_http.ts";
import { richRoutes } from "./support/rich-service.ts";
import { openFetch, openHttp1 } from "./support/servers.ts";

const TARGET = "/v1/parts/mine";
const BYTES = Uint8Array.from({ length: 256 }, (_, byte) => byte);
const PNG = new File([BYTES], "a.png", { type: "image/png" });

/** Encodes parts as a browser does. */
async function encode(parts: readonly (readonly [name: string, value: string | File])[]) {
  const form = new FormData();
  for (const [name, value] of parts) typeof value === "string" ? form.append(name, value) : form.append(name, value);
  const request = new Request("http://127.0.0.1", { method: "POST", body: form });
  const type = request.headers.get("content-type") ?? "";
  return { type, body: new Uint8Array(await request.arrayBuffer()) };
}

const OPTIONS = { routes: richRoutes, multipart: true };

async function upload(body: string | Uint8Array, type: string, options: TableOptions & { readMaxBytes?: number } = {}) {
  const handler = createHttpHandler({ ...OPTIONS, tables: [{ ...RichServiceRoutes, ...options }], ...options });
  await using listener = await openHttp1(handler);
  const request = { method: "POST", target: TARGET, headers: { "content-type": type }, body };
  const response = await listener.fetchRaw(request);
  // The server of fetch has to respond in the same way.
  const other = await openFetch(createFetchHandler({ ...OPTIONS, tables: [RichServiceRoutes], ...options })).fetchRaw(
    request,
  );
  expect([other.status, other.text]).toEqual([response.status, response.text]);
  return response;
}

const send = async (...parts: (readonly [name: string, value: string | File])[]) => {
  const { body, type } = await encode(parts);
  const response = await upload(body, type);
  return response.status === 200
    ? response.json()
    : `${response.status} ${(response.json() as { message: string }).message}`;
};

test("files are fields of the types HttpBody and bytes, and other parts are named as in a query", async () => {
  const data = Buffer.from(BYTES).toString("base64");
  const picture = { contentType: "image/png", data };
  expect(
    await send(
      ["content", PNG],
      ["more", PNG],
      ["more", PNG],
      ["thumbnail", PNG],
      ["note", "ä & b"],
      ["about.name", "n"],
    ),
  ).toEqual({
    name: "mine",
    content: picture,
    more: [picture, picture],
    thumbnail: data,
    note: "ä & b",
    about: { name: "n" },
  });
  expect(await send()).toEqual({ name: "mine" });
});

test("messages are parts of JSON, as texts or as files", async () => {
  const json = (value: object) => new File([JSON.stringify(value)], "blob", { type: "application/json" });
  const [a, b] = [{ name: "a" }, { name: "b", inner: { id: "9007199254740993" } }];
  expect(await send(["about", JSON.stringify(b)], ["others", json(a)], ["others", json(b)])).toEqual({
    ...{ name: "mine", about: b, others: [a, b] },
  });
  expect(await send(["others", JSON.stringify([a, b])])).toEqual({ name: "mine", others: [a, b] });
  expect(await send(["content", "text"])).toEqual({
    name: "mine",
    content: { contentType: "text/plain; charset=utf-8", data: "dGV4dA==" },
  });
});

test.each([
  [
    "a singular file twice",
    [
      ["content", PNG],
      ["content", PNG],
    ],
    "400 body: content: given more than once",
  ],
  [
    "a singular message twice",
    [
      ["about", "{}"],
      ["about", "{}"],
    ],
    "400 body: about: given more than once",
  ],
  [
    "a text twice",
    [
      ["note", "a"],
      ["note", "b"],
    ],
    "400 query: note: given more than once",
  ],
  [
    "two members of a oneof",
    [
      ["url", "a"],
      ["original", PNG],
    ],
    "400 body: original: url of the same oneof is given too",
  ],
  ["a message that is no JSON", [["about", '{}, "note": "b"']], "400 body: about: not JSON"],
  ["a file for a text that is not UTF-8", [["note", PNG]], "400 body: not UTF-8"],
] as const)("%s: refused", async (_, parts, message) => {
  expect(await send(...parts)).toBe(message);
});

test("the path wins, and an unknown part is ignored, or refused by option", async () => {
  const { body, type } = await encode([
    ["name", "theirs"],
    ["stray", "x"],
  ]);
  expect((await upload(body, type)).json()).toEqual({ name: "mine" });
  const stray = await encode([["stray", "x"]]);
  const refused = await upload(stray.body, stray.type, { refuseUnknownQuery: true });
  expect([refused.status, (refused.json() as { message: string }).message]).toEqual([
    400,
    "query: stray: unknown parameter",
  ]);
});

test.each([
  [
    "an unfinished body",
    "--b\r\ncontent-disposition: form-data; name=note\r\n\r\nx",
    "multipart/form-data; boundary=b",
  ],
  ["no boundary", "--b--", "multipart/form-data; charset=utf-8"],
  ["another boundary", "--b--\r\n", "multipart/form-data; boundary=c"],
  ["an empty body", "", "multipart/form-data; boundary=b"],
])("%s: 400", async (_, body, type) => {
  const response = await upload(body, type);
  expect([response.status, (response.json() as { message: string }).message]).toEqual([
    400,
    "body: not multipart/form-data",
  ]);
});

test("the number of parts and the bytes are bounded", async () => {
  const { body, type } = await encode(Array.from({ length: 1_001 }, (_, index) => [`x${index}`, ""] as const));
  const response = await upload(body, type);
  expect([response.status, (response.json() as { message: string }).message]).toEqual([
    400,
    "body: more than 1000 parts",
  ]);
  const most = await encode(Array.from({ length: 1_000 }, (_, index) => [`x${index}`, ""] as const));
  expect((await upload(most.body, most.type)).status).toBe(200);
  expect((await upload(body, type, { readMaxBytes: 100 })).status).toBe(413);
});

test("whatever a browser sends is read as the runtime of Node reads it", async () => {
  const text = fc.string({ unit: fc.constantFrom("a", '"', "\\", "%", "22", ";", "=", "ä", "😀", "\r\n", "--", " ") });
  // Node's encoder leaves an empty file name out.
  const named = text.filter((name) => name !== "");
  const value = fc.oneof(
    text,
    fc.tuple(fc.uint8Array(), named).map(([bytes, name]) => new File([bytes], name, { type: "image/png" })),
  );
  const form = fc.array(
    fc.tuple(
      text.filter((name) => name !== ""),
      value,
    ),
    { minLength: 1, maxLength: 5 },
  );
  const property = fc.asyncProperty(form, async (parts) => {
    const { body, type } = await encode(parts);
    const expected: unknown[] = [];
    for (const [name, part] of await new Response(body, { headers: { "content-type": type } }).formData()) {
      const isFile = typeof part !== "string";
      const bytes = isFile ? new Uint8Array(await part.arrayBuffer()) : new TextEncoder().encode(part);
      expected.push([name, isFile ? part.type : undefined, Buffer.from(bytes).toString("base64")]);
    }
    const read = parseMultipart(body, type).map(({ name, fileType, data }) => [
      ...[name, fileType, Buffer.from(data).toString("base64")],
    ]);
    expect(read).toEqual(expected);
  });
  await fc.assert(property, { numRuns: 200 });
});

test.each([
  ["a head without a name", '--b\r\ncontent-disposition: form-data; filename="; name=a"\r\n\r\nx\r\n--b--'],
  ["another disposition", "--b\r\ncontent-disposition: attachment; name=a\r\n\r\nx\r\n--b--"],
  [
    "an encoding",
    "--b\r\ncontent-disposition: form-data; name=a\r\ncontent-transfer-encoding: base64\r\n\r\nx\r\n--b--",
  ],
  ["no line break after the boundary", "--bcontent-disposition: form-data; name=a\r\n\r\nx\r\n--b--"],
  ["a long head", `--b\r\ncontent-disposition: form-data; name=${"a".repeat(9_000)}\r\n\r\nx\r\n--b--`],
])("%s: refused", (_, body) => {
  expect(() => parseMultipart(Buffer.from(body), "multipart/form-data; boundary=b")).toThrow("not multipart/form-data");
});

test("text around the parts, spaces after a boundary and a quoted boundary are allowed", () => {
  const body = "before\r\n--b c \t\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n--b c--\r\nafter";
  expect(parseMultipart(Buffer.from(body), 'multipart/form-data; boundary="b c"')).toEqual([
    { name: "a", fileType: undefined, data: Buffer.from("x") },
  ]);
});

test("it is an option, and one of a table", async () => {
  const { body, type } = await encode([["note", "a"]]);
  expect((await upload(body, type, { multipart: false })).status).toBe(415);
});
