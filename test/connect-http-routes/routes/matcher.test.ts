import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  createMatcher,
  type Match,
  parseTemplate,
  type Route,
  type RouteTable,
} from "../../../src/connect-http-routes/index.ts";
import { RichService } from "../gen/rich/v1/rich_pb.ts";

/** Returns a table with these templates. Their fields need not exist, because the matcher does not use them. */
function tableOf(...routes: string[]): RouteTable {
  return {
    service: RichService,
    routes: routes.map((line): Route => {
      const [method = "", template = ""] = line.split(" ");
      return { rpc: "echo", method, template, ...parseTemplate(template), body: "", responseBody: "" };
    }),
  };
}

/** Returns a match in one line: the template and the values. */
function summary(match: Match): string {
  if (match.kind === "method_not_allowed") return `405 ${match.allow.join(",")}`;
  if (match.kind === "malformed") return "malformed";
  if (match.kind === "no_route") return "404";
  const { route, bindings } = match;
  return [`${route.method} ${route.template}`, ...bindings.map((b) => `${b.field}=${b.value}`)].join(" ");
}

function expectMatches(routes: string[], expected: Record<string, string>) {
  const matcher = createMatcher([tableOf(...routes)]);
  const actual = Object.fromEntries(
    Object.keys(expected).map((request) => {
      const [method = "", path = ""] = request.split(" ");
      return [request, summary(matcher.match(method, path))];
    }),
  );
  expect(actual).toEqual(expected);
}

describe("precedence", () => {
  test("is literal, then *, then **, with backtracking", () => {
    expectMatches(["GET /a/b/c", "GET /a/{x}/c", "GET /a/{x=**}", "GET /{y}/b/d", "GET /{z=**}"], {
      "GET /a/b/c": "GET /a/b/c",
      "GET /a/x/c": "GET /a/{x}/c x=x",
      "GET /a/b/x": "GET /a/{x=**} x=b/x",
      "GET /a/b/d": "GET /a/{x=**} x=b/d",
      "GET /b/b/d": "GET /{y}/b/d y=b",
      "GET /b/b/e": "GET /{z=**} z=b/b/e",
    });
  });

  test("backtracks to a wildcard where a literal fails", () => {
    expectMatches(["GET /a/b/c/d", "GET /a/{x}/c/{y}/e", "GET /{w}/b/c/x"], {
      "GET /a/b/c/d/e": "GET /a/{x}/c/{y}/e x=b y=d",
      "GET /a/b/c/x": "GET /{w}/b/c/x w=a",
      "GET /a/b/c/y": "404",
    });
  });

  test("is among the routes of the request's method", () => {
    expectMatches(["POST /a/b", "GET /a/{x}", "DELETE /{y=**}"], {
      "GET /a/b": "GET /a/{x} x=b",
      "POST /a/b": "POST /a/b",
      "POST /a/c": "405 DELETE,GET,HEAD,OPTIONS",
      "DELETE /a/b": "DELETE /{y=**} y=a/b",
      "PUT /a/b": "405 DELETE,GET,HEAD,OPTIONS,POST",
      "PUT /": "405 DELETE,OPTIONS",
    });
  });

  test("puts an exact route before an empty **", () => {
    expectMatches(["GET /a", "GET /a/{x=**}", "GET /{y=**}", "GET /b/{x=**}/c"], {
      "GET /a": "GET /a",
      "GET /a/b": "GET /a/{x=**} x=b",
      "GET /": "GET /{y=**} y=",
      "GET /b/c": "GET /b/{x=**}/c x=",
      "GET /b/c/c": "GET /b/{x=**}/c x=c",
      "GET /b": "GET /{y=**} y=b",
    });
  });

  test("puts more literals after ** before fewer", () => {
    expectMatches(["GET /{x=**}/c", "GET /{x=**}/b/c", "GET /{x=**}"], {
      "GET /a/b/c": "GET /{x=**}/b/c x=a",
      "GET /a/c": "GET /{x=**}/c x=a",
      "GET /b/c": "GET /{x=**}/b/c x=",
      "GET /a/c/d": "GET /{x=**} x=a/c/d",
    });
  });

  test("puts a method's own routes before those of every method", () => {
    expectMatches(["* /a/b", "GET /{x=**}", "OPTIONS /o"], {
      "GET /a/b": "GET /{x=**} x=a/b",
      "HEAD /a/b": "GET /{x=**} x=a/b",
      "POST /a/b": "* /a/b",
      "OPTIONS /a/b": "405 DELETE,GET,HEAD,OPTIONS,PATCH,POST,PUT",
      "OPTIONS /o": "OPTIONS /o",
      "OPTIONS /x": "405 GET,HEAD,OPTIONS",
      "POST /o": "405 GET,HEAD,OPTIONS",
    });
  });
});

describe("a custom verb", () => {
  test("is the text after a colon in the last segment if a route has it, else part of the value", () => {
    expectMatches(["GET /v1/{x}", "GET /v1/{x}:run", "GET /v1/{x=**}", "GET /v1/{x=**}:seal", "GET /v1/a:list"], {
      "GET /v1/a": "GET /v1/{x} x=a",
      "GET /v1/a:run": "GET /v1/{x}:run x=a",
      "GET /v1/a:b:run": "GET /v1/{x}:run x=a:b",
      "GET /v1/a:walk": "GET /v1/{x} x=a:walk",
      "GET /v1/a:list": "GET /v1/a:list",
      "GET /v1/b:list": "GET /v1/{x} x=b:list",
      "GET /v1/a%3Arun": "GET /v1/{x} x=a:run",
      "GET /v1/:run": "GET /v1/{x} x=:run",
      "GET /v1/a:": "GET /v1/{x} x=a:",
      "GET /v1/a:run/b": "GET /v1/{x=**} x=a:run/b",
      "GET /v1/a/b:seal": "GET /v1/{x=**}:seal x=a/b",
      "GET /v1/a/b:run": "GET /v1/{x=**} x=a/b:run",
      "GET /v1:seal": "GET /v1/{x=**}:seal x=",
    });
  });

  test("matters per method", () => {
    expectMatches(["GET /{x}", "POST /{x}:run"], {
      "GET /a:run": "GET /{x} x=a:run",
      "POST /a:run": "POST /{x}:run x=a",
      "POST /a": "405 GET,HEAD,OPTIONS",
    });
  });

  test("ends literals after ** too, and every kind of variable", () => {
    expectMatches(["GET /{x=**}/b:v", "GET /{x=a/*}:w", "GET /{x=**}:y"], {
      "GET /a/b:v": "GET /{x=**}/b:v x=a",
      "GET /b:v": "GET /{x=**}/b:v x=",
      "GET /a/c:w": "GET /{x=a/*}:w x=a/c",
      "GET /:y": "GET /{x=**}:y x=",
      "GET /a/:y": "404",
      "GET /q:y": "GET /{x=**}:y x=q",
    });
  });

  test("may contain colons: the longest registered one wins", () => {
    expectMatches(["GET /v1/{x}:b", "GET /v1/{x}:a:b", "GET /v1/c:a:b", "GET /{y=**}:z:a:b"], {
      "GET /v1/q:b": "GET /v1/{x}:b x=q",
      "GET /v1/q:a:b": "GET /v1/{x}:a:b x=q",
      "GET /v1/q:z:a:b": "GET /{y=**}:z:a:b y=v1/q",
      "GET /v1/c:a:b": "GET /v1/c:a:b",
      "GET /v1/q%3Aa:b": "GET /v1/{x}:b x=q:a",
      "GET /v1/q:a%3Ab": "GET /v1/{x}:a:b x=q",
    });
    expect(() => createMatcher([tableOf("GET /a:b:c", "GET /a:b%3Ac")])).toThrow("is the same route as");
  });

  test("that a route registers wins over a wildcard that would take the colon as text, at any depth", () => {
    expectMatches(
      ["GET /person/{id}", "GET /{x=**}:verb", "GET /v1/{a}/{b}", "GET /v1/{a=**}:set", "GET /{c=v1/**}:get"],
      {
        "GET /person/jason:verb": "GET /{x=**}:verb x=person/jason",
        "GET /person/jason%3Averb": "GET /person/{id} id=jason:verb",
        "GET /person/jason:other": "GET /person/{id} id=jason:other",
        "GET /person/jason": "GET /person/{id} id=jason",
        "GET /v1/p/q:set": "GET /v1/{a=**}:set a=p/q",
        "GET /v1/p/q:get": "GET /{c=v1/**}:get c=v1/p/q",
        "GET /v1/p/q:set:get": "GET /{c=v1/**}:get c=v1/p/q:set",
      },
    );
  });

  test("after a wildcard gives way to a literal that is the whole segment", () => {
    expectMatches(["GET /v1/{x}:run", "GET /v1/a%3Arun", "GET /v1/b%3Arun", "GET /v1/b:run"], {
      "GET /v1/a:run": "GET /v1/a%3Arun",
      "GET /v1/a%3Arun": "GET /v1/a%3Arun",
      "GET /v1/b:run": "GET /v1/b:run",
      "GET /v1/b%3Arun": "GET /v1/b%3Arun",
      "GET /v1/c:run": "GET /v1/{x}:run x=c",
    });
  });

  test("may be written with escapes", () => {
    expectMatches(["POST /a:b%20c"], { "POST /a:b%20c": "POST /a:b%20c", "POST /a:%62%20c": "POST /a:b%20c" });
  });
});

describe("a variable of literals", () => {
  test("is bound", () => {
    expectMatches(
      ["GET /v1/{name=operations}", "GET /v1/{a=x/y}/{b=z}:go", "GET /{h=caf%C3%A9}", "GET /v1/{name=operations/*}"],
      {
        "GET /v1/operations": "GET /v1/{name=operations} name=operations",
        "GET /v1/operation%73": "GET /v1/{name=operations} name=operations",
        "HEAD /v1/operations": "GET /v1/{name=operations} name=operations",
        "GET /v1/x/y/z:go": "GET /v1/{a=x/y}/{b=z}:go a=x/y b=z",
        "GET /caf%C3%A9": "GET /{h=caf%C3%A9} h=café",
        "GET /v1/operations/1": "GET /v1/{name=operations/*} name=operations/1",
      },
    );
  });
});

describe("a long path", () => {
  // These paths are so long that each of them would take seconds if the time of matching grew with the square of the length.
  test.each([
    ["colons", `/v1/${":".repeat(100_000)}`],
    ["escaped colons", `/v1/${":%3A".repeat(50_000)}`],
    ["segments", `/v1${"/a".repeat(100_000)}`],
    ["a verb after many segments", `/v1${"/a:run".repeat(50_000)}`],
  ])("of %s is matched in time that grows with its length", (_, path) => {
    const matcher = createMatcher([
      tableOf(
        "GET /v1/{x=**}:run",
        "GET /v1/{x}:run",
        "GET /v1/{x}:a:a:a:run",
        "GET /v1/{x=**}/end",
        "GET /{a}/{b=**}/c/d:run",
      ),
    ]);
    const start = process.cpuUsage();
    matcher.match("GET", path);
    const { user, system } = process.cpuUsage(start);
    expect(user + system).toBeLessThan(1_000_000);
  });
});

describe("a path", () => {
  test("with an empty segment or a trailing slash matches nothing", () => {
    expectMatches(["GET /a", "GET /a/{x}", "GET /{x=**}", "GET /"], {
      "GET /a/": "404",
      "GET //a": "404",
      "GET //": "404",
      "GET /a//b": "404",
      "GET a": "404",
      "GET *": "404",
    });
  });

  test("is compared segment by segment, decoded", () => {
    expectMatches(["GET /a%20b/c", "GET /*/x", "GET /lit%2Aeral", "GET /%2e%2e/up"], {
      "GET /a%20b/%63": "GET /a%20b/c",
      "GET /a%20b/x": "GET /*/x",
      "GET /lit*eral": "GET /lit%2Aeral",
      "GET /lit%2aeral": "GET /lit%2Aeral",
      "GET /../up": "GET /%2e%2e/up",
      "GET /a%2Fx": "404",
      "GET /a/../x": "404",
    });
  });

  test("is decoded once: single segments fully, multi-segment variables except %2F", () => {
    expectMatches(["GET /one/{x}", "GET /two/{x=a/*}", "GET /many/{x=**}"], {
      "GET /one/a%2Fb%252F%20%C3%A9+": "GET /one/{x} x=a/b%2F é+",
      "GET /two/a/b%2fc%2Fd%252F%3F": "GET /two/{x=a/*} x=a/b%2fc%2Fd%2F?",
      "GET /many/a%2fb/c%25/%2F": "GET /many/{x=**} x=a%2fb/c%/%2F",
      "GET /one/..": "GET /one/{x} x=..",
    });
  });

  test("keeps escapes of reserved characters in multi-segment variables, as an option", () => {
    const matcher = createMatcher([tableOf("GET /{x=**}")], "except-reserved");
    expect(summary(matcher.match("GET", "/a%2Fb/%3a%20%41%5b%25%7e"))).toBe("GET /{x=**} x=a%2Fb/%3a A%5b%~");
  });

  test("is malformed if an escape is truncated or not UTF-8", () => {
    expectMatches(["GET /{x}", "GET /lit", "GET /w/*"], {
      "GET /%": "malformed",
      "GET /%4": "malformed",
      "GET /%zz": "malformed",
      "GET /%FF": "malformed",
      "GET /%ED%A0%80": "malformed",
      "GET /w/%FF": "malformed",
      "GET /nope/%FF": "404",
    });
  });

  test("may equal the name of an object property", () => {
    expectMatches(["GET /__proto__/{x}", "GET /constructor"], {
      "GET /__proto__/toString": "GET /__proto__/{x} x=toString",
      "GET /constructor": "GET /constructor",
      "GET /hasOwnProperty": "404",
      "__proto__ /constructor": "405 GET,HEAD,OPTIONS",
    });
  });
});

describe("tables with one route twice", () => {
  test.each([
    ["GET /a/{x}", "GET /a/{y}"],
    ["GET /a/*", "GET /a/{y=*}"],
    ["GET /{x=a/*}:v", "GET /a/{y}:v"],
    ["GET /%61", "GET /a"],
  ])("%s and %s are refused, both named", (one, other) => {
    const both = () => createMatcher([tableOf(one), tableOf(other)]);
    expect(both).toThrow(
      `${other} of rich.v1.RichService.Echo is the same route as ${one} of rich.v1.RichService.Echo`,
    );
  });
});

describe("the direct way to a route", () => {
  const LITERALS = ["a", "b", "kind", "a%3Ab", "aaaa:run", ...Array.from({ length: 12 }, (_, i) => `x${i + 10}_same`)];
  const segment = fc.constantFrom(...LITERALS.slice(0, 4), ...LITERALS.slice(5), "*", "*", "**");
  const template = fc
    .tuple(fc.array(segment, { minLength: 1, maxLength: 4 }), fc.constantFrom("", "", ":run", ":a:b", ":b", ":a%2Fb"))
    .map(([parts, verb]) => {
      const last = parts.indexOf("**");
      const valid = parts.filter((part, index) => !part.startsWith("*") || last === -1 || index <= last);
      return `/${valid.map((part, index) => (part.startsWith("*") ? `{v${index}=${part}}` : part)).join("/")}${verb}`;
    });
  const requestPath = fc
    .array(fc.constantFrom(...LITERALS.filter((text) => !text.includes("%")), "a:b", "c", "", ":run"), { maxLength: 5 })
    .chain((parts) => fc.constantFrom("", ":run", ":b", ":a:b", "/").map((end) => `/${parts.join("/")}${end}`));
  const method = fc.constantFrom("GET", "POST", "*");

  test("finds what the search does, which alone handles escapes", () => {
    const some = { escaped: 0, matched: 0 };
    fc.assert(
      fc.property(
        fc.array(fc.tuple(method, template), { minLength: 4, maxLength: 12 }),
        fc.array(requestPath, { minLength: 20 }),
        (lines, paths) => {
          const routes = new Map(
            lines.map(([verb, path]) => [`${verb} ${path.replace(/v\d/g, "")}`, `${verb} ${path}`]),
          );
          const matcher = createMatcher([tableOf(...routes.values())]);
          for (const path of paths) {
            // The path must match the same route if one of its letters is percent-encoded.
            const escaped = path.replace(/[a-z]/, (letter) => `%${letter.charCodeAt(0).toString(16)}`);
            const direct = matcher.match("GET", path);
            expect([path, summary(direct)]).toEqual([path, summary(matcher.match("GET", escaped))]);
            if (escaped !== path) some.escaped++;
            if (direct.kind === "route") some.matched++;
          }
        },
      ),
      { numRuns: 300 },
    );
    expect(some.escaped).toBeGreaterThan(100);
    expect(some.matched).toBeGreaterThan(10);
  });
});
