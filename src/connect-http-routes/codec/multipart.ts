/** Uploads: `multipart/form-data` (RFC 7578), each part of which is a field of a message. */
import { create, type DescField, type DescMessage } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { HttpBodySchema } from "../../../gen/google/api/httpbody_pb.ts";
import { isFileField, isHttpBody, isTextField } from "../routes/field-path.ts";
import { BadInput } from "./bad-input.ts";
import { utf8TextOf } from "./body-reader.ts";
import { toUtf8 } from "./bytes.ts";
import { scanJson } from "./json-scan.ts";
import type { MessageLimits } from "./message-limits.ts";
import { parseMultipart } from "./multipart-parser.ts";
import { otherOneofMember } from "./text-value.ts";

/** A body that was taken apart. */
interface Multipart {
  /** The parts that are texts, as `application/x-www-form-urlencoded`. */
  readonly form: string;
  /** The parts that are messages, as one JSON object. */
  readonly json: Uint8Array;
  /** Sets the fields that are files. @throws BadInput if a singular one is given twice */
  setFiles(message: ReflectMessage): void;
}

type FileValue = { readonly contentType: string; readonly data: Uint8Array };

/** Takes a body apart. @throws BadInput if it is not multipart/form-data, or if a part does not fit its field */
export function readMultipart(
  type: DescMessage,
  body: Uint8Array,
  contentType: string,
  limits: MessageLimits,
): Multipart {
  const texts = new URLSearchParams();
  const messages = new Map<DescField, string[]>();
  const files = new Map<DescField, FileValue[]>();
  for (const { name, fileType, data } of parseMultipart(body, contentType)) {
    const field = type.fields.find((each) => each.jsonName === name) ?? type.fields.find((each) => each.name === name);
    if (field !== undefined && isFileField(field) && (fileType !== undefined || isHttpBody(field.message))) {
      listIn(files, field).push({ contentType: fileType ?? "text/plain; charset=utf-8", data });
    } else {
      const text = utf8TextOf(data);
      if (field === undefined || isTextField(field)) texts.append(name, text);
      else listIn(messages, field).push(checkedJson(name, text, limits));
    }
  }
  return {
    form: texts.toString(),
    json: toUtf8(`{${[...messages].map(([field, values]) => memberOf(field, values)).join()}}`),
    setFiles(message) {
      for (const [field, values] of files) setFile(message, field, values);
    },
  };
}

/** @throws BadInput if a part is not JSON by itself */
function checkedJson(name: string, text: string, limits: MessageLimits): string {
  try {
    scanJson(text, limits);
    JSON.parse(text);
  } catch (error) {
    throw error instanceof BadInput ? error : new BadInput("body", name, "not JSON");
  }
  return text;
}

function memberOf({ jsonName, fieldKind }: DescField, values: readonly string[]): string {
  const [first = "null"] = values;
  if (values.length > 1 && fieldKind !== "list") throw new BadInput("body", jsonName, "given more than once");
  const isWhole = fieldKind !== "list" || (values.length === 1 && first.trimStart().startsWith("["));
  return `${JSON.stringify(jsonName)}:${isWhole ? first : `[${values.join()}]`}`;
}

function setFile(message: ReflectMessage, field: DescField, values: readonly FileValue[]): void {
  const [first] = values;
  const other = otherOneofMember(message.message, field);
  if (other !== undefined)
    throw new BadInput("body", field.jsonName, `${other.jsonName} of the same oneof is given too`);
  if (field.fieldKind === "list") {
    const list = message.get(field);
    for (const value of values) list.add(field.message === undefined ? value.data : httpBody(value));
  } else if (values.length > 1) throw new BadInput("body", field.jsonName, "given more than once");
  else if (first !== undefined && field.fieldKind === "message") message.set(field, httpBody(first));
  else if (first !== undefined) message.set(field, first.data);
}

const httpBody = (value: FileValue) => reflect(HttpBodySchema, create(HttpBodySchema, value));

function listIn<Value>(lists: Map<DescField, Value[]>, field: DescField): Value[] {
  const list = lists.get(field) ?? [];
  lists.set(field, list);
  return list;
}
