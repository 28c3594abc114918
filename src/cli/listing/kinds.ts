/** One kind of list: its noun, and the scope that it needs. */
export interface ListKind {
  noun: "pools" | "domains" | "devices";
  scope: "account" | "domain" | "pool";
}
