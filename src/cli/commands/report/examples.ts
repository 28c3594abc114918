import type { Facts } from "./fields.js";
import type { Finding } from "./model.js";

/** A device as an example of a finding. */
export type ExampleDevice = Omit<Finding["examples"][number], "detail">;

/** What names a device to a reader; undefined without an id. */
export function exampleOf({ id, title, client, last }: Facts): ExampleDevice | undefined {
  if (id === undefined) return undefined;
  return { id, title: title ?? null, client: client ?? null, country: last.country ?? null };
}
