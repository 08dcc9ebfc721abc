import type { DescFile } from "@bufbuild/protobuf";
import { createEcmaScriptPlugin, type GeneratedFile, type Schema } from "@bufbuild/protoplugin";
import { describeRoutes, type Route, type RouteTable } from "connect-http-routes/descriptors";
import { PLUGIN_VERSION, parseBoolean } from "./options.ts";
import { reportProblems } from "./problem.ts";

interface Options {
  /** The module from which generated files import the types of the runtime. */
  runtime: string;
  /** Whether an annotation that cannot be mapped is an error. By default its route is skipped with a warning. */
  strict: boolean;
}

/**
 * The buf plugin. For every `*_pb.ts` whose services have google.api.http annotations it generates a `*_http.ts` with their routes as data.
 */
export const protocGenHttp = createEcmaScriptPlugin<Options>({
  name: "protoc-gen-connect-http",
  version: PLUGIN_VERSION,
  parseOptions(raw) {
    let runtime = "connect-http-routes";
    let strict = false;
    for (const { key, value } of raw) {
      if (key === "runtime" && value !== "") runtime = value;
      else if (key === "strict") strict = parseBoolean(key, value);
      else throw new Error(`unknown option "${key}=${value}"`);
    }
    return { runtime, strict };
  },
  generateTs(schema) {
    const services = schema.files.flatMap((file) => file.services);
    const { tables, problems } = describeRoutes(services);
    reportProblems(problems, schema.options.strict);
    for (const file of schema.files) {
      const own = tables.filter((table) => table.service.file === file && table.routes.length > 0);
      if (own.length > 0) generateFile(schema, file, own);
    }
  },
});

function generateFile(schema: Schema<Options>, file: DescFile, tables: readonly RouteTable[]): void {
  const generated = schema.generateFile(`${file.name}_http.ts`);
  generated.preamble(file);
  const tableType = generated.import("RouteTable", schema.options.runtime, true);
  for (const { service, routes } of tables) {
    const serviceDesc = generated.importSchema(service);
    generated.print();
    generated.print(generated.jsDoc(`The routes of ${service.typeName}, from its google.api.http annotations.`));
    generated.print(generated.export("const", `${service.name}Routes`), " = {");
    generated.print("  service: ", serviceDesc, ",");
    generated.print("  routes: [");
    for (const route of routes) printRoute(generated, route);
    generated.print("  ],");
    generated.print("} as const satisfies ", tableType, "<typeof ", serviceDesc, ">;");
  }
}

/** Prints a route as JSON, one property per line. */
function printRoute(generated: GeneratedFile, route: Route): void {
  generated.print("    {");
  for (const [key, value] of Object.entries(route)) generated.print(`      ${key}: ${JSON.stringify(value)},`);
  generated.print("    },");
}
