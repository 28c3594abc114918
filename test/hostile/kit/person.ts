import type { Kit } from "./kit.js";

/** What a user does with the address to sign in at. */
export type Person = (url: URL, kit: Kit) => unknown;

/** Signs in: goes where the address leads, and reads the page at the end. */
export const signsIn: Person = async (url, kit) => {
  const response = await fetch(url, { redirect: "manual" });
  await response.body?.cancel();
  const callback = response.headers.get("location");
  if (callback) kit.pages.push(await readPage(callback));
};

/** Never comes. */
export const staysAway: Person = () => undefined;

/** Opens an address of the listener as a browser does. What became of it, as text; a closed connection is "gone". */
export async function readPage(address: string): Promise<string> {
  try {
    const page = await fetch(address);
    return `${page.status} ${await page.text()}`;
  } catch {
    return "gone";
  }
}

/** The address to sign in at, as the program said it; undefined until it has. */
export function signInAddress(said: string): URL | undefined {
  const line = /^ {2}(https?:\S+)\n/m.exec(said)?.[1];
  return line === undefined ? undefined : new URL(line);
}
