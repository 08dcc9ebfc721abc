/**
 * Exports what generators of code, documents or clients need: the routes of services, and how JSON and paths refer to the fields of a
 * message. This entry point needs only @bufbuild/protobuf.
 */
export {
  fieldByName,
  hasOwnJson,
  isFileField,
  isHttpBody,
  isTextField,
  isTextMap,
  JSON_MESSAGES,
  messageType,
  resolveFieldPath,
  TEXT_MESSAGES,
} from "./routes/field-path.ts";
export type { EntityTags, MultiSegmentDecoding, Route, RouteTable } from "./routes/model.ts";
export { describeRoutes, errorsAmong, type Problem, type RouteOptions } from "./routes/rules.ts";
export type { Variable } from "./routes/template.ts";
