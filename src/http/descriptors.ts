/** Describes how JSON and paths refer to the fields of a message, for generators of documents or clients. */
export {
  fieldByName,
  hasOwnJson,
  isHttpBody,
  isTextField,
  isTextMap,
  JSON_MESSAGES,
  messageType,
  resolveFieldPath,
  TEXT_MESSAGES,
} from "./routes/field-path.ts";
