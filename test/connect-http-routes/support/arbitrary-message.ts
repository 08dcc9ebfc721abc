import {
  create,
  type DescField,
  type DescMessage,
  fromJson,
  type JsonValue,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { anyPack, DurationSchema, FieldMaskSchema, TimestampSchema } from "@bufbuild/protobuf/wkt";
import fc, { type Arbitrary } from "fast-check";
import { type Nested, NestedSchema } from "../gen/rich/v1/rich_pb.ts";

/** Returns an arbitrary message of this type, in which each field that `admits` allows is set or not. */
export function arbitraryMessage(
  type: DescMessage,
  admits: (field: DescField) => boolean,
  depth = 2,
): Arbitrary<Message> {
  const special = wellKnown(type);
  if (special !== undefined) return special;
  const fields = type.fields.filter((field) => admits(field) && (depth > 0 || field.message === undefined));
  const values = fields.map((field) =>
    fc.option(arbitraryValue(field, admits, depth - 1), { nil: undefined, freq: 2 }),
  );
  return fc.tuple(...values).map((chosen) => {
    const message = reflect(type);
    fields.forEach((field, index) => {
      if (chosen[index] !== undefined) put(message, field, chosen[index]);
    });
    return message.message;
  });
}

/** Generates values for a field. `put` sets a field to such a value. */
export function arbitraryValue(
  field: DescField,
  admits: (field: DescField) => boolean,
  depth: number,
): Arbitrary<unknown> {
  switch (field.fieldKind) {
    case "scalar":
      return arbitraryScalar(field.scalar);
    case "enum":
      return field.enum.open
        ? fc.oneof(
            named(field.enum.values),
            fc.maxSafeInteger().map((n) => n | 0),
          )
        : named(field.enum.values);
    case "message":
      return arbitraryMessage(field.message, admits, depth);
    case "list": {
      const item =
        field.listKind === "scalar"
          ? arbitraryScalar(field.scalar)
          : field.listKind === "enum"
            ? named(field.enum.values)
            : arbitraryMessage(field.message, admits, depth);
      return fc.array(item, { minLength: 1, maxLength: 3 });
    }
    case "map": {
      const value =
        field.mapKind === "scalar"
          ? arbitraryScalar(field.scalar)
          : field.mapKind === "enum"
            ? named(field.enum.values)
            : arbitraryMessage(field.message, admits, depth);
      return fc.array(fc.tuple(arbitraryScalar(field.mapKey), value), { minLength: 1, maxLength: 3 });
    }
  }
}

/** Sets a field to a value of `arbitraryValue`. */
export function put(message: ReflectMessage, field: DescField, value: unknown): void {
  if (field.fieldKind === "list") {
    for (const item of value as unknown[])
      message.get(field).add(field.message ? reflect(field.message, item as Message) : item);
  } else if (field.fieldKind === "map") {
    for (const [key, item] of value as [never, unknown][]) {
      message.get(field).set(key, field.message ? reflect(field.message, item as Message) : item);
    }
  } else if (field.fieldKind === "message") {
    message.set(field, reflect(field.message, value as Message));
  } else {
    message.set(field, value as number);
  }
}

function arbitraryScalar(type: ScalarType): Arbitrary<unknown> {
  const wide = (min: bigint, max: bigint) =>
    fc.oneof(fc.bigInt({ min, max }), fc.constantFrom(min, max, 0n, 2n ** 53n + 1n));
  switch (type) {
    case ScalarType.STRING:
      return fc.oneof(
        fc.string({ unit: "grapheme" }),
        fc.string({ unit: "binary" }),
        fc.constantFrom("a/b%2Fc", "+ &=;#?", "__proto__"),
      );
    case ScalarType.BOOL:
      return fc.boolean();
    case ScalarType.BYTES:
      return fc.uint8Array({ maxLength: 20 });
    case ScalarType.DOUBLE:
      return fc.double().map(writable);
    case ScalarType.FLOAT:
      return fc.float().map(writable);
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return fc.integer();
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return fc.integer({ min: 0, max: 2 ** 32 - 1 });
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return wide(-(2n ** 63n), 2n ** 63n - 1n);
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return wide(0n, 2n ** 64n - 1n);
  }
}

/** Replaces -0 by 0, because JSON.stringify writes both as 0. */
function writable(value: number): number {
  return value === 0 ? 0 : value;
}

function named(values: readonly { readonly number: number }[]): Arbitrary<number> {
  return fc.constantFrom(...values.map((value) => value.number));
}

function wellKnown(type: DescMessage): Arbitrary<Message> | undefined {
  const json = (arbitrary: Arbitrary<JsonValue>) => arbitrary.map((value) => fromJson(type, value));
  const nanos = fc.integer({ min: 0, max: 999_999_999 });
  switch (type.typeName) {
    case "google.protobuf.Timestamp":
      return fc
        .tuple(fc.bigInt({ min: -62_135_596_800n, max: 253_402_300_799n }), nanos)
        .map(([seconds, n]) => create(TimestampSchema, { seconds, nanos: n }));
    case "google.protobuf.Duration":
      return fc
        .tuple(fc.bigInt({ min: 0n, max: 315_576_000_000n }), fc.integer({ min: 0, max: 999_999_999 }), fc.boolean())
        .map(([seconds, n, negative]) =>
          create(DurationSchema, {
            seconds: negative ? -seconds : seconds,
            nanos: seconds === 315_576_000_000n ? 0 : negative ? -n : n,
          }),
        );
    case "google.protobuf.FieldMask":
      return fc
        .array(fc.constantFrom("name", "some_name", "inner.id", "inner.some_tags"), { minLength: 1 })
        .map((paths) => create(FieldMaskSchema, { paths }));
    case "google.protobuf.Struct":
      return json(fc.dictionary(fc.string(), fc.jsonValue() as Arbitrary<JsonValue>));
    case "google.protobuf.Value":
      return json(fc.jsonValue() as Arbitrary<JsonValue>);
    case "google.protobuf.ListValue":
      return json(fc.array(fc.jsonValue() as Arbitrary<JsonValue>));
    case "google.protobuf.Any":
      return arbitraryMessage(NestedSchema, () => true).map((message) => anyPack(NestedSchema, message as Nested));
    default:
      return undefined;
  }
}
