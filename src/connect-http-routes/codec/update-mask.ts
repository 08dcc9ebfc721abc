import { create, type DescField, type DescMessage, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { isJsonObject } from "./json-values.ts";

/** The fields of an update request that hold the mask and the resource. */
interface UpdateMask {
  readonly mask: DescField & { fieldKind: "message" };
  readonly body: DescField & { fieldKind: "message" };
}

/** Returns the mask of a request with this body field: the field `update_mask`, or with `anyName` its only mask. Undefined without one. */
export function updateMaskOf(input: DescMessage, body: DescField, anyName: boolean): UpdateMask | undefined {
  const masks = input.fields.filter(isMask);
  const mask = anyName
    ? masks.find((_, __, { length }) => length === 1)
    : masks.find(({ name }) => name === "update_mask");
  return mask !== undefined && body.fieldKind === "message" ? { mask, body } : undefined;
}

function isMask(field: DescField): field is UpdateMask["mask"] {
  return field.fieldKind === "message" && field.message.typeName === FieldMaskSchema.typeName;
}

/** Fills an empty mask with the fields of the body (AIP-134). @param json the JSON of the request message; the body is a field of it */
export function inferUpdateMask(message: ReflectMessage, { mask, body }: UpdateMask, json: JsonValue): void {
  const given = message.isSet(mask) ? message.get(mask).message : undefined;
  if (given !== undefined && "paths" in given && Array.isArray(given.paths) && given.paths.length > 0) return;
  const sent = isJsonObject(json) ? json[body.jsonName] : undefined;
  const paths = sent !== undefined && isJsonObject(sent) ? [...pathsOf(body.message, sent)] : [];
  if (paths.length > 0) message.set(mask, reflect(FieldMaskSchema, create(FieldMaskSchema, { paths })));
}

function* pathsOf(type: DescMessage, json: JsonObject): Generator<string> {
  for (const [name, value] of Object.entries(json)) {
    const field = type.fields.find((f) => f.jsonName === name || f.name === name);
    if (field === undefined) continue;
    // A mask path cannot lead into repeated fields, maps and well-known types.
    if (
      field.fieldKind === "message" &&
      !field.message.typeName.startsWith("google.protobuf.") &&
      isJsonObject(value) &&
      Object.keys(value).length > 0
    ) {
      for (const inner of pathsOf(field.message, value)) yield `${field.name}.${inner}`;
    } else {
      yield field.name;
    }
  }
}
