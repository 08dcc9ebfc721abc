/**
 * Returns the first free name of `name`, `name_2`, `name_3`, …
 * @param taken the names that are not free; the new one is added
 */
export function unique(taken: Set<string>, name: string): string {
  let free = name;
  for (let n = 2; taken.has(free); n++) free = `${name}_${n}`;
  taken.add(free);
  return free;
}
