import type { Kit } from "./kit.js";

/** What the user does with the login URL. */
export type User = (url: URL, kit: Kit) => unknown;

/** Logs in: opens the login URL, follows the redirect, and reads the last page. */
export const logsIn: User = async (url, kit) => {
  const response = await fetch(url, { redirect: "manual" });
  await response.body?.cancel();
  const callback = response.headers.get("location");
  if (callback) kit.pages.push(await readPage(callback));
};

/** Never opens the login URL. */
export const neverLogsIn: User = () => undefined;

/** Opens an address of the listener as a browser does; returns status and page, or "gone" for a closed port. */
export async function readPage(address: string): Promise<string> {
  try {
    const page = await fetch(address);
    return `${page.status} ${await page.text()}`;
  } catch {
    return "gone";
  }
}

/** The login URL in the output of the program, if it is printed yet. */
export function loginUrlIn(output: string): URL | undefined {
  const line = /^ {2}(https?:\S+)\n/m.exec(output)?.[1];
  return line === undefined ? undefined : new URL(line);
}
