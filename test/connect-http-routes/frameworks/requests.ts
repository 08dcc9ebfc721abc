/** Requests of every kind: bindings, bodies, streams, bytes, failures. */

export type TableRequest = {
  readonly method: string;
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
};

const JSON_TYPE = { "content-type": "application/json" };
const get = (target: string, headers?: Readonly<Record<string, string>>): TableRequest => ({
  ...{ method: "GET", target },
  ...(headers && { headers }),
});
const send = (
  method: string,
  target: string,
  body: string,
  headers = JSON_TYPE as Readonly<Record<string, string>>,
) => ({
  ...{ method, target, body, headers },
});
const post = (target: string, body: string, headers?: Readonly<Record<string, string>>) =>
  send("POST", target, body, headers);
const misbehave = (how: string) => post("/v1/misbehave", JSON.stringify({ how }));
const BYTES = new Uint8Array([0, 1, 0xff, 0x0d, 0x0a, 0x80]);

/** Requests that express.json() refuses, or changes, before anybody behind it sees them. */
export const TAKEN_BY_EXPRESS_JSON: readonly TableRequest[] = [
  post("/v1/echo", '{"stringValue":'),
  post("/v1/echo", "{}", { ...JSON_TYPE, "content-encoding": "br" }),
  post("/v1/pick/string", '"text"'),
  post("/v1/pick/int64", '"5"'),
  post("/v1/pick/enum", '"NO_SUCH"'),
  post("/v1/pick/value", "null"),
  post("/v1/raw", '{"kept":"as it is"}'),
];

/** An upload: a file and a text. */
const PARTS = [
  ...["--b", 'content-disposition: form-data; name="content"; filename="a"', "content-type: image/png", "", "\x00\x01"],
  ...["--b", 'content-disposition: form-data; name="note"', "", "ä", "--b--", ""],
].join("\r\n");

export const REQUESTS: readonly TableRequest[] = [
  post("/v1/parts/mine", PARTS, { "content-type": "multipart/form-data; boundary=b" }),
  post("/v1/parts/mine", "--b\r\n", { "content-type": "multipart/form-data; boundary=b" }),
  get("/v1/echo"),
  get("/v1/echo?string_value=a%20b&int32Value=7"),
  get("/v1/echo?strings=a&strings=b&nested.name=n"),
  get("/v1/echo?int32_value=x"),
  get("/v1/echo?bool_value=true&unknown=1"),
  get("/v1/others/a%2Fb/true/AQ==/1/1/x"),
  get("/v1/nested/9/n/end"),
  get("/v1/shelves/1/books/2/pages"),
  get("/v1/files/a/b/c"),
  get("/v1/files/a%2Fb/c"),
  get("/v1/files/a/b:seal"),
  get("/v1/tree/a/b/leaf"),
  get("/v1/verbs/x:check"),
  { method: "HEAD", target: "/v1/echo?string_value=a" },
  { method: "DELETE", target: "/v1/echo/18446744073709551615" },
  { method: "DELETE", target: "/v1/echo/-1" },
  { method: "PUT", target: "/v1/echo" },
  { method: "DELETE", target: "/v1/misbehave" },
  post("/v1/echo", "{}"),
  post("/v1/echo", '{"stringValue":"ä€😀","int64Value":"9007199254740993"}'),
  post("/v1/echo", '{"string_value":"proto name"}'),
  post("/v1/echo", '{"timestamp":"2026-01-02T03:04:05.006Z","duration":"1.5s","bytesValue":"AP8="}'),
  post("/v1/echo", '{"nested":{"name":"n","inner":{"id":1}},"strings":["a","b"]}'),
  post("/v1/echo", '{"unknownField":1}'),
  post("/v1/echo", '{"int32Value":"x"}'),
  post("/v1/echo", ""),
  post("/v1/echo", "[]"),
  post("/v1/echo", "{}", { "content-type": "application/json; charset=utf-8" }),
  post("/v1/echo", "{}", {}),
  post("/v1/echo", "<a/>", { "content-type": "application/xml" }),
  post("/v1/echo", "a=b", { "content-type": "application/x-www-form-urlencoded" }),
  post("/v1/echo?string_value=both", '{"int32Value":1}'),
  post("/v1/pick/nested", '{"name":"n"}'),
  post("/v1/pick/strings", '["a"]'),
  post("/v1/pick/map", '{"a":"b"}'),
  send("PUT", "/v1/echo/list", '["a"]'),
  send("PUT", "/v1/echo/nested/5/n", '{"id":"1"}'),
  send("PATCH", "/v1/items/a", '{"title":"t"}'),
  send("PATCH", "/v1/items", '{"item":{"name":"a"}}'),
  post("/v1/raw", "a,b\n", { "content-type": "text/csv" }),
  { method: "POST", target: "/v1/raw", body: BYTES, headers: { "content-type": "application/octet-stream" } },
  { method: "POST", target: "/v1/raw/name", body: BYTES, headers: { "content-type": "image/png" } },
  get("/v1/count/3"),
  get("/v1/count/3", { accept: "text/event-stream" }),
  get("/v1/count/3", { accept: "application/json" }),
  get("/v1/count/3?fail_after=2"),
  get("/v1/count/3?fail_after=1", { accept: "text/event-stream" }),
  get("/v1/download/3"),
  misbehave("bug"),
  misbehave("detail"),
  misbehave("created"),
  misbehave("elsewhere"),
  misbehave("no content"),
  misbehave("trailer"),
  misbehave("unknown detail"),
];
