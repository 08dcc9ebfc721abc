/** Writes an OpenAPI document as a page: each operation with its parameters, the members of its messages, and its responses. */

type Schema = {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly required?: readonly string[];
  readonly allOf?: readonly Schema[];
};
type Content = { readonly content?: Readonly<Record<string, { readonly schema?: Schema }>> };
type Response = Content & { readonly $ref?: string; readonly description?: string };
type Operation = {
  readonly summary?: string;
  readonly description?: string;
  readonly operationId?: string;
  readonly tags?: readonly string[];
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly description?: string;
    readonly schema?: Schema;
  }[];
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, Response>>;
};
export type OpenApiDocument = {
  readonly info: { readonly description?: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas?: Readonly<Record<string, Schema>> };
};

/** Returns a text for a cell of a table, or a paragraph: on one line, and without what Markdown or Vue would take for markup. */
const plain = (text = "") =>
  text
    .replaceAll(/\s+/g, " ")
    .replaceAll(
      /(`[^`]*`)|[<>{}|]/g,
      (sign, code?: string) => code?.replaceAll("|", "\\|") ?? `&#${sign.charCodeAt(0)};`,
    )
    .trim();

const nameOf = (reference: string) => reference.split("/").at(-1) ?? "";

function typeOf(schema: Schema): string {
  if (schema.$ref !== undefined) return nameOf(schema.$ref).split(".").at(-1) ?? "";
  if (schema.allOf?.[0] !== undefined) return typeOf(schema.allOf[0]);
  if (schema.items !== undefined) return `${typeOf(schema.items)}[]`;
  return [schema.type ?? "any"].flat().join(" or ") + (schema.format === undefined ? "" : ` (${schema.format})`);
}

const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
const table = (head: readonly string[], rows: readonly string[][]) =>
  rows.length === 0 ? [] : [[head, head.map(() => "---"), ...rows].map(row).join("\n")];

/** Returns the table of a message's members. */
function membersOf(schema: Schema | undefined, title: string, document: OpenApiDocument): string[] {
  const message = schema?.$ref === undefined ? schema : document.components.schemas?.[nameOf(schema.$ref)];
  const members = Object.entries(message?.properties ?? {});
  const rows = members.map(([name, member]) => [`\`${name}\``, plain(typeOf(member)), plain(member.description)]);
  return table([title, "type", "meaning"], rows);
}

const schemaOf = ({ content = {} }: Content) => Object.values(content)[0]?.schema;

function operationOf(method: string, path: string, operation: Operation, document: OpenApiDocument): string {
  const parameters = (operation.parameters ?? []).map(({ name, in: where, description }) => [
    `\`${name}\``,
    where,
    plain(description),
  ]);
  const success = Object.entries(operation.responses).find(([status]) => status.startsWith("2"));
  const failures = Object.entries(operation.responses).flatMap(([status, { $ref = "" }]) =>
    status.startsWith("2") || status === "default" ? [] : [`${status} \`${nameOf($ref)}\``],
  );
  return [
    `### \`${method.toUpperCase()} ${path}\``,
    plain([operation.summary, operation.description].filter((text) => text !== undefined).join(". ")),
    ...table(["parameter", "in", "meaning"], parameters),
    ...membersOf(operation.requestBody && schemaOf(operation.requestBody), "request", document),
    ...(success === undefined ? [] : membersOf(schemaOf(success[1]), `response ${success[0]}`, document)),
    ...(failures.length === 0 ? [] : [`[Errors](../reference/errors.md): ${failures.join(", ")}`]),
  ].join("\n\n");
}

/** Returns the page of a document, in Markdown. */
export function apiPage(title: string, document: OpenApiDocument): string {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  );
  const groups = Map.groupBy(operations, ({ operation }) => operation.tags?.[0] ?? "Others");
  const sections = [...groups].map(([tag, members]) =>
    [`## ${tag}`, ...members.map(({ method, path, operation }) => operationOf(method, path, operation, document))].join(
      "\n\n",
    ),
  );
  return ["---\neditLink: false\n---", `# ${title}`, plain(document.info.description), ...sections].join("\n\n");
}
