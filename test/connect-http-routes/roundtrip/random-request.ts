import type { DescField, DescMessage, DescMethod, Message } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import type { Route } from "../../../src/connect-http-routes/index.ts";
import { isTextField, isTextMap, TEXT_MESSAGES } from "../../../src/connect-http-routes/routes/field-path.ts";
import type { Random } from "./random.ts";
import { type Admit, randomMessage, randomScalar, randomText, setRandom } from "./random-message.ts";

/** Returns a request that a route can carry, as http.proto defines it. */
export function randomRequest(random: Random, { input }: DescMethod, route: Route): Message {
  if (route.body === "*" && isHttpBody(input)) {
    const body = reflect(input);
    fillHttpBody(random, body);
    return body.message;
  }
  const message = reflect(input, randomMessage(random, input, route.body === "*" ? everything : queryable));
  if (route.body !== "*") {
    const body = input.fields.find(({ name }) => name === route.body);
    if (body !== undefined) {
      message.clear(body);
      if (isHttpBody(body.message)) setHttpBody(random, message, body);
      else if (random.chance(0.9)) setRandom(random, message, body, everything);
    }
    prune(message, route.body);
    setMask(random, message, route);
  }
  // Path variables are set last, because setting another field of their oneof would clear them.
  for (const variable of route.variables) setVariable(random, message, variable.field.split("."), route, variable);
  return message.message;
}

/** Returns a response that a route can carry. */
export function randomResponse(random: Random, { output }: DescMethod, route: Route): Message {
  if (isHttpBody(output)) {
    const body = reflect(output);
    fillHttpBody(random, body);
    return body.message;
  }
  if (route.responseBody === "") return randomMessage(random, output, everything);
  const message = reflect(output);
  const field = output.fields.find(({ name }) => name === route.responseBody);
  if (field === undefined) throw new Error(`no field ${route.responseBody}`);
  if (isHttpBody(field.message)) setHttpBody(random, message, field);
  else setRandom(random, message, field, everything);
  return message.message;
}

const everything: Admit = () => true;

/** Returns whether a query can carry a field. By http.proto it carries scalars, lists of scalars, and messages of both. */
const queryable: Admit = (field) => {
  if (field.fieldKind === "map") return isTextMap(field);
  if (field.fieldKind === "message" && field.message.typeName !== "google.protobuf.Any") return true;
  return isTextField(field);
};

export function isHttpBody(type: DescMessage | undefined): boolean {
  return type?.typeName === "google.api.HttpBody";
}

function setHttpBody(random: Random, message: ReflectMessage, field: DescField): void {
  if (field.fieldKind !== "message") return;
  const body = reflect(field.message);
  fillHttpBody(random, body);
  message.set(field, body);
}

function fillHttpBody(random: Random, body: ReflectMessage): void {
  for (const field of body.fields) {
    if (field.name === "content_type") body.set(field, random.pick(["text/plain", "application/x-thing"]));
    if (field.name === "data")
      body.set(
        field,
        Uint8Array.from({ length: 1 + random.below(50) }, () => random.below(256)),
      );
  }
}

/**
 * Sets the update mask. If it were empty, the server would infer a mask from the body, and the received message would differ from the sent
 * one.
 */
function setMask(random: Random, message: ReflectMessage, route: Route): void {
  const mask = message.fields.find(({ name }) => name === "update_mask");
  if (route.method === "PATCH" && mask?.message?.typeName === "google.protobuf.FieldMask") {
    setRandom(random, message, mask, everything);
  }
}

/** Removes empty messages, because a query cannot distinguish them from absent ones. */
function prune(message: ReflectMessage, body: string): void {
  for (const field of message.fields) {
    if (field.fieldKind !== "message" || !message.isSet(field) || field.name === body) continue;
    if (isTextField(field)) continue;
    const child = message.get(field);
    prune(child, "");
    if (!child.fields.some((inner) => child.isSet(inner))) message.clear(field);
  }
}

function setVariable(
  random: Random,
  message: ReflectMessage,
  [name, ...rest]: string[],
  route: Route,
  variable: Route["variables"][number],
): void {
  const field = message.fields.find((candidate) => candidate.name === name);
  if (field === undefined) throw new Error(`no field ${name}`);
  if (rest.length > 0 && field.fieldKind === "message") {
    const child = message.isSet(field) ? message.get(field) : reflect(field.message);
    setVariable(random, child, rest, route, variable);
    message.set(field, child);
  } else if (field.scalar === 9) {
    const pattern = route.segments.slice(variable.start, variable.end);
    message.set(field, pattern.flatMap((part) => segmentsFor(random, part)).join("/"));
  } else if (field.enum !== undefined) message.set(field, random.pick(field.enum.values).number);
  else if (field.message !== undefined && TEXT_MESSAGES.has(field.message.typeName)) {
    setRandom(random, message, field, everything);
  } else message.set(field, randomScalar(random, field.scalar as never) as never);
}

function segmentsFor(random: Random, part: string): string[] {
  if (part === "*") return [segment(random)];
  if (part !== "**") return [decodeURIComponent(part)];
  return Array.from({ length: 1 + random.below(3) }, () => segment(random));
}

function segment(random: Random): string {
  const text = randomText(random).replaceAll("/", "-");
  return text === "" || text === "." || text === ".." ? "x" : text;
}
