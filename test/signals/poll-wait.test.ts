import { expect, test } from "vitest";
import { WaitingPolls } from "../../src/signals/streams/poll-wait.ts";

const enterOften = (polls: WaitingPolls, receiver: string) =>
  Array.from({ length: 100 }, () => polls.enter(receiver)).filter((entered) => entered).length;

test("a receiver leaves places to wait for other receivers", () => {
  const polls = new WaitingPolls();
  expect(["one", "two", "three", "four", "five"].map((receiver) => enterOften(polls, receiver))).toEqual([
    ...[16, 16, 16, 16],
    0,
  ]);
  polls.leave("two");
  expect(["one", "five", "six"].map((receiver) => enterOften(polls, receiver))).toEqual([0, 1, 0]);
});
