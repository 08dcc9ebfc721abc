/**
 * Describes how JSON and paths refer to the fields of a message. Generators of documents or clients need this together with the routes.
 */
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
