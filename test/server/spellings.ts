/** Ways to write the path of a page, which no browser sends and some framework understands. */
import fc from "fast-check";

const encoded = (character: string) => `%${(character.codePointAt(0) as number).toString(16).padStart(2, "0")}`;

/** A character as it is, in upper case, or encoded once or several times. */
const spelled = (character: string) =>
  fc.oneof(
    { weight: 12, arbitrary: fc.constant(character) },
    { weight: 1, arbitrary: fc.constant(character.toUpperCase()) },
    {
      weight: 1,
      arbitrary: fc.constantFrom("", "25", "2525").map((again) => encoded(character).replace("%", `%${again}`)),
    },
  );

const word = (text: string) => fc.tuple(...[...text].map(spelled)).map((characters) => characters.join(""));

const SEPARATORS = [
  "//",
  "\\",
  "%2f",
  "%2F",
  "%252f",
  "%5c",
  "/./",
  "/%2e/",
  ";/",
  ";a=b/",
  "/x/../",
  "/x/%2e%2e/",
  "%09/",
];
const separator = fc.oneof(
  { weight: 3, arbitrary: fc.constant("/") },
  { weight: 2, arbitrary: fc.constantFrom(...SEPARATORS) },
);

const ENDS = [
  ...["/", "//", "/.", "/..", ".html", ".json", ".rsc", ".data", "/_.data", "/__data.json", "/_payload.json"],
  ...[
    "/index.html",
    ".segments/_tree.segment.rsc",
    "?x",
    "?x=/../open",
    "%3Fx",
    "%3f/..",
    "%23",
    "#x",
    ";x",
    ";/../open",
  ],
  ...["%3b", "%00", "%20", "%ff", "%", ".", "%2f..%2fopen", "/..%2f..", "/%2e%2e/%2e%2e"],
];
const end = fc.oneof({ weight: 3, arbitrary: fc.constant("") }, { weight: 2, arbitrary: fc.constantFrom(...ENDS) });

/** What leads to the page by a detour: a public page first, an origin, an authority. */
const start = (open: string) =>
  fc.oneof(
    { weight: 4, arbitrary: fc.constant("/") },
    {
      weight: 4,
      arbitrary: fc.tuple(word(open), separator, word(".."), separator).map((parts) => `/${parts.join("")}`),
    },
    { weight: 2, arbitrary: fc.constantFrom(...STARTS, `//${open}`, `/${open}/x/../..`).map((before) => `${before}/`) },
  );
const STARTS = [
  "/_next/data/b",
  "/_next/static/..",
  "/_next/static/..%2f..",
  "/account/..",
  "http://a",
  "http://",
  "/",
];

/** Targets that every router takes to the page. No random one is certain to get there. */
export const PLAIN: readonly string[] = ["/account/x", "/account/x?x", "/account/x?x=/../open"];

/**
 * Targets of requests, all in characters that HTTP allows there.
 * @param open the first segment of public paths
 */
export const spellings = (open: string) =>
  fc
    .tuple(
      start(open),
      word("account"),
      fc.oneof(
        fc.constant(""),
        fc.tuple(separator, word("x")).map((parts) => parts.join("")),
      ),
      end,
    )
    .map((parts) => parts.join(""));
