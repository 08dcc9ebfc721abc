import { beforeAll, describe, expect, test } from "vitest";
import { compile, type Generate, protoFile } from "./compile.ts";

/** Each case has a name, the position of the error (line in the service body and column, both from 1), and its message. */
const problems: [what: string, rpcs: string, at: string, message: string][] = [
  [
    "a template that does not parse",
    `rpc Get(Book) returns (Book) { option (google.api.http) = {get: "/v1/{name"}; }`,
    "1:60",
    `invalid path template "/v1/{name": column 10: expected "}", found the end`,
  ],
  [
    "an empty template",
    `rpc Get(Book) returns (Book) { option (google.api.http) = {get: ""}; }`,
    "1:60",
    `invalid path template "": column 1: expected "/", found the end`,
  ],
  [
    "nested variables",
    `rpc Get(Book) returns (Book) { option (google.api.http) = {get: "/v1/{name=a/{author.name}}"}; }`,
    "1:60",
    "column 13: a variable inside a variable",
  ],
  [
    "a variable twice",
    `rpc Get(Book) returns (Book) { option (google.api.http) = {get: "/v1/{name}/{name}"}; }`,
    "1:60",
    `column 12: duplicate variable "name"`,
  ],
  [
    "a variable after **",
    `rpc Get(Book) returns (Book) { option (google.api.http) = {get: "/v1/{name=**}/{author.name}"}; }`,
    "1:60",
    `only literals may follow "**"`,
  ],
  [
    "no such field in the path",
    `rpc Get(Book) returns (Book) { option (google.api.http) = {get: "/v1/{title}"}; }`,
    "1:60",
    `invalid path variable "title" in "/v1/{title}": message nofield.Book has no field "title"`,
  ],
  [
    "no such nested field",
    `rpc Get(Book) returns (Book) { option (google.api.http) = {get: "/v1/{author.age}"}; }`,
    "1:60",
    `message nonested.Author has no field "age"`,
  ],
  [
    "a field of a scalar",
    `rpc Get(Book) returns (Book) { option (google.api.http) = {get: "/v1/{name.x}"}; }`,
    "1:60",
    `field "name" of name.x is not a message, it has no fields`,
  ],
  [
    "a repeated field in the path",
    `rpc Get(Book) returns (Book) { option (google.api.http) = {get: "/v1/{tags}"}; }`,
    "1:60",
    `"tags" is a repeated field`,
  ],
  [
    "a field of a repeated message",
    `rpc Get(Book) returns (Book) { option (google.api.http) = {get: "/v1/{others.name}"}; }`,
    "1:60",
    `field "others" of others.name is not a message`,
  ],
  [
    "a map in the path",
    `rpc Get(Book) returns (Book) { option (google.api.http) = {get: "/v1/{labels}"}; }`,
    "1:60",
    `"labels" is a map field`,
  ],
  [
    "a message in the path",
    `rpc Get(Book) returns (Book) { option (google.api.http) = {get: "/v1/{author}"}; }`,
    "1:60",
    `"author" is a message field of type messagepath.Author`,
  ],
  [
    "arbitrary JSON in the path",
    `rpc Get(Book) returns (Book) { option (google.api.http) = {get: "/v1/{value}"}; }`,
    "1:60",
    `"value" is a message field of type google.protobuf.Value`,
  ],
  [
    "a field of what is one value in JSON",
    `rpc Get(Book) returns (Book) { option (google.api.http) = {get: "/v1/{value.number_value}"}; }`,
    "1:60",
    `"value" is a google.protobuf.Value, which has no fields in JSON`,
  ],
  [
    "a variable and a part of it",
    `rpc Get(Book) returns (Book) { option (google.api.http) = {get: "/v1/{at}/{at.seconds}"}; }`,
    "1:60",
    `which has no fields in JSON`,
  ],
  [
    "two variables of one oneof",
    `rpc Get(Book) returns (Book) { option (google.api.http) = {get: "/v1/{fiction}/{shelf}"}; }`,
    "1:60",
    `invalid path variable "shelf" in "/v1/{fiction}/{shelf}": "fiction" of the same oneof is bound too`,
  ],
  [
    "a JSON name instead of the field's name",
    `rpc Get(Camel) returns (Book) { option (google.api.http) = {get: "/v1/{bookName}"}; }\n}\nmessage Camel {string book_name = 1;`,
    "1:61",
    `message jsonname.Camel has no field "bookName"`,
  ],
  [
    "no such body field",
    `rpc Put(Book) returns (Book) {\n  option (google.api.http) = {\n    put: "/v1/x"\n    body: "title"\n  };\n}`,
    "4:5",
    `message nobodyfield.Book has no field "title"`,
  ],
  [
    "a body inside a field",
    `rpc Put(Book) returns (Book) { option (google.api.http) = {put: "/v1/x" body: "author.name"}; }`,
    "1:73",
    `message bodypath.Book has no field "author.name"`,
  ],
  [
    "GET with a body",
    `rpc Get(Book) returns (Book) { option (google.api.http) = {get: "/v1/x" body: "*"}; }`,
    "1:73",
    "GET cannot have a body",
  ],
  [
    "HEAD with a body",
    `rpc Get(Book) returns (Book) { option (google.api.http) = {custom {kind: "HEAD" path: "/v1/x"} body: "*"}; }`,
    "1:96",
    "HEAD cannot have a body",
  ],
  [
    "no such response field",
    `rpc Get(Book) returns (Book) { option (google.api.http) = {get: "/v1/x" response_body: "title"}; }`,
    "1:73",
    `message noresponse.Book has no field "title"`,
  ],
  [
    "a rule without a pattern",
    `rpc Get(Book) returns (Book) { option (google.api.http) = {body: "*"}; }`,
    "1:39",
    "no HTTP method and path",
  ],
  [
    "a custom kind that is no HTTP method",
    `rpc Get(Book) returns (Book) { option (google.api.http) = {custom {kind: "LOOK AT" path: "/v1/x"}}; }`,
    "1:39",
    `custom kind "LOOK AT" is not an HTTP method`,
  ],
  [
    "additional bindings that nest",
    `rpc Get(Book) returns (Book) { option (google.api.http) = {get: "/v1/x" additional_bindings {get: "/v1/y" additional_bindings {get: "/v1/z"}}}; }`,
    "1:73",
    "additional_bindings do not nest",
  ],
  [
    "a fault in an additional binding",
    `rpc Get(Book) returns (Book) {\n  option (google.api.http) = {\n    get: "/v1/x"\n    additional_bindings {get: "/v1/y"}\n    additional_bindings {get: "/v1/{"}\n  };\n}`,
    "5:5",
    `invalid path template "/v1/{": column 6: expected a field name, found the end`,
  ],
  [
    "client streaming without a body",
    `rpc Put(stream Book) returns (Book) { option (google.api.http) = {post: "/v1/x"}; }`,
    "1:46",
    "a request stream needs a body to carry its messages",
  ],
  [
    "bidirectional streaming without a body",
    `rpc Put(stream Book) returns (stream Book) { option (google.api.http) = {post: "/v1/x"}; }`,
    "1:53",
    "a request stream needs a body to carry its messages",
  ],
  [
    "one route twice",
    `rpc One(Book) returns (Book) { option (google.api.http) = {get: "/v1/{name}"}; }\nrpc Two(Book) returns (Book) { option (google.api.http) = {get: "/v1/{author.name=*}"}; }`,
    "2:60",
    "twice.Library.Two (GET /v1/{author.name=*}) is the same route as twice.Library.One (GET /v1/{name})",
  ],
];

const packages = [
  "unparsed",
  "emptytemplate",
  "nested",
  "duplicate",
  "afterstars",
  "nofield",
  "nonested",
  "nomessage",
  "repeatedpath",
  "repeatedwithin",
  "mappath",
  "messagepath",
  "jsonpath",
  "ownjson",
  "partof",
  "oneofs",
  "jsonname",
  "nobodyfield",
  "bodypath",
  "getbody",
  "headbody",
  "noresponse",
  "nopattern",
  "badkind",
  "nesting",
  "additional",
  "clientstream",
  "bidi",
  "twice",
];

const VERBS = ["get", "put", "post", "delete", "patch"];

const STRICT = "target=ts,import_extension=ts,strict=true";

describe("the plugin refuses, with file, line and reason,", () => {
  let generate: Generate;
  let bodyStart = 0;
  beforeAll(() => {
    const sources = problems.map(([, rpcs], index) => [
      `${packages[index]}.proto`,
      protoFile(packages[index] ?? "", rpcs),
    ]);
    sources.push([
      "one.proto",
      protoFile("one", `rpc A(Book) returns (Book) { option (google.api.http) = {get: "/v1/a"}; }`),
    ]);
    sources.push([
      "two.proto",
      protoFile("two", `rpc B(Book) returns (Book) { option (google.api.http) = {get: "/v1/%61"}; }`),
    ]);
    for (const verb of VERBS) {
      const rpc = `rpc Get(Book) returns (Book) { option (google.api.http) = {${verb}: "/v1/{"}; }`;
      sources.push([`in${verb}.proto`, protoFile(`in${verb}`, rpc)]);
    }
    bodyStart = protoFile("x", "").split("\n").indexOf("service Library {") + 1;
    generate = compile(Object.fromEntries(sources) as Record<string, string>);
  });

  test.each(problems.map(([what, , at, message], index) => [what, packages[index] ?? "", at, message]))(
    "%s",
    (_, name, at, expected) => {
      const [line, column] = at.split(":").map(Number);
      const message = messageOf(() => generate([`${name}.proto`], STRICT));
      expect(message).toContain(expected);
      expect(message).toMatch(new RegExp(`^${name}\\.proto:${bodyStart + (line ?? 0)}:${column}: rpc (Get|Put|Two): `));
      expect(message.split("\n")).toHaveLength(1);
    },
  );

  test.each(VERBS)("a template of %s that does not parse", (verb) => {
    const message = messageOf(() => generate([`in${verb}.proto`], STRICT));
    expect(message).toMatch(
      new RegExp(`^in${verb}\\.proto:${bodyStart + 1}:60: rpc Get: invalid path template "/v1/{"`),
    );
  });

  test("one route in two files", () => {
    const message = messageOf(() => generate(["one.proto", "two.proto"]));
    expect(message).toContain("two.Library.B (GET /v1/%61) is the same route as one.Library.A (GET /v1/a)");
    expect(message).toMatch(/^two\.proto:/);
  });

  test("with all problems of all files", () => {
    const message = messageOf(() => generate(["nofield.proto", "getbody.proto"], STRICT));
    expect(message.split("\n")).toHaveLength(2);
  });

  test("one route twice in one file, naming both RPCs, even if not strict", () => {
    const message = messageOf(() => generate(["twice.proto"]));
    expect(message).toMatch(
      /^twice\.proto:\d+:\d+: rpc \w+: twice\.Library\.\w+ \(.*\) is the same route as twice\.Library\.\w+ /,
    );
  });

  test("an unknown value of an option", () => {
    expect(messageOf(() => generate(["one.proto"], "target=ts,strict=maybe"))).toContain("expected true or false");
  });

  test("an unknown option", () => {
    expect(messageOf(() => generate(["one.proto"], "target=ts,speed=high"))).toContain("speed");
  });
});

function messageOf(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  return "nothing was refused";
}
