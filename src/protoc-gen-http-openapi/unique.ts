/** Returns the first free name of `name`, `name_2`, `name_3`, …, and adds it to those that are `taken`. */
export function unique(taken: Set<string>, name: string): string {
  let free = name;
  for (let n = 2; taken.has(free); n++) free = `${name}_${n}`;
  taken.add(free);
  return free;
}
