/** The parts of the admin API's OpenAPI document that describe the endpoints of a transmitter of SSF 1.0. */
import { failures, ref } from "./openapi-errors.ts";

const SERVICE = "auth.admin.v1.SharedSignalsService";

const stream = ref("schemas", "auth.admin.v1.Stream");

const json = (schema: object) => ({ content: { "application/json": { schema } } });

/** `null` removes the response that all operations have by default. */
const NO_CONTENT = { 200: null, 204: { description: "Done. There is no body." } };

/** Annotated routes have the errors of JSON routes, unlike the RPCs of the same document. */
export const ROUTE_FAILURES = {
  ...failures(
    ...([
      "E400_INVALID_REQUEST",
      "E001_AUTH_FAILURE",
      "E403_FORBIDDEN",
      "E404_NOT_FOUND",
      "E429_RATE_LIMITED",
    ] as const),
    ...(["E500_INTERNAL", "E503_UNAVAILABLE", "E504_DEADLINE_EXCEEDED"] as const),
  ),
  default: { $ref: null, description: "Any other failure.", ...json(ref("schemas", "HttpError")) },
};

export const BODY_FAILURES = failures("E413_TOO_LARGE", "E415_UNSUPPORTED_MEDIA_TYPE");

const operation = (rpc: string, responses: object = {}) => [
  `${SERVICE}.${rpc}`,
  { responses: { ...ROUTE_FAILURES, ...responses } },
];

export const SSF_OPERATIONS = Object.fromEntries([
  operation("CreateStream", { 200: null, 201: { description: "The new stream.", ...json(stream) }, ...BODY_FAILURES }),
  operation("ReadStreams", {
    200: {
      description: "The stream, or without an id the list of all streams of the receiver.",
      ...json({ oneOf: [stream, { type: "array", items: stream }] }),
    },
  }),
  operation("UpdateStream", BODY_FAILURES),
  operation("ReplaceStream", BODY_FAILURES),
  operation("DeleteStream", NO_CONTENT),
  operation("GetStreamStatus"),
  operation("UpdateStreamStatus", BODY_FAILURES),
  operation("AddStreamSubject", BODY_FAILURES),
  operation("RemoveStreamSubject", { ...NO_CONTENT, ...BODY_FAILURES }),
  operation("VerifyStream", { ...NO_CONTENT, ...BODY_FAILURES }),
  operation("PollStream", BODY_FAILURES),
]);
