import { expect, test } from "vitest";
import { consoleCookie, readConsoleCookie } from "../../../../src/service/pages/console/cookie.ts";

const NAME = "__Host-session_console";

test.each(["\u00a0", "\u0085", "\u2003", "\ufeff"])("a name with %j around it is another one", (space) => {
  for (const planted of [`${space}${NAME}=planted`, `${NAME}${space}=planted`]) {
    expect(readConsoleCookie(planted, true)).toBeUndefined();
    expect(readConsoleCookie(`${planted}; ${NAME}=mine`, true)).toBe("mine");
  }
});

test("what is set is read, in the form for https and in the other", () => {
  for (const secure of [true, false]) {
    const [pair = ""] = consoleCookie("value", secure).split(";");
    expect(readConsoleCookie(`a=b; ${pair}`, secure)).toBe("value");
    expect(readConsoleCookie(pair, !secure)).toBeUndefined();
  }
});

test("two different values are none, and an empty one is no value", () => {
  expect(readConsoleCookie(`${NAME}=a; ${NAME}=b`, true)).toBeUndefined();
  expect(readConsoleCookie(`${NAME}=; ${NAME}=a`, true)).toBe("a");
  expect(readConsoleCookie(undefined, true)).toBeUndefined();
});
