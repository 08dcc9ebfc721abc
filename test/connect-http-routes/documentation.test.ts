/** docs/reference/http-layer.md names every option of the handlers and the plugins. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { tableRows } from "../support/named-tests.ts";

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
const PAGE = read("docs/reference/http-layer.md");

/** Returns the properties of the interfaces whose names end in `Options`. */
function optionsIn(path: string): string[] {
  const interfaces = read(path).matchAll(/interface \w*Options\b[^{]*\{\n(.*?)\n\}/gs);
  return [...interfaces].flatMap(([, body = ""]) =>
    [...body.matchAll(/^ {2}(?:readonly )?(\w+)\??:/gm)].map(([, name = ""]) => name),
  );
}

test("every option of the handlers is documented", () => {
  const table = tableRows(PAGE, "Options of the handlers").join("\n");
  const files = [
    "src/connect-http-routes/options.ts",
    "src/connect-http-routes/response/responses.ts",
    "src/connect-http-routes/routes/model.ts",
  ];
  const options = files.flatMap(optionsIn);
  expect(options).toEqual(expect.arrayContaining(["routes", "tables", "onResponse", "inferUpdateMask"]));
  expect(options.filter((name) => !table.includes(`\`${name}\``))).toEqual([]);
});

test("every option of the plugins is documented", () => {
  const table = tableRows(PAGE, "Options of the plugins").join("\n");
  const options = ["src/protoc-gen-connect-http/plugin.ts", "src/protoc-gen-http-openapi/plugin.ts"].flatMap((path) =>
    [...read(path).matchAll(/key === "(\w+)"/g)].map(([, name = ""]) => name),
  );
  expect(options).toEqual(expect.arrayContaining(["runtime", "strict", "overlay"]));
  expect(options.filter((name) => !table.includes(`\`${name}=`))).toEqual([]);
});
