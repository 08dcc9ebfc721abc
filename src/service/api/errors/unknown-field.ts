/** Explains which field of a request does not exist, and which one was probably meant. */
import { createRegistry } from "@bufbuild/protobuf";
import { SessionAdminService } from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { SignalsAdminService } from "../../../../gen/auth/admin/v1/signals_admin_pb.ts";
import { nearest } from "../../../platform/spelling/nearest.ts";

/** The text of protobuf-es, which has no class or code for this error. A text that does not match is sent as it is. */
const UNKNOWN = /cannot decode message (\S+) from JSON: key "([^"]*)" is unknown$/;

/** Only the messages of these services may have no unknown fields: see `STRICT_JSON`. */
const messages = createRegistry(SessionAdminService.file, SignalsAdminService.file);

const MAX_LENGTH = 64;

/** Returns a text that names an unknown field and the nearest right one, or all; undefined for the text of another error. */
export function explainUnknownField(text: string): string | undefined {
  const [, typeName = "", key = ""] = UNKNOWN.exec(text) ?? [];
  const message = messages.getMessage(typeName);
  if (message === undefined) return undefined;
  const name = key.length > MAX_LENGTH ? `${key.slice(0, MAX_LENGTH)}…` : key;
  const known = message.fields.map(({ jsonName }) => jsonName);
  const meant = nearest(name, known);
  const hint =
    meant !== undefined ? `did you mean ${meant}?` : `its fields are ${known.length === 0 ? "none" : known.join(", ")}`;
  return `${message.name} has no field ${JSON.stringify(name)}: ${hint}`;
}
