/** The generated documents pass the recommended rules of two public linters, Redocly and Spectral, without errors. */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { describeDirectory, describeText, generated } from "./describe.ts";
import type { Document } from "./document.ts";

const directory = mkdtempSync(join(tmpdir(), "lint-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** A plugin cannot know the license, the servers and the credentials of a service, so an overlay adds them. */
const OVERLAY = join(directory, "overlay.json");
writeFileSync(
  OVERLAY,
  JSON.stringify({
    document: {
      info: { license: { name: "Apache 2.0", identifier: "Apache-2.0" } },
      components: { securitySchemes: { key: { type: "apiKey", in: "header", name: "x-api-key" } } },
    },
    operations: { "*": { security: [{ key: [] }] } },
  }),
);

interface Finding {
  readonly ruleId: string;
  readonly severity: "error" | "warn";
  readonly message: string;
  readonly location: readonly { readonly pointer?: string }[];
}

/** Runs a linter of test/dependencies/tools. A linter exits with 1 if there are errors. That is not a failure here. */
function run(args: readonly string[]): Promise<string> {
  const env = { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" };
  const [program = "", ...others] = args;
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [join("test/dependencies/tools/node_modules", program), ...others],
      { env, maxBuffer: 2 ** 26 },
      (_, stdout) => resolve(stdout),
    );
  });
}

/** Writes a file. The configurations are written too, so that no linter uses one of the working directory. */
function write(name: string, text: string): string {
  writeFileSync(join(directory, name), text);
  return join(directory, name);
}

/** Returns the findings of Redocly's recommended rules, for each file. */
async function lintByRedocly(files: readonly string[]): Promise<Finding[][]> {
  const config = write("redocly.yaml", "extends: [recommended]\n");
  const options = ["--config", config, "--format", "json", "--max-problems", "1000"];
  const output = await run(["@redocly/cli/bin/cli.js", "lint", ...files, ...options]);
  // The linter prints a JSON text for each file.
  const texts = output.trim().split(/(?<=^\})\s*(?=\{)/m);
  return texts.map((text) => (JSON.parse(text) as { problems: Finding[] }).problems);
}

/** Returns the errors of Spectral's rules for OpenAPI, for each file. */
async function lintBySpectral(files: readonly string[]): Promise<string[][]> {
  const rules = write("spectral.yaml", 'extends: ["spectral:oas"]\n');
  const options = ["--ruleset", rules, "--format", "json"];
  const output = await run(["@stoplight/spectral-cli/dist/index.js", "lint", ...files, ...options]);
  type Result = { severity: number; code: string; message: string; path: string[]; source: string };
  const found = JSON.parse(output) as Result[];
  const errors = found.filter(({ severity }) => severity === 0);
  return files.map((file) =>
    errors
      .filter(({ source }) => source.endsWith(basename(file)))
      .map(({ code, message, path }) => `${code}: ${path.join(".")}: ${message}`),
  );
}

/** Redocly wrongly reports that the fields of `required` are undefined if they are defined above a `not`. */
const isOfNone = ({ ruleId, location }: Finding) =>
  ruleId === "no-required-schema-properties-undefined" &&
  /\/not\/(?:anyOf\/\d+\/)?required\//.test(location[0]?.pointer ?? "");

const describeFinding = ({ ruleId, message, location }: Finding) => `${ruleId}: ${location[0]?.pointer}: ${message}`;

/** A .proto file with every feature of the plugin. It does not have every kind of field and binding. */
const FEATURES = `
  // Keeps books.
  service Library {
    // Adds a book.
    rpc Add(Book) returns (Book) { option (google.api.http) = {post: "/v1/{shelf=shelves/*}/books" body: "*"}; }
    // Finds books.
    rpc Find(Query) returns (stream Book) { option (google.api.http) = {get: "/v1/books:find"}; }
    // Removes a book.
    rpc Remove(Book) returns (google.protobuf.Empty) {
      option deprecated = true;
      option (google.api.http) = {delete: "/v1/books/{id}" additional_bindings {custom {kind: "PURGE" path: "/v1/books/{id}"}}}; }
    // Takes many.
    rpc Import(stream Book) returns (Book) { option (google.api.http) = {post: "/v1/books:import" body: "*"}; }
    // Takes a file.
    rpc Cover(google.api.HttpBody) returns (google.api.HttpBody) { option (google.api.http) = {put: "/v1/cover" body: "*"}; }
  }
  // A book.
  message Book {
    option (buf.validate.message).oneof = {fields: ["isbn", "title"], required: true};
    string id = 1 [(google.api.field_info).format = UUID4, (google.api.field_behavior) = IMMUTABLE];
    string shelf = 2 [(google.api.field_behavior) = REQUIRED];
    optional string isbn = 3 [(buf.validate.field).string = {pattern: "^[0-9]{13}$", example: "9780441172719"}];
    optional string title = 4 [(buf.validate.field).string = {min_len: 1, max_len: 200}];
    int64 pages = 5 [(buf.validate.field).int64 = {gt: 0, lte: 10000}];
    double price = 6 [(buf.validate.field).double = {gte: 0, finite: true}];
    Kind kind = 7 [(buf.validate.field).enum = {defined_only: true, not_in: [0]}];
    repeated string tags = 8 [(buf.validate.field).repeated = {max_items: 8, unique: true, items: {string: {max_len: 20}}}];
    map<string, int32> counts = 9 [(buf.validate.field).map = {max_pairs: 4, keys: {string: {min_len: 1}}, values: {int32: {gte: 0}}}];
    google.protobuf.Timestamp added = 10 [(google.api.field_behavior) = OUTPUT_ONLY];
    google.protobuf.Duration loan = 11 [deprecated = true];
    oneof cover { option (buf.validate.oneof).required = true; string url = 12 [(buf.validate.field).string.uri = true]; bytes image = 13; }
    Book sequel = 14;
  }
  // What is asked for.
  message Query { string text = 1; map<string, string> labels = 2; google.protobuf.FieldMask fields = 3; Kind kind = 4; }
  // What a book is.
  enum Kind {
    // The kind is not known.
    KIND_UNSPECIFIED = 0;
    // Invented.
    KIND_NOVEL = 1;
  }`;

const MEDIA_TYPES = "media_type=application/x-protobuf,media_type=application/yaml";
const HANDLER = "options=test/protoc-gen-http-openapi/fixtures/handler-options.ts";
const RICH = "test/connect-http-routes/proto";
const documents: [string, Document][] = [
  ["the public API", generated],
  ["the admin API", JSON.parse(readFileSync("gen/openapi-admin.json", "utf8"))],
  ["every kind of field and binding", describeDirectory(RICH, `overlay=${OVERLAY},${MEDIA_TYPES}`)],
  ["every kind of field and binding, without an overlay", describeDirectory(RICH)],
  ["every feature of the plugin", describeText(FEATURES, `overlay=${OVERLAY},${MEDIA_TYPES},problem_details=true`)],
  ["every feature of the plugin, without an overlay", describeText(FEATURES)],
  ["every option of a handler", describeText(FEATURES, HANDLER)],
];
const broken = { ...generated, info: {} };

const files = [...documents.map(([, document]) => document), broken].map((document, index) =>
  write(`${index}.json`, JSON.stringify(document)),
);

describe("recommended rules of Redocly", () => {
  let findings: Finding[][];
  beforeAll(async () => {
    findings = await lintByRedocly(files);
  });

  test.each(documents.map(([name], index) => [name, index] as const))("%s: no errors", (_, index) => {
    // These warnings are either intended, or concern parts that the plugin does not write.
    const known = ["operation-4xx-response", "no-unused-components", "info-license", "operation-summary"];
    const unknown = (each: Finding) => each.severity === "error" || !(known.includes(each.ruleId) || isOfNone(each));
    expect(findings[index]?.filter(unknown).map(describeFinding)).toEqual([]);
  });

  test("report errors of a document that has some", () => {
    expect(findings.at(-1)?.some(({ severity }) => severity === "error")).toBe(true);
  });
});

describe("rules of Spectral for OpenAPI", () => {
  let errors: string[][];
  beforeAll(async () => {
    errors = await lintBySpectral(files);
  });

  test.each(documents.map(([name], index) => [name, index] as const))("%s: no errors", (_, index) => {
    expect(errors[index]).toEqual([]);
  });

  test("report errors of a document that has some", () => {
    expect(errors.at(-1)).not.toEqual([]);
  });
});
