import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseTemplate, TemplateError } from "../../../src/connect-http-routes/index.ts";

describe("a path template", () => {
  test.each([
    ["/", [], "", []],
    ["/v1", ["v1"], "", []],
    ["/v1/*", ["v1", "*"], "", []],
    ["/**", ["**"], "", []],
    ["/v1/**:seal", ["v1", "**"], "seal", []],
    ["/v1/shelves:list", ["v1", "shelves"], "list", []],
    ["/v1/{name}", ["v1", "*"], "", ["name 1-2"]],
    ["/v1/{name=*}", ["v1", "*"], "", ["name 1-2"]],
    ["/v1/{name=books}", ["v1", "books"], "", ["name 1-2"]],
    ["/v1/{name=**}", ["v1", "**"], "", ["name 1-2 multi"]],
    ["/v1/{a.b.c=x/*/y/**}/z:end", ["v1", "x", "*", "y", "**", "z"], "end", ["a.b.c 1-5 multi"]],
    ["/{_a1}/{b}", ["*", "*"], "", ["_a1 0-1", "b 1-2"]],
    ["/a/**/b/c", ["a", "**", "b", "c"], "", []],
    ["/a-b_c.d~e/!$&'()+,;=@", ["a-b_c.d~e", "!$&'()+,;=@"], "", []],
    ["/a%20b/%2a/%3A/%2f:x%3ay", ["a%20b", "%2A", "%3A", "%2F"], "x:y", []],
    ["/v1/{name}:a:b%20c", ["v1", "*"], "a:b%20c", ["name 1-2"]],
    ["/v1:a:b:c", ["v1"], "a:b:c", []],
    ["/%61%c3%a9", ["a%C3%A9"], "", []],
  ])("%s is parsed", (source, segments, verb, variables) => {
    const template = parseTemplate(source);
    expect(template.segments).toEqual(segments);
    expect(template.verb).toBe(verb);
    expect(template.variables.map((v) => `${v.field} ${v.start}-${v.end}${v.multi ? " multi" : ""}`)).toEqual(
      variables,
    );
  });

  test.each([
    ["", 1, 'expected "/", found the end'],
    ["v1", 1, 'expected "/", found "v"'],
    ["{name}", 1, 'expected "/", found "{"'],
    [":verb", 1, 'expected "/", found ":"'],
    ["//", 2, 'expected a segment, found "/"'],
    ["/v1/", 5, "expected a segment, found the end"],
    ["/v1//a", 5, 'expected a segment, found "/"'],
    ["/:verb", 2, 'expected a segment, found ":"'],
    ["/v1:", 5, "expected a verb, found the end"],
    ["/v1::a", 5, 'expected a verb, found ":"'],
    ["/v1:a::b", 7, 'expected a verb, found ":"'],
    ["/v1:a:", 7, "expected a verb, found the end"],
    ["/v1:a/b", 6, 'unexpected "/", expected "/" or the end'],
    ["/v1:*", 5, 'expected a verb, found "*"'],
    ["/v1:{x}", 5, 'expected a verb, found "{"'],
    ["/a*", 3, 'unexpected "*", expected "/", ":" or the end'],
    ["/*a", 3, 'unexpected "a", expected "/", ":" or the end'],
    ["/***", 4, 'unexpected "*", expected "/", ":" or the end'],
    ["/**/*", 5, 'only literals may follow "**"'],
    ["/**/**", 5, 'only literals may follow "**"'],
    ["/**/{x}", 5, 'only literals may follow "**"'],
    ["/{x=**}/{y=**}", 12, 'only literals may follow "**"'],
    ["/{}", 3, 'expected a field name, found "}"'],
    ["/{", 3, "expected a field name, found the end"],
    ["/{x", 4, 'expected "}", found the end'],
    ["/{x.}", 5, 'expected a field name, found "}"'],
    ["/{.x}", 3, 'expected a field name, found "."'],
    ["/{1x}", 3, 'expected a field name, found "1"'],
    ["/{x-y}", 4, 'expected "}", found "-"'],
    ["/{x=}", 5, 'expected a segment, found "}"'],
    ["/{x=/a}", 5, 'expected a segment, found "/"'],
    ["/{x=a/}", 7, 'expected a segment, found "}"'],
    ["/{x=a:b}", 6, 'expected "}", found ":"'],
    ["/{x={y}}", 5, "a variable inside a variable"],
    ["/{x=a/{y}}", 7, "a variable inside a variable"],
    ["/{x}/{x}", 6, 'duplicate variable "x"'],
    ["/{x}a", 5, 'unexpected "a", expected "/", ":" or the end'],
    ["/a{x}", 3, 'unexpected "{", expected "/", ":" or the end'],
    ["/}", 2, 'expected a segment, found "}"'],
    ["/a b", 3, 'unexpected " ", expected "/", ":" or the end'],
    ["/a?b", 3, 'unexpected "?", expected "/", ":" or the end'],
    ["/a#b", 3, 'unexpected "#", expected "/", ":" or the end'],
    ["/é", 2, 'expected a segment, found "é"'],
    ["/%zz", 2, "malformed percent-encoding"],
    ["/a%2", 3, "malformed percent-encoding"],
    ["/%ff", 2, "percent-encoding that is not UTF-8"],
  ])("%s is refused at column %i: %s", (source, column, reason) => {
    const error = failureOf(source);
    expect({ column: error?.column, reason: error?.reason }).toEqual({ column, reason });
    expect(error?.message).toContain(`column ${column}: ${reason}`);
  });

  test("is either parsed or refused with a column inside it or right after it, whatever the text", () => {
    const text = fc.string({ unit: fc.constantFrom("/", "*", "{", "}", "=", ":", ".", "a", "b", "%", "2", "é", " ") });
    fc.assert(
      fc.property(text, (source) => {
        const error = failureOf(source);
        if (error === undefined) return;
        expect(error.column).toBeGreaterThanOrEqual(1);
        expect(error.column).toBeLessThanOrEqual(source.length + 1);
      }),
    );
  });
});

function failureOf(source: string): TemplateError | undefined {
  try {
    parseTemplate(source);
    return undefined;
  } catch (error) {
    if (error instanceof TemplateError) return error;
    throw error;
  }
}
