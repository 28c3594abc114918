import type { GrantFilter } from "../../oauth/model/grant-store.js";

/**
 * The tags that a grant is stored with, and by which a filter finds it.
 *
 * @param nameOf names the parts of a tag
 * @param about a grant; of a filter without a profile, the server has no tag
 */
export async function grantTags(
  nameOf: (...parts: string[]) => Promise<string>,
  { profile, server, issuer }: GrantFilter,
): Promise<Record<string, string>> {
  const tags: Record<string, string> = {};
  if (profile !== undefined) tags["profile"] = await nameOf("tag", "profile", profile);
  if (profile !== undefined && server !== undefined) tags["login"] = await nameOf("tag", "login", profile, server);
  if (issuer !== undefined) tags["issuer"] = await nameOf("tag", "issuer", issuer);
  return tags;
}
