/** Somebody who can sign in; there is no password. */
export interface Person {
  /** The subject of their tokens. */
  id: string;
  name: string;
  email: string;
}

/** Everybody who can sign in. */
export const PEOPLE: readonly Person[] = [
  { id: "alice", name: "Alice Example", email: "alice@example.com" },
  { id: "bob", name: "Bob Example", email: "bob@example.com" },
  { id: "carol", name: "Carol Example", email: "carol@example.org" },
  { id: "dmitri", name: "Дмитрий Пример", email: "dmitri@example.net" },
];

/** The person of an id. */
export function findPerson(id: string): Person | undefined {
  return PEOPLE.find((person) => person.id === id);
}
