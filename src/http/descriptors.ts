/** How JSON and paths see the fields of a message. Generators of documents or clients need it beside the routes. */
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
