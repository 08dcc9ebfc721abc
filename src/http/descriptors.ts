/** How JSON and paths see the fields of a message: what a generator of documents, or of clients, needs beside the routes. */
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
