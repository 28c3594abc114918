/** A user who can log in without a password. */
export interface User {
  /** The subject of the tokens. */
  id: string;
  name: string;
  email: string;
}

/** All users. */
export const USERS: readonly User[] = [
  { id: "alice", name: "Alice Example", email: "alice@example.com" },
  { id: "bob", name: "Bob Example", email: "bob@example.com" },
  { id: "carol", name: "Carol Example", email: "carol@example.org" },
  { id: "dmitri", name: "Дмитрий Пример", email: "dmitri@example.net" },
];

/** The user with an id. */
export function findUser(id: string): User | undefined {
  return USERS.find((user) => user.id === id);
}
