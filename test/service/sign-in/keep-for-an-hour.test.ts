import { expect, test } from "vitest";
import { keepForAnHour } from "../../../src/service/sign-in/keep-for-an-hour.ts";

test("a value is loaded once an hour, by one of many callers, and stays while it cannot be loaded", async () => {
  let nowMs = 0;
  let loads = 0;
  let isDown = true;
  const load = async () => {
    loads++;
    if (isDown) throw new Error("down");
    return loads;
  };
  const get = keepForAnHour(load, () => nowMs);
  await expect(get()).rejects.toThrow("down");
  isDown = false;
  expect(await Promise.all([get(), get(), get()])).toEqual([2, 2, 2]);
  nowMs = 3_599_999;
  expect(await get()).toBe(2);
  nowMs = 3_600_000;
  isDown = true;
  expect(await get()).toBe(2);
  isDown = false;
  expect([await get(), await get()]).toEqual([4, 4]);
  get.renew();
  expect([await get(), await get()]).toEqual([5, 5]);
});
