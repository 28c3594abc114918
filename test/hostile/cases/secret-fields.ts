/** Members of a device that may hold a client secret, documented or not. */
export const SECRET_FIELDS = (secret: string) => ({
  client_secret: secret,
  client: { client_id: "client-1", client_secret: secret },
  clients: [{ client_id: "client-1", client_secret: secret }],
  registration: { metadata: { client_secret: secret } },
});
