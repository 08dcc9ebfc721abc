/** Entity tags of responses (`ETag`), and the preconditions of requests that name them (RFC 9110 sections 8.8.3 and 13). */
import { type DescField, type DescMethod, type Message, ScalarType } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { base64Encode } from "@bufbuild/protobuf/wire";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { toUtf8, unshared } from "../codec/bytes.ts";
import { messageOf, responseType } from "../codec/response-codec.ts";
import { fieldByName } from "../routes/field-path.ts";
import type { ConditionalRequest, EntityTags, Route, TaggedResponse } from "../routes/model.ts";
import { PreconditionFailed } from "./failure.ts";

export interface EntityTagOptions {
  /**
   * The proto name of the field of a response (of its `response_body`, if the route has one) that is its tag: a text or an integer.
   * Default: `etag`, as in AIP-154.
   */
  readonly field?: string;
  /** Whether GET responses without such a field, or with an empty one, get a weak tag computed from their content. Default: false. */
  readonly digest?: boolean;
  /** The RPCs whose responses get tags, such as `[LibraryService.method.getBook]`. Default: all unary ones. */
  readonly rpcs?: readonly DescMethod[];
}

/**
 * Creates the value of the option `entityTags` of a handler or a table. Responses to GET, HEAD and PATCH get an `ETag`: the header that
 * the handler of the RPC has set, or the value of the field, or, for GET and HEAD only, the digest of the content. A GET or HEAD gets 304
 * if its `If-None-Match` contains the tag, and 412 if its `If-Match` does not. Requests that change something have their preconditions
 * evaluated by `checkPreconditions`.
 * @throws Error at the start for a field that is neither a text nor an integer
 * @example
 *     import { createHttpHandler, entityTags } from "connect-http-routes";
 *     createHttpHandler({ routes, tables: [{ ...LibraryServiceRoutes, entityTags: entityTags() }] });
 */
export function entityTags({ field = "etag", digest = false, rpcs }: EntityTagOptions = {}): EntityTags {
  return {
    of(method, route) {
      if (method.methodKind !== "unary" || rpcs?.includes(method) === false) return undefined;
      const readField = createFieldReader(method, route, field);
      const tagOf = async (request: ConditionalRequest, { headers, message, content }: TaggedResponse) => {
        const own = headers.get("etag") ?? readField?.(message);
        if (own) return quoted(own);
        return digest && isRead(request) ? await digestOf(content) : undefined;
      };
      return {
        source: readField !== undefined ? "field" : digest ? "digest" : "handler",
        async isUnmodified(request, response) {
          if (!isRead(request) && request.method !== "PATCH") return false;
          const tag = await tagOf(request, response);
          return tag !== undefined && revalidate(request, response, tag);
        },
      };
    },
  };
}

const isRead = ({ method }: ConditionalRequest) => method === "GET" || method === "HEAD";

/** Sets the tag of a response. @returns whether the request has this response already @throws PreconditionFailed */
function revalidate(request: ConditionalRequest, { headers, mediaType, coding }: TaggedResponse, tag: string): boolean {
  // Representations that differ in a byte have different strong tags (RFC 9110 section 8.8.3.3).
  const plain = mediaType === undefined ? tag : variantOf(tag, mediaType);
  const sent = coding === undefined ? plain : variantOf(plain, coding);
  headers.set("etag", sent);
  if (!isRead(request)) return false;
  const ifMatch = request.headers.get("if-match");
  if (ifMatch !== null && !isNamed(tagsOf(ifMatch), tag, isSameStrongly)) throw new PreconditionFailed("If-Match");
  const ifNoneMatch = request.headers.get("if-none-match");
  if (ifNoneMatch === null) return false;
  const tags = tagsOf(ifNoneMatch);
  // A response that the client has stored with another content coding is up to date as well. The 304 has the tag of the stored response
  // (RFC 9111 section 4.3.4).
  const known = [sent, plain, variantOf(plain, "gzip")].find((one) => isNamed(tags, one, isSame));
  if (known === undefined) return false;
  headers.set("etag", known);
  // RFC 9110 section 15.4.5: a 304 has no other headers that describe the content.
  for (const name of ["content-encoding", "content-language", "last-modified"]) headers.delete(name);
  return true;
}

/**
 * Evaluates `If-Match` and `If-None-Match` of a request that changes something. The handler calls it where nobody else can change the
 * resource in between, such as in its transaction; in an RPC without these headers it does nothing.
 * @param current the tag of the resource as it is now, quoted or not; undefined if it does not exist
 * @throws ConnectError with the code FailedPrecondition, which the routes send as 412, or InvalidArgument for a malformed header
 * @example
 *     import type { HandlerContext } from "@connectrpc/connect";
 *     import { checkPreconditions } from "connect-http-routes";
 *     const books = new Map([["shelves/1/books/1", { etag: "5" }]]);
 *     function deleteBook({ name }: { readonly name: string }, context: HandlerContext) {
 *       checkPreconditions(context, books.get(name)?.etag);
 *       books.delete(name);
 *       return {};
 *     }
 */
export function checkPreconditions(
  { requestHeader }: Pick<HandlerContext, "requestHeader">,
  current: string | undefined,
): void {
  const tag = current === undefined ? undefined : quoted(current);
  const ifMatch = requestHeader.get("if-match");
  if (ifMatch !== null && !isNamed(wellFormed("If-Match", ifMatch), tag, isSameStrongly))
    throw new PreconditionFailed("If-Match");
  const ifNoneMatch = requestHeader.get("if-none-match");
  if (ifNoneMatch !== null && isNamed(wellFormed("If-None-Match", ifNoneMatch), tag, isSame))
    throw new PreconditionFailed("If-None-Match");
}

/** The tags of a precondition; `*` stands for any. */
type Tags = "*" | readonly string[];

/** Matches one tag of a list, with the separator before it. */
const LISTED = /[ \t,]*((?:W\/)?"[!\x23-\x7e\x80-\xff]*")[ \t]*(?=,|$)/gy;

/** Parses the value of a precondition. A malformed one is an empty list: it names no tag. */
function tagsOf(value: string): Tags {
  if (value.trim() === "*") return "*";
  const found = [...value.matchAll(LISTED)];
  const length = found.reduce((sum, [text]) => sum + text.length, 0);
  return /^[ \t,]*$/.test(value.slice(length)) ? found.map(([, tag = ""]) => tag) : [];
}

function wellFormed(header: string, value: string): Tags {
  const tags = tagsOf(value);
  if (tags.length > 0) return tags;
  throw new ConnectError(`${header} has no entity tags, such as "5"`, Code.InvalidArgument);
}

function isNamed(tags: Tags, tag: string | undefined, compare: (one: string, other: string) => boolean): boolean {
  return tag !== undefined && (tags === "*" || tags.some((one) => compare(one, tag)));
}

const opaque = (tag: string) => tag.replace(/^W\//, "");

/** The weak comparison of RFC 9110 section 8.8.3.2. */
const isSame = (one: string, other: string) => opaque(one) === opaque(other);

/** The strong comparison, without the media type and the content coding that `variantOf` adds to a tag. */
const isSameStrongly = (one: string, other: string) =>
  !one.startsWith("W/") && !other.startsWith("W/") && one.replace(VARIANT, '"') === other.replace(VARIANT, '"');

/** The media type and the content coding in a strong tag. */
const VARIANT = /(?:;[^;/"]+\/[^;/"]+)?(?:;gzip)?"$/;

const variantOf = (tag: string, variant: string) => (tag.startsWith("W/") ? tag : `${tag.slice(0, -1)};${variant}"`);

/** Returns a text as an entity tag. Characters that a tag cannot have are escaped as in a URL. */
function quoted(text: string): string {
  if (/^(?:W\/)?"[!\x23-\x7e\x80-\xff]*"$/.test(text)) return text;
  return `"${/^[!\x23-\x7e]*$/.test(text) ? text : encodeURIComponent(text)}"`;
}

/** Returns a function that reads the field with the tag, or undefined if the content of the response has none. */
function createFieldReader(method: DescMethod, route: Route, name: string): ((message: Message) => string) | undefined {
  const { output } = method;
  const type = responseType(method, route);
  const tagged = type && fieldByName(type, name);
  if (type === undefined || tagged === undefined) return undefined;
  checkKind(tagged);
  const body = fieldByName(output, route.responseBody);
  return (message) => {
    const content = reflect(type, messageOf(output, message, body));
    return content.isSet(tagged) ? String(content.get(tagged)) : "";
  };
}

const NO_TAGS: readonly ScalarType[] = [ScalarType.BOOL, ScalarType.BYTES, ScalarType.DOUBLE, ScalarType.FLOAT];

function checkKind(field: DescField): void {
  if (field.fieldKind === "scalar" && !NO_TAGS.includes(field.scalar)) return;
  throw new Error(
    `${field.parent.typeName}.${field.name} cannot be an entity tag: it is neither a text nor an integer`,
  );
}

/** Returns a weak tag: the content has the same bytes, whatever its coding. */
async function digestOf(content: string | Uint8Array): Promise<string> {
  const bytes = typeof content === "string" ? toUtf8(content) : unshared(content);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return `W/"${base64Encode(digest.subarray(0, 16), "url")}"`;
}
