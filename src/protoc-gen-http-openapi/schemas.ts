import { type DescEnum, type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { isFileField } from "connect-http-routes/descriptors";
import { commentOf } from "./comments.ts";
import { BINARY } from "./content.ts";
import { isObject, type Json, type JsonObject, sorted } from "./json.ts";
import {
  directionOf,
  exclusiveGroups,
  isOneofRequired,
  isRequired,
  Keywords,
  mapKeyKeywords,
  notesOf,
} from "./rules.ts";
import { keySchema, type Schema, scalarSchema, textsOf, wellKnownSchema } from "./well-known.ts";

/** How the runtime writes and reads JSON, as far as schemas depend on it. The first three are options of protobuf-es. */
interface JsonRules {
  /** Whether responses have all fields without presence. Otherwise an empty one is left out. */
  readonly alwaysEmitImplicit?: boolean;
  /** Whether fields have their proto names. */
  readonly useProtoFieldName?: boolean;
  /** Whether values of enums are numbers. */
  readonly enumAsInteger?: boolean;
  /** Whether an enum has no values without a name. */
  readonly closedEnums: boolean;
  /** Returns whether a request body can contain the message. */
  isSent(type: DescMessage): boolean;
}

/** The schemas of messages and enums in proto JSON. Each becomes a component on first use, so that messages may be recursive. */
export class Schemas {
  readonly #components = new Map<string, Json>();
  readonly #rules: JsonRules;
  /** Maps the rules of fields to keywords. */
  readonly keywords: Keywords;

  constructor(rules: JsonRules) {
    this.#rules = rules;
    this.keywords = new Keywords(rules.enumAsInteger ?? false);
  }

  /** Returns the name of a field in JSON and in queries. */
  nameOf({ name, jsonName }: DescField): string {
    return this.#rules.useProtoFieldName ? name : jsonName;
  }

  /** Adds a schema without a descriptor. */
  add(name: string, schema: Schema): Schema {
    this.#components.set(name, schema);
    return reference(name);
  }

  /** Returns all components, by name. */
  components(): JsonObject {
    return sorted(this.#components);
  }

  message(type: DescMessage): Schema {
    const known = wellKnownSchema(type.typeName);
    if (known !== undefined) return known;
    return this.#component(type.typeName, () => ({
      type: "object",
      ...described(type),
      ...this.#content(type.fields),
    }));
  }

  /** Describes an object with some of a message's fields. */
  object(fields: readonly DescField[]): Schema {
    return { type: "object", ...this.#content(fields) };
  }

  /** Describes the parts of an upload, of which some are files. */
  parts(fields: readonly DescField[]): Schema {
    const { properties, ...others } = this.object(fields);
    const files = fields.filter(isFileField).map((field) => {
      const value = field.fieldKind === "list" ? { type: "array", items: BINARY.schema } : BINARY.schema;
      return [this.nameOf(field), { ...value, ...described(field) }] as const;
    });
    return { ...others, properties: { ...(isObject(properties) && properties), ...Object.fromEntries(files) } };
  }

  /** Describes the whole value of a field; a repeated field is an array. */
  field(field: DescField): Schema {
    switch (field.fieldKind) {
      case "list":
        return { type: "array", items: this.#item(field), ...this.keywords.ofField(field) };
      case "map":
        return this.map(field, this.#item(field));
      default:
        return { ...this.element(field), ...this.keywords.ofField(field) };
    }
  }

  #item(field: DescField): Schema {
    return { ...this.element(field), ...this.keywords.ofItem(field) };
  }

  map(field: DescField & { fieldKind: "map" }, value: Schema): Schema {
    const names = { ...keySchema(field.mapKey), ...mapKeyKeywords(field) };
    const propertyNames = Object.keys(names).length > 0 ? names : undefined;
    return {
      type: "object",
      ...(propertyNames && { propertyNames }),
      additionalProperties: value,
      ...this.keywords.ofField(field),
    };
  }

  /** Describes one value of a field; of a repeated field one element. */
  element(field: DescField): Schema {
    if (field.message !== undefined) return this.message(field.message);
    if (field.enum !== undefined) return this.#enumeration(field.enum);
    // TypeScript does not infer that the field is a scalar here, because the types of lists and maps are more complex.
    return field.scalar === undefined ? {} : scalarSchema(field.scalar);
  }

  #content(fields: readonly DescField[]): Schema {
    const required = fields.filter((field) => this.#isPresent(field));
    return {
      ...(fields.length > 0 && {
        properties: Object.fromEntries(
          fields.map((field) => [
            this.nameOf(field),
            { ...this.field(field), ...described(field), ...directionOf(field) },
          ]),
        ),
      }),
      ...(required.length > 0 && { required: required.map((field) => this.nameOf(field)) }),
      ...choices(
        fields.filter((field) => !this.#isAlwaysEmitted(field)),
        (field) => this.nameOf(field),
      ),
    };
  }

  /** Whether JSON must contain a field. A response leaves out a required field without presence that has its default value. */
  #isPresent(field: DescField): boolean {
    return this.#isImplicitInResponse(field) ? this.#rules.alwaysEmitImplicit === true : isRequired(field);
  }

  #isAlwaysEmitted(field: DescField): boolean {
    return this.#rules.alwaysEmitImplicit === true && this.#isImplicitInResponse(field);
  }

  /** Whether the runtime alone writes a field, and decides by its value whether to write it. */
  #isImplicitInResponse({ presence, parent }: DescField): boolean {
    return presence === FeatureSet_FieldPresence.IMPLICIT && !this.#rules.isSent(parent);
  }

  #enumeration(type: DescEnum): Schema {
    if (type.typeName === "google.protobuf.NullValue") return { type: "null" };
    return this.#component(type.typeName, () => {
      const { enumAsInteger = false, closedEnums } = this.#rules;
      const list = type.values.flatMap((value) => {
        const text = [enumAsInteger && `\`${value.name}\``, commentOf(value)?.replaceAll("\n", " ")].filter(Boolean);
        return text.length > 0 ? `- \`${enumAsInteger ? value.number : value.name}\`: ${text.join(": ")}` : [];
      });
      const description = [commentOf(type), list.join("\n")].filter(Boolean).join("\n\n");
      const names = type.values.map(({ name }) => name);
      const values = enumAsInteger ? namedNumbers(type) : { type: "string", enum: names };
      // The runtime also reads and writes values of an open enum that have no name, as numbers.
      const schema = closedEnums || !type.open ? values : enumAsInteger ? INT32 : { anyOf: [...textsOf(names), INT32] };
      return { ...described(type), ...(description !== "" && { description }), ...schema };
    });
  }

  #component(name: string, make: () => Schema): Schema {
    if (!this.#components.has(name)) {
      this.#components.set(name, {});
      this.#components.set(name, make());
    }
    return reference(name);
  }
}

const INT32 = scalarSchema(ScalarType.INT32);

function namedNumbers({ values }: DescEnum): Schema {
  const [numbers, names] = [values.map(({ number }) => number), values.map(({ name }) => name)];
  return {
    ...INT32,
    enum: [...new Set(numbers)],
    ...(new Set(numbers).size === names.length && { "x-enum-varnames": names }),
  };
}

function reference(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` };
}

/** Returns description and deprecation of an element. OpenAPI 3.1 allows keywords beside `$ref`. */
function described(desc: DescField | DescMessage | DescEnum): Schema {
  const notes = desc.kind === "field" ? notesOf(desc) : [];
  const description = [commentOf(desc), notes.join(" ")].filter(Boolean).join("\n\n");
  return { ...(description !== "" && { description }), ...(desc.deprecated && { deprecated: true }) };
}

/**
 * Describes the oneofs among the fields, and the groups that a rule names: exactly one field is set, or at most one. "At most one" excludes
 * every pair, because generators make an alternative of `oneOf` a type, and one without fields is a type that does not compile in mocks.
 */
function choices(fields: readonly DescField[], nameOf: (field: DescField) => string): Schema {
  const type = fields[0]?.parent;
  if (type === undefined) return {};
  const groups = [
    ...type.oneofs.map((oneof) => ({ names: oneof.fields.map(({ name }) => name), required: isOneofRequired(oneof) })),
    ...exclusiveGroups(type).map(({ fields: names, required }) => ({ names, required })),
  ];
  const one: Schema[] = [];
  const pairs: Schema[] = [];
  for (const { names, required } of groups) {
    const present = fields.filter(({ name }) => names.includes(name)).map(nameOf);
    // If a member of the group is not in this object (it is in the path, for example), that member may be the one that is set.
    if (required && present.length === names.length) one.push({ oneOf: present.map((name) => ({ required: [name] })) });
    else
      pairs.push(...present.flatMap((name, at) => present.slice(at + 1).map((other) => ({ required: [name, other] }))));
  }
  return {
    ...(one.length === 1 && one[0]),
    ...(one.length > 1 && { allOf: one }),
    ...(pairs.length > 0 && { not: pairs.length === 1 ? pairs[0] : { anyOf: pairs } }),
  };
}
