import type { DescEnum, DescField, DescMessage } from "@bufbuild/protobuf";
import { commentOf } from "./comments.ts";
import { type Json, type JsonObject, sorted } from "./json.ts";
import {
  directionOf,
  exclusiveGroups,
  fieldKeywords,
  isOneofRequired,
  isRequired,
  itemKeywords,
  mapKeyKeywords,
  notesOf,
} from "./rules.ts";
import { keySchema, type Schema, scalarSchema, wellKnownSchema } from "./well-known.ts";

/** The schemas of messages and enums in proto JSON. Each becomes a component on first use, so that messages may be recursive. */
export class Schemas {
  readonly #components = new Map<string, Json>();
  readonly #alwaysSet: (field: DescField) => boolean;

  /** @param alwaysSet returns whether JSON always contains a field although requests need not set it */
  constructor(alwaysSet: (field: DescField) => boolean = () => false) {
    this.#alwaysSet = alwaysSet;
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

  /** Describes the whole value of a field; a repeated field is an array. */
  field(field: DescField): Schema {
    switch (field.fieldKind) {
      case "list":
        return { type: "array", items: { ...this.element(field), ...itemKeywords(field) }, ...fieldKeywords(field) };
      case "map":
        return this.map(field, { ...this.element(field), ...itemKeywords(field) });
      default:
        return { ...this.element(field), ...fieldKeywords(field) };
    }
  }

  map(field: DescField & { fieldKind: "map" }, value: Schema): Schema {
    const names = { ...keySchema(field.mapKey), ...mapKeyKeywords(field) };
    const propertyNames = Object.keys(names).length > 0 ? names : undefined;
    return {
      type: "object",
      ...(propertyNames && { propertyNames }),
      additionalProperties: value,
      ...fieldKeywords(field),
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
    const required = fields.filter((field) => isRequired(field) || this.#alwaysSet(field));
    const groups = choices(fields.filter((field) => !this.#alwaysSet(field)));
    return {
      ...(fields.length > 0 && {
        properties: Object.fromEntries(
          fields.map((field) => [field.jsonName, { ...this.field(field), ...described(field), ...directionOf(field) }]),
        ),
      }),
      ...(required.length > 0 && { required: required.map((field) => field.jsonName) }),
      ...(groups.length === 1 && groups[0]),
      ...(groups.length > 1 && { allOf: groups }),
    };
  }

  #enumeration(type: DescEnum): Schema {
    if (type.typeName === "google.protobuf.NullValue") return { type: "null" };
    return this.#component(type.typeName, () => {
      const lines = type.values.map((value) => [value.name, commentOf(value)?.replaceAll("\n", " ")] as const);
      const list = lines.filter(([, text]) => text !== undefined).map(([name, text]) => `- \`${name}\`: ${text}`);
      const description = [commentOf(type), list.join("\n")].filter(Boolean).join("\n\n");
      return {
        type: "string",
        ...described(type),
        ...(description !== "" && { description }),
        enum: type.values.map((value) => value.name),
      };
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

function reference(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` };
}

/** Returns description and deprecation of an element. OpenAPI 3.1 allows keywords beside `$ref`. */
function described(desc: DescField | DescMessage | DescEnum): Schema {
  const notes = desc.kind === "field" ? notesOf(desc) : [];
  const description = [commentOf(desc), notes.join(" ")].filter(Boolean).join("\n\n");
  return { ...(description !== "" && { description }), ...(desc.deprecated && { deprecated: true }) };
}

/** Describes the oneofs among the fields, and the groups that a rule names: exactly one field is set, or at most one. */
function choices(fields: readonly DescField[]): Schema[] {
  const type = fields[0]?.parent;
  if (type === undefined) return [];
  const groups = [
    ...type.oneofs.map((oneof) => ({ names: oneof.fields.map(({ name }) => name), required: isOneofRequired(oneof) })),
    ...exclusiveGroups(type).map(({ fields: names, required }) => ({ names, required })),
  ];
  return groups.flatMap(({ names, required }) => {
    const present = fields.filter(({ name }) => names.includes(name)).map(({ jsonName }) => jsonName);
    const each = present.map((name) => ({ required: [name] }));
    // If a member of the group is not in this object (it is in the path, for example), that member may be the one that is set.
    if (required && present.length === names.length) return { oneOf: each };
    // The alternative without any field is written with `not`: generators mistake properties whose schema is `false` for fields.
    const none = { not: { anyOf: each } };
    return present.length > 1 ? { oneOf: [...each, none] } : [];
  });
}
