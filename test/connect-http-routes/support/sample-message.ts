import {
  type DescField,
  type DescMessage,
  fromJson,
  type JsonValue,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import type { Route } from "../../../src/connect-http-routes/index.ts";
import { isTextField, isTextMap } from "../../../src/connect-http-routes/routes/field-path.ts";

/** A sample of each well-known type, as JSON. */
const KNOWN: Readonly<Record<string, JsonValue>> = {
  Timestamp: "2020-01-02T03:04:05.600Z",
  Duration: "1.500s",
  Any: {},
  FieldMask: "stringValue,nested.name",
  Struct: { a: [1, "b", null] },
  Value: { a: true },
  ListValue: [1, "b"],
  "google.api.HttpBody": { contentType: "application/octet-stream", data: "YQ==" },
};

/**
 * Returns a message with every field set that a route can carry, and one member of each oneof.
 *
 * @param depth how deep messages are nested
 */
export function sampleMessage(type: DescMessage, route: Route, depth = 2): Message {
  const json = KNOWN[type.typeName.replace("google.protobuf.", "")];
  if (json !== undefined) return fromJson(type, json);
  const message = reflect(type);
  for (const field of type.fields) {
    const isFirst = field.oneof === undefined || field.oneof.fields[0] === field;
    const isCarried = route.body === "*" || route.body === field.name || isQueryField(field);
    if (isFirst && isCarried && (depth > 0 || field.message === undefined)) setSample(message, field, route, depth - 1);
  }
  for (const variable of route.variables.filter(({ multi }) => multi)) {
    const { field: name, start, end } = variable;
    const parts = route.segments.slice(start, end).map((part) => (part.startsWith("*") ? "some part" : part));
    const field = type.fields.find((other) => other.name === name);
    if (field !== undefined) message.set(field, parts.join("/"));
  }
  return message.message;
}

/** Returns whether a query can carry a field, or at least fields inside its message. */
function isQueryField(field: DescField): boolean {
  if (field.message?.typeName === "google.protobuf.Any") return false;
  return field.fieldKind === "map" ? isTextMap(field) : field.fieldKind === "message" || isTextField(field);
}

function setSample(message: ReflectMessage, field: DescField, route: Route, depth: number): void {
  switch (field.fieldKind) {
    case "list":
      message.get(field).add(sampleValue(field, route, depth));
      break;
    case "map":
      message.get(field).set(sampleScalar(field.mapKey) as never, sampleValue(field, route, depth));
      break;
    default:
      message.set(field, sampleValue(field, route, depth));
  }
}

function sampleValue(field: DescField, route: Route, depth: number) {
  if (field.message !== undefined) return reflect(field.message, sampleMessage(field.message, route, depth));
  if (field.enum !== undefined) return field.enum.values.at(-1)?.number ?? 0;
  return sampleScalar(field.scalar ?? ScalarType.STRING);
}

function sampleScalar(type: ScalarType) {
  switch (type) {
    case ScalarType.STRING:
      return "a b+ä";
    case ScalarType.BOOL:
      return true;
    case ScalarType.BYTES:
      return Uint8Array.of(251, 255, 1);
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return 9007199254740993n;
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return 1.5;
    default:
      return 7;
  }
}
