/** Explains what is wrong in the JSON of a request: a field that does not exist and the nearest right one, or how a value is written. */
import { createRegistry } from "@bufbuild/protobuf";
import { SessionAdminService } from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { SignalsAdminService } from "../../../../gen/auth/admin/v1/signals_admin_pb.ts";
import { nearest } from "../../../platform/spelling/nearest.ts";

/** The texts of protobuf-es, which has no class or code for these errors. A text that does not match is sent as it is. */
const UNKNOWN = /cannot decode message (\S+) from JSON: key "([^"]*)" is unknown$/;
const WRONG_FORM = /cannot decode (?:message|enum) (\S+) from JSON/;

/** Only the messages of these services may have no unknown fields: see `STRICT_JSON`. */
const types = createRegistry(SessionAdminService.file, SignalsAdminService.file);

/** How values are written. protobuf-es names only their type. */
const FORMS: ReadonlyMap<string, string> = new Map([
  ["google.protobuf.Duration", 'seconds as text, such as "3600s"'],
  ["google.protobuf.Timestamp", 'a time such as "2027-01-31T12:00:00Z"'],
  ["google.protobuf.Struct", "a JSON object"],
]);

const MAX_LENGTH = 64;

/** Returns a text that says what to write; undefined for the text of another error. */
export function explainJsonFault(text: string): string | undefined {
  return explainUnknownField(text) ?? wrongForm(text);
}

/** Returns a text that names an unknown field and the nearest right one, or all. It has no value of the request, so it may be logged. */
export function explainUnknownField(text: string): string | undefined {
  const [, typeName = "", key = ""] = UNKNOWN.exec(text) ?? [];
  const message = types.getMessage(typeName);
  if (message === undefined) return undefined;
  const name = key.length > MAX_LENGTH ? `${key.slice(0, MAX_LENGTH)}…` : key;
  const known = message.fields.map(({ jsonName }) => jsonName);
  const meant = nearest(name, known);
  const hint =
    meant !== undefined ? `did you mean ${meant}?` : `its fields are ${known.length === 0 ? "none" : known.join(", ")}`;
  return `${message.name} has no field ${JSON.stringify(name)}: ${hint}`;
}

function wrongForm(text: string): string | undefined {
  const [, typeName = ""] = WRONG_FORM.exec(text) ?? [];
  const form =
    FORMS.get(typeName) ??
    types
      .getEnum(typeName)
      ?.values.map(({ name }) => name)
      .join(", ");
  return form === undefined ? undefined : `${text}; write ${form}`;
}
