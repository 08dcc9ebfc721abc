/** The notes of each user, in memory. They stand for a database. */
const notes = new Map<string, readonly string[]>();

export const notesOf = (subject: string): readonly string[] => notes.get(subject) ?? [];

export function keepNote(subject: string, note: string): void {
  notes.set(subject, [...notesOf(subject), note].slice(-20));
}
