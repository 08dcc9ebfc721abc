/** The notes of each user, in memory. They stand for a database. */
const kept = globalThis as typeof globalThis & { notes?: Map<string, readonly string[]> };
kept.notes ??= new Map();
const notes = kept.notes;

export const notesOf = (subject: string): readonly string[] => notes.get(subject) ?? [];

export function keepNote(subject: string, note: string): void {
  notes.set(subject, [...notesOf(subject), note].slice(-20));
}
