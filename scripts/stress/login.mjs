/** A login method without a browser, for an issuer that approves at once. */
export const loginMethod = {
  async open() {
    const redirectUri = "http://127.0.0.1:49152/callback";
    return {
      redirectUri,
      async authorize({ url, signal }) {
        const { headers } = await fetch(url, { redirect: "manual", signal });
        return new URL(headers.get("location") ?? redirectUri).searchParams;
      },
      async close() {},
    };
  },
};
