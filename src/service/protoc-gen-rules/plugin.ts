import type { DescFile, DescService } from "@bufbuild/protobuf";
import { createEcmaScriptPlugin, type Schema } from "@bufbuild/protoplugin";
import { PLUGIN_VERSION } from "../../protoc-gen-connect-http/options.ts";
import type { MessageRules, Rules } from "../api/rules/model.ts";
import { describeRules } from "./describe.ts";

type Options = {
  /** The module from which generated files import the type of the rules. */
  model: string;
};

/**
 * The buf plugin. For every `*_pb.ts` whose services have requests with `buf.validate` rules it generates a `*_rules.ts` with these rules
 * as plain data. A rule that the service cannot check is an error, so that no rule is left unchecked.
 */
export const protocGenRules = createEcmaScriptPlugin<Options>({
  name: "protoc-gen-rules",
  version: PLUGIN_VERSION,
  parseOptions(raw) {
    const [option, ...more] = raw;
    if (option?.key !== "model" || more.length > 0) throw new Error("expected one option: model=<module>");
    return { model: option.value };
  },
  generateTs(schema) {
    const faults: string[] = [];
    for (const file of schema.files) {
      const described = file.services.map((service) => [service, describeRules(service, faults)] as const);
      const own = described.filter(([, rules]) => Object.keys(rules).length > 0);
      if (own.length > 0) generateFile(schema, file, own);
    }
    if (faults.length > 0) throw new Error(faults.join("\n"));
  },
});

function generateFile(
  schema: Schema<Options>,
  file: DescFile,
  described: readonly (readonly [DescService, Rules])[],
): void {
  const generated = schema.generateFile(`${file.name}_rules.ts`);
  generated.preamble(file);
  const rulesType = generated.import("Rules", schema.options.model, true);
  for (const [service, rules] of described) {
    generated.print();
    generated.print(generated.jsDoc(`What holds for requests of ${service.typeName}, from their buf.validate rules.`));
    generated.print(generated.export("const", `${service.name}Rules`), " = {");
    for (const [name, { fields, groups }] of Object.entries<MessageRules>(rules)) {
      generated.print(`  ${JSON.stringify(name)}: {`);
      generated.print("    fields: [");
      for (const field of fields) generated.print(`      ${JSON.stringify(field)},`);
      generated.print("    ],");
      generated.print(`    groups: ${JSON.stringify(groups)},`);
      generated.print("  },");
    }
    generated.print("} as const satisfies ", rulesType, ";");
  }
}
