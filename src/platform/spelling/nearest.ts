/** Finds the name that a misspelt one was probably meant to be. */

/** Returns the known name with the fewest edits; undefined if there is none with at most `mostEdits`. Default: half of its characters. */
export function nearest(name: string, known: Iterable<string>, mostEdits = name.length / 2): string | undefined {
  let best: string | undefined;
  let fewest = Math.floor(mostEdits) + 1;
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) >= fewest) continue;
    const edits = distance(name, candidate, fewest);
    if (edits < fewest) [best, fewest] = [candidate, edits];
  }
  return best;
}

/**
 * Counts the edits between two texts: insertions, deletions, replacements, and swaps of neighbours (optimal string alignment). If there are
 * `tooMany` or more, it returns no less than that, and compares no further.
 */
export function distance(a: string, b: string, tooMany = Number.POSITIVE_INFINITY): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, index) => index)];
  const at = (row: number, column: number) => rows[row]?.[column] ?? Number.POSITIVE_INFINITY;
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    rows.push(row);
    let fewest = i;
    // Further from the diagonal are too many insertions or deletions.
    for (let j = Math.max(1, i - tooMany); j <= Math.min(b.length, i + tooMany); j++) {
      const replaced = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swaps = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = swaps ? at(i - 2, j - 2) + 1 : Number.POSITIVE_INFINITY;
      row[j] = Math.min(replaced, at(i - 1, j) + 1, at(i, j - 1) + 1, swapped);
      fewest = Math.min(fewest, at(i, j));
    }
    // No later row has fewer edits than this one.
    if (fewest >= tooMany) return fewest;
  }
  return at(a.length, b.length);
}
