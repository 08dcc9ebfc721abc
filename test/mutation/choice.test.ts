/** The choice of the mutants that a run judges. */
import { expect, test } from "vitest";
import { choose, shares } from "./choice.ts";

const mutants = (room: string, count: number) => Array.from({ length: count }, (_, at) => ({ room, at }));
const THREE = [...mutants("large", 700), ...mutants("middle", 290), ...mutants("small", 10)];

function chosen(
  given: Parameters<typeof shares>[0],
  settings: Parameters<typeof shares>[1],
  isValid = (_: number) => true,
) {
  const chosen = choose(shares(given, settings));
  const valid: string[] = [];
  for (let next = chosen.next(); next !== undefined; next = chosen.next()) {
    if (isValid(valid.length)) valid.push(next.mutant.room);
    else next.notCounted();
  }
  return valid;
}

const countOf = (rooms: readonly string[], room: string) => rooms.filter((one) => one === room).length;

test("rooms are judged by their size, and none by less than the least", () => {
  const rooms = chosen(THREE, { count: 100, least: 5, seed: "1" });
  expect(["large", "middle", "small"].map((room) => countOf(rooms, room))).toEqual([70, 29, 5]);
});

test("a run that ends early is spread over the rooms as well", () => {
  const all = chosen(THREE, { count: 100, least: 5, seed: "1" });
  const rooms = all.slice(0, all.length / 2);
  const halves = ["large", "middle", "small"].map((room) => countOf(rooms, room) / countOf(all, room));
  for (const half of halves) expect(Math.abs(half - 0.5)).toBeLessThan(0.11);
});

test("mutants that are not counted are replaced by others of their room, as far as it has any", () => {
  let seen = 0;
  const rooms = chosen(THREE, { count: 100, least: 5, seed: "1" }, () => seen++ % 2 === 0);
  expect(countOf(rooms, "large")).toBe(70);
  expect(chosen(mutants("small", 3), { count: 100, least: 5, seed: "1" }, () => false)).toEqual([]);
});

test("a room's mutants depend on the seed, and on no other room", () => {
  const orderOf = (given: Parameters<typeof shares<{ room: string; at: number }>>[0], seed: string) =>
    shares(given, { count: 10, least: 1, seed }).find(({ room }) => room === "middle")?.order;
  expect(orderOf(THREE, "1")).toEqual(orderOf(mutants("middle", 290), "1"));
  expect(orderOf(THREE, "1")).not.toEqual(orderOf(THREE, "2"));
});
